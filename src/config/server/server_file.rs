//! Parses `server.toml`: every key is typed and validated by itself, and nothing is resolved yet.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;

use crate::config::ConfigError;
use crate::config::providers::provider_file::{self, ProviderFile};
use crate::config::sources::reader::{Document, Located, Section};
use crate::config::sources::values;
use crate::inference::Effort;
use crate::limits::LimitsStore;
use crate::storage::DatabaseUrl;

/// The contents of a file; `None` for keys that it does not have.
#[derive(Default)]
pub(in crate::config) struct ServerFile {
    pub(in crate::config) listen: Option<Located<SocketAddr>>,
    pub(in crate::config) data_dir: Option<Located<String>>,
    pub(in crate::config) database_url: Option<Located<DatabaseUrl>>,
    pub(in crate::config) limits_url: Option<Located<LimitsStore>>,
    pub(in crate::config) trusted_proxies: Option<Located<Vec<IpNet>>>,
    pub(in crate::config) tls_cert: Option<Located<String>>,
    pub(in crate::config) tls_key: Option<Located<String>>,
    pub(in crate::config) max_body_bytes: Option<Located<usize>>,
    pub(in crate::config) limits: LimitsFile,
    pub(in crate::config) providers: Vec<ProviderFile>,
    pub(in crate::config) verify: VerifyFile,
    pub(in crate::config) inference: InferenceFile,
    pub(in crate::config) usage: UsageFile,
}

/// `[limits]`.
#[derive(Default)]
pub(in crate::config) struct LimitsFile {
    pub(in crate::config) per_minute: Option<Located<u32>>,
    pub(in crate::config) per_day: Option<Located<u32>>,
    pub(in crate::config) open_pages_per_minute: Option<Located<u32>>,
    pub(in crate::config) failed_auth_per_minute: Option<Located<u32>>,
}

/// `[verify]`.
#[derive(Default)]
pub(in crate::config) struct VerifyFile {
    pub(in crate::config) max_concurrent: Option<Located<usize>>,
    pub(in crate::config) base: PanelFile,
    pub(in crate::config) general: PanelFile,
    pub(in crate::config) legal: PanelFile,
}

/// The keys of `[verify]` that a domain may override.
#[derive(Clone, Default)]
pub(in crate::config) struct PanelFile {
    pub(in crate::config) extractor: Option<Located<String>>,
    pub(in crate::config) extractor_fallbacks: Option<Located<Vec<String>>>,
    pub(in crate::config) auditor: Option<Located<String>>,
    pub(in crate::config) panel: Option<Located<Vec<String>>>,
    pub(in crate::config) standby: Option<Located<Vec<String>>>,
    pub(in crate::config) max_fact_chars: Option<Located<usize>>,
    pub(in crate::config) max_claims: Option<Located<usize>>,
    pub(in crate::config) effort: Option<Located<Effort>>,
    pub(in crate::config) model_timeout: Option<Located<Duration>>,
    pub(in crate::config) deadline: Option<Located<Duration>>,
    /// `None` inside: off.
    pub(in crate::config) cache: Option<Located<Option<Duration>>>,
}

impl PanelFile {
    /// Whether it says which models do something.
    pub(in crate::config) fn names_models(&self) -> bool {
        self.extractor.is_some()
            || self.extractor_fallbacks.is_some()
            || self.auditor.is_some()
            || self.panel.is_some()
            || self.standby.is_some()
    }
}

/// What `effort` may be.
const EFFORTS: &str = "\"lowest\" (the least that a model takes), \"none\", \"minimal\", \"low\", \"medium\", \"high\" or \"xhigh\"";

/// `[usage]`.
#[derive(Default)]
pub(in crate::config) struct UsageFile {
    pub(in crate::config) retention: Option<Located<Duration>>,
}

/// `[inference]`.
#[derive(Default)]
pub(in crate::config) struct InferenceFile {
    pub(in crate::config) first_token_timeout_with_fallback: Option<Located<Duration>>,
    pub(in crate::config) whole_answer_timeout_with_fallback: Option<Located<Duration>>,
    pub(in crate::config) fallbacks: Vec<(Located<String>, Vec<String>)>,
    pub(in crate::config) drop_unsupported: Option<Located<bool>>,
}

