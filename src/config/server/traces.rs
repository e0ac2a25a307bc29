//! Where traces are sent: our own settings, and then the variables that all programs with OpenTelemetry read.
//!
//! As those are often set for a whole machine, what `server.toml` says comes before them. What is wrong with one of
//! them is an error if it decides where data goes, and else a warning, as the specification of OpenTelemetry wants.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::config::sources::origin::{Origin, Origins};
use crate::config::sources::reader::Located;
use crate::config::sources::values::{self, PROVIDER_URL};
use crate::config::{ConfigError, Env};
use crate::secret::ExposeSecret;
use crate::traces::{Sampler, Settings};

/// The key of the file.
const KEY: &str = "otlp_endpoint";
const ENDPOINT: &str = "MK_OTLP_ENDPOINT";
const STANDARD: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const STANDARD_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// What is appended to an address that is not only for traces.
const PATH: &str = "/v1/traces";
/// The longest timeout that makes sense.
const MAX_TIMEOUT_MS: u64 = 60_000;

/// The settings of traces, but for those that the file alone has; none if nothing says where to.
pub(super) fn traces(
    file: Option<&Located<String>>,
    env: &Env,
    origins: &mut Origins,
    warnings: &mut Vec<String>,
) -> Result<Settings, ConfigError> {
    let is_off = env.text("OTEL_SDK_DISABLED")?.is_some_and(|text| text.eq_ignore_ascii_case("true"))
        || env.text("OTEL_TRACES_EXPORTER")? == Some("none");
    let Some((address, is_standard)) = endpoint(file, env, origins)?.filter(|_| !is_off) else {
        return Ok(Settings::default());
    };
    let mut settings = Settings { headers: headers(env)?, ..Settings::default() };
    let either = |one: &str, other: &str| Ok::<_, ConfigError>(env.text(one)?.or(env.text(other)?));
    if let Some(text) = either("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")? {
        match text.parse().ok().filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms)) {
            Some(ms) => settings.timeout = Duration::from_millis(ms),
            None => warnings.push(format!(
                "OTEL_EXPORTER_OTLP_TIMEOUT is ignored: it must be milliseconds from 1 to {MAX_TIMEOUT_MS}"
            )),
        }
    }
    let protocol = either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")?;
    if is_standard && protocol == Some("grpc") {
        warnings.push(
            "traces are sent over OTLP/HTTP, although OTEL_EXPORTER_OTLP_PROTOCOL is grpc; set MK_OTLP_ENDPOINT \
             to the collector's HTTP port (4318)"
                .to_owned(),
        );
    }
    if values::provider_url(&address).is_some_and(|url| values::is_unencrypted_remote(&url)) {
        warnings.push("traces leave this machine unencrypted: otlp_endpoint begins with http://".to_owned());
    }
    settings.sampler = sampler(env, warnings)?;
    settings.resource = resource(env, settings.resource, warnings)?;
    settings.endpoint = Some(address);
    Ok(settings)
}

/// The address that takes traces, whole; and whether a standard variable names it.
fn endpoint(
    file: Option<&Located<String>>,
    env: &Env,
    origins: &mut Origins,
) -> Result<Option<(String, bool)>, ConfigError> {
    let mut variable = |name: &'static str| -> Result<Option<String>, ConfigError> {
        let Some(text) = env.text(name)? else { return Ok(None) };
        let address =
            address(text).ok_or_else(|| ConfigError::new(format!("{name} must be {PROVIDER_URL}")))?;
        origins.set(KEY, Origin::Variable(name));
        Ok(Some(address))
    };
    if let Some(address) = variable(ENDPOINT)? {
        return Ok(Some((with_path(&address), false)));
    }
    if let Some(found) = file {
        origins.record(KEY, Some(found));
        return Ok(Some((with_path(&found.value), false)));
    }
    if let Some(address) = variable(STANDARD_TRACES)? {
        return Ok(Some((address, true)));
    }
    Ok(variable(STANDARD)?.map(|address| (with_path(&address), true)))
}

/// An address, as far as it can be shown to anybody.
pub(super) fn address(text: &str) -> Option<String> {
    values::provider_url(text).map(|url| values::url_text(&url))
}

/// The address for traces of a collector, whether or not it already is that.
fn with_path(address: &str) -> String {
    let (base, query) = match address.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (address, None),
    };
    let base = base.trim_end_matches('/');
    let path = if base.ends_with(PATH) { "" } else { PATH };
    match query {
        Some(query) => format!("{base}{path}?{query}"),
        None => format!("{base}{path}"),
    }
}

/// The headers of calls to the collector: those for traces come before those for everything.
fn headers(env: &Env) -> Result<Vec<(HeaderName, HeaderValue)>, ConfigError> {
    for name in ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"] {
        let Some(text) = env.secret(name)? else { continue };
        let read = pairs(text.expose_secret()).map(|pair| {
            let (key, value) = pair?;
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(key).ok()?, value))
        });
        return read.collect::<Option<_>>().ok_or_else(|| {
            // The text is not quoted, as it holds keys.
            ConfigError::new(format!(
                "{name} must be headers such as `authorization=Basic%20…`, separated by commas"
            ))
        });
    }
    Ok(Vec::new())
}

fn sampler(env: &Env, warnings: &mut Vec<String>) -> Result<Sampler, ConfigError> {
    let Some(name) = env.text("OTEL_TRACES_SAMPLER")? else { return Ok(Sampler::default()) };
    let share = match env.text("OTEL_TRACES_SAMPLER_ARG")? {
        None => Some(1.0),
        Some(text) => text.parse().ok().filter(|share| (0.0..=1.0).contains(share)),
    };
    if share.is_none() && name.ends_with("traceidratio") {
        warnings.push("OTEL_TRACES_SAMPLER_ARG is ignored: it must be a number from 0 to 1".to_owned());
    }
    let sampler = Sampler::parse(name, share.unwrap_or(1.0));
    if sampler.is_none() {
        warnings.push(
            "OTEL_TRACES_SAMPLER is ignored: it must be always_on, always_off or traceidratio, or one of them after parentbased_"
                .to_owned(),
        );
    }
    Ok(sampler.unwrap_or_default())
}

/// What describes this server: `OTEL_RESOURCE_ATTRIBUTES`, of which `OTEL_SERVICE_NAME` replaces the name.
fn resource(
    env: &Env,
    defaults: Vec<(String, String)>,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut resource = defaults;
    let mut set = |key: String, value: String| match resource.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None => resource.push((key, value)),
    };
    if let Some(text) = env.text("OTEL_RESOURCE_ATTRIBUTES")? {
        match pairs(text).collect::<Option<Vec<_>>>() {
            Some(pairs) => pairs.into_iter().for_each(|(key, value)| set(key, value)),
            None => warnings.push(
                "OTEL_RESOURCE_ATTRIBUTES is ignored: it must be `key=value`, separated by commas".to_owned(),
            ),
        }
    }
    if let Some(name) = env.text("OTEL_SERVICE_NAME")? {
        set("service.name".to_owned(), name.to_owned());
    }
    Ok(resource)
}