/// An address and port; `localhost` means 127.0.0.1.
pub(in crate::config) fn listen_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?))),
        None => text.parse().ok(),
    }
}

/// What `listen` expects.
pub(in crate::config) const LISTEN: &str =
    "an address and port such as \"127.0.0.1:8080\", \"localhost:8080\" or \"[::1]:8080\"";

/// What `limits_url` expects.
pub(in crate::config) const LIMITS: &str = "\"memory\", or the address of a Redis or Valkey server: redis://HOST, rediss://HOST (TLS), redis+unix:///PATH; `/`, `?`, `#` and `%` in a password are written %2F, %3F, %23 and %25";

/// Reads `server.toml`; `None` if there is none.
pub(in crate::config) fn read(path: &Path) -> Result<Option<ServerFile>, ConfigError> {
    let Some(document) = Document::open(path)? else { return Ok(None) };
    let table = document.parse()?;
    server(Section::root(&document, &table)).map(Some)
}

/// Where a server with this file listens, and whether with TLS, whatever else is wrong with it; `None` if that cannot
/// be read.
pub(in crate::config) fn read_listen(path: &Path) -> Option<(Option<Located<SocketAddr>>, bool)> {
    let document = Document::open(path).ok()??;
    let table = document.parse().ok()?;
    let mut root = Section::root(&document, &table);
    let listen = root.parsed("listen", LISTEN, listen_address).ok()?;
    Some((listen, table.contains_key("tls_cert")))
}

/// Where the database is. The error does not quote the value, as it may contain a password.
fn database_url(root: &mut Section<'_>) -> Result<Option<Located<DatabaseUrl>>, ConfigError> {
    let Some(found) = root.text("database_url")? else { return Ok(None) };
    match DatabaseUrl::parse(&found.value) {
        Ok(value) => Ok(Some(Located { value, place: found.place })),
        Err(why) => Err(found.place.error(why)),
    }
}

fn server(mut root: Section<'_>) -> Result<ServerFile, ConfigError> {
    let file = ServerFile {
        listen: root.parsed("listen", LISTEN, listen_address)?,
        data_dir: root.path("data_dir")?,
        database_url: database_url(&mut root)?,
        limits_url: root.parsed_unseen("limits_url", LIMITS, LimitsStore::parse)?,
        trusted_proxies: networks(&mut root)?,
        tls_cert: root.path("tls_cert")?,
        tls_key: root.path("tls_key")?,
        max_body_bytes: root.number("max_body_bytes", 1..=1024 * 1024 * 1024)?,
        limits: root.section("limits")?.map(limits).transpose()?.unwrap_or_default(),
        providers: root
            .section("providers")?
            .as_ref()
            .map(provider_file::read_all)
            .transpose()?
            .unwrap_or_default(),
        verify: root.section("verify")?.map(verify).transpose()?.unwrap_or_default(),
        inference: root.section("inference")?.map(inference).transpose()?.unwrap_or_default(),
        usage: root.section("usage")?.map(usage).transpose()?.unwrap_or_default(),
    };
    root.finish()?;
    Ok(file)
}

/// Networks or single addresses.
fn networks(root: &mut Section<'_>) -> Result<Option<Located<Vec<IpNet>>>, ConfigError> {
    let network = |text: &String| {
        text.parse::<IpNet>().ok().or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
    };
    let expected = "a list of networks such as \"10.0.0.0/8\" or \"::1\"";
    root.texts("trusted_proxies")?
        .map(|found| found.try_map(|list| list.iter().map(network).collect(), expected))
        .transpose()
}

fn limits(mut section: Section<'_>) -> Result<LimitsFile, ConfigError> {
    let file = LimitsFile {
        per_minute: section.number("per_minute", 0..=u32::MAX)?,
        per_day: section.number("per_day", 0..=u32::MAX)?,
        open_pages_per_minute: section.number("open_pages_per_minute", 0..=u32::MAX)?,
        failed_auth_per_minute: section.number("failed_auth_per_minute", 0..=u32::MAX)?,
    };
    section.finish()?;
    Ok(file)
}

fn verify(mut section: Section<'_>) -> Result<VerifyFile, ConfigError> {
    let mut file = VerifyFile {
        max_concurrent: section.number("max_concurrent", 1..=10_000)?,
        base: panel(&mut section)?,
        ..VerifyFile::default()
    };
    if let Some(mut domains) = section.section("domains")? {
        file.general = domain(&mut domains, "general")?;
        file.legal = domain(&mut domains, "legal")?;
        domains.finish()?;
    }
    section.finish()?;
    Ok(file)
}

fn domain(domains: &mut Section<'_>, name: &'static str) -> Result<PanelFile, ConfigError> {
    let Some(mut section) = domains.section(name)? else { return Ok(PanelFile::default()) };
    section.forbid("max_concurrent", "holds for both domains together", "set it under [verify]")?;
    let file = panel(&mut section)?;
    section.finish()?;
    Ok(file)
}

fn panel(section: &mut Section<'_>) -> Result<PanelFile, ConfigError> {
    Ok(PanelFile {
        extractor: section.text("extractor")?,
        extractor_fallbacks: section.texts("extractor_fallbacks")?,
        auditor: section.text("auditor")?,
        panel: section.texts("panel")?,
        standby: section.texts("standby")?,
        max_fact_chars: section.number("max_fact_chars", 1..=10_000_000)?,
        max_claims: section.number("max_claims", 0..=100_000)?,
        effort: section.parsed("effort", EFFORTS, Effort::parse)?,
        model_timeout: section.duration("model_timeout")?,
        deadline: section.duration("deadline")?,
        cache: section.parsed("cache", values::DAYS_OR_OFF, values::days_or_off)?,
    })
}

impl PanelFile {
    /// These settings, completed by those of `base`.
    pub(in crate::config) fn completed_by(&self, base: &Self) -> Self {
        let (own, base) = (self.clone(), base.clone());
        Self {
            extractor: own.extractor.or(base.extractor),
            extractor_fallbacks: own.extractor_fallbacks.or(base.extractor_fallbacks),
            auditor: own.auditor.or(base.auditor),
            panel: own.panel.or(base.panel),
            standby: own.standby.or(base.standby),
            max_fact_chars: own.max_fact_chars.or(base.max_fact_chars),
            max_claims: own.max_claims.or(base.max_claims),
            effort: own.effort.or(base.effort),
            model_timeout: own.model_timeout.or(base.model_timeout),
            deadline: own.deadline.or(base.deadline),
            cache: own.cache.or(base.cache),
        }
    }
}

fn inference(mut section: Section<'_>) -> Result<InferenceFile, ConfigError> {
    let file = InferenceFile {
        first_token_timeout_with_fallback: section.duration("first_token_timeout_with_fallback")?,
        whole_answer_timeout_with_fallback: section.duration("whole_answer_timeout_with_fallback")?,
        fallbacks: match section.section("fallbacks")? {
            Some(fallbacks) => fallbacks.named_texts()?,
            None => Vec::new(),
        },
        drop_unsupported: section.flag("drop_unsupported")?,
    };
    section.finish()?;
    Ok(file)
}

fn usage(mut section: Section<'_>) -> Result<UsageFile, ConfigError> {
    let file = UsageFile { retention: section.parsed("retention", values::DAYS, values::days)? };
    section.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever a person or a broken disk makes of a file, it reads or is complained about.
        #[test]
        fn a_damaged_file_never_panics(
            at in 0_usize..6000,
            cut in 0_usize..40,
            insert in "[\\PC\\n\"\\[\\]=.#]{0,12}",
        ) {
            let settings = crate::config::EXAMPLE.replace("\n#", "\n");
            let mut text: Vec<char> = settings.chars().collect();
            let start = at.min(text.len());
            let end = (start + cut).min(text.len());
            text.splice(start..end, insert.chars());
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("server.toml");
            std::fs::write(&path, text.into_iter().collect::<String>()).unwrap();
            if let Err(error) = read(&path) {
                prop_assert!(error.message.contains("server.toml"), "{}", error);
            }
        }
    }
}