/// The pairs of a list such as `key=value,key=value`, with what is percent-encoded decoded; `None` for one that is
/// none.
fn pairs(text: &str) -> impl Iterator<Item = Option<(String, String)>> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(|item| {
        let (key, value) = item.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let key = key.trim();
        (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::config::{ServerArgs, ServerConfig, load_server, server_listing};

    fn load(file: &str, variables: &[(&str, &str)]) -> Result<ServerConfig, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.toml");
        std::fs::write(&path, file).unwrap();
        let args = ServerArgs {
            config: Some(path),
            data_dir: Some("/d".into()),
            sandbox: true,
            ..ServerArgs::default()
        };
        load_server(&args, &Env::bare(variables.iter().copied(), Time::from_unix_ms(0)))
    }

    fn endpoint_of(file: &str, variables: &[(&str, &str)]) -> Option<String> {
        load(file, variables).unwrap().traces.endpoint
    }

    const FILE: &str = "otlp_endpoint = \"http://localhost:4318\"\n";
    const IN_FILE: Option<&str> = Some("http://localhost:4318/v1/traces");

    #[test]
    fn our_own_variable_comes_before_the_file_and_the_file_before_standard_variables() {
        let standard = [(STANDARD, "http://[::1]:1/otel"), (STANDARD_TRACES, "http://[::1]:2/whole")];
        assert_eq!(endpoint_of("", &[]), None);
        assert_eq!(endpoint_of("", &standard[..1]).as_deref(), Some("http://[::1]:1/otel/v1/traces"));
        assert_eq!(endpoint_of("", &standard).as_deref(), Some("http://[::1]:2/whole"));
        assert_eq!(endpoint_of(FILE, &standard).as_deref(), IN_FILE);
        let own = [standard[0], (ENDPOINT, "http://127.0.0.1:3/v1/traces/")];
        assert_eq!(endpoint_of(FILE, &own).as_deref(), Some("http://127.0.0.1:3/v1/traces"));
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(endpoint_of(FILE, &[off]), None);
        }
    }

    #[test]
    fn an_address_that_is_none_or_holds_a_key_is_refused_and_not_shown() {
        for wrong in ["localhost:4318", "ftp://a", "http://user:secret@a", "https://a?api-key=secret"] {
            for name in [ENDPOINT, STANDARD, STANDARD_TRACES] {
                let message = load("", &[(name, wrong)]).unwrap_err().to_string();
                assert!(message.contains(name) && !message.contains("secret"), "{message}");
            }
            let message = load(&format!("otlp_endpoint = \"{wrong}\"\n"), &[]).unwrap_err().to_string();
            assert!(message.contains(KEY) && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn headers_are_decoded_and_never_shown() {
        let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20c2VjcmV0, x-scope-orgid=7,")];
        let config = load(FILE, &variables).unwrap();
        let headers: Vec<_> =
            config.traces.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(headers, [("authorization", &b"Basic c2VjcmV0"[..]), ("x-scope-orgid", b"7")]);
        let shown = format!("{:?}{:?}", config.traces, server_listing(&config));
        assert!(!shown.contains("c2VjcmV0") && shown.contains("otlp_headers"), "{shown}");
        for wrong in ["secret", "a b=secret", "a=%ff", "a=secret\u{1}"] {
            let error = load(FILE, &[("OTEL_EXPORTER_OTLP_HEADERS", wrong)]).unwrap_err().to_string();
            assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_rest_of_the_standard_variables_is_read_or_warned_about() {
        let good = [
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_SERVICE_NAME", "gate"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=pro%2Cd"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ];
        let config = load(FILE, &good).unwrap();
        let Settings { timeout, resource, sampler, .. } = config.traces;
        assert_eq!(
            (timeout, sampler),
            (Duration::from_millis(2500), Sampler { follows_caller: false, ratio: 0.25 })
        );
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(resource, [pair("service.name", "gate"), pair("deployment.environment.name", "pro,d")]);

        for (name, wrong) in [
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_RESOURCE_ATTRIBUTES", "nothing"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ] {
            let config = load(FILE, &[(name, wrong)]).unwrap();
            assert!(config.warnings.iter().any(|warning| warning.contains(name)), "{:?}", config.warnings);
            assert_eq!(Settings { endpoint: None, ..config.traces }, Settings::default());
        }
        let remote =
            load("", &[(STANDARD, "http://otel.example:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        let warnings = remote.unwrap().warnings.join("\n");
        assert!(warnings.contains("grpc") && warnings.contains("unencrypted"), "{warnings}");
    }
}
