//! From flags, variables and a file to the server's configuration.

use super::*;
use crate::clock::Time;
use crate::config::{EXAMPLE, Entry, init, server_listing};
use crate::providers::{Kind, Patience, catalog};
use crate::secret::ExposeSecret;
use std::fs;

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-openai-secret");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant-secret");

/// A directory with a `server.toml`, and a world around it.
struct World {
    dir: tempfile::TempDir,
    env: Env,
}

fn world(file: Option<&str>, variables: &[(&str, &str)]) -> World {
    let dir = tempfile::tempdir().unwrap();
    if let Some(text) = file {
        fs::write(dir.path().join("server.toml"), text).unwrap();
    }
    let mut env = Env::bare(variables.iter().copied(), Time::parse("2026-11-20").unwrap());
    env.config_home = Some(dir.path().to_owned());
    env.data_home = Some(dir.path().join("data"));
    World { dir, env }
}

impl World {
    fn load(&self) -> Result<ServerConfig, ConfigError> {
        load_server(&ServerArgs::default(), &self.env)
    }
}

fn load(file: &str, variables: &[(&str, &str)]) -> Result<ServerConfig, ConfigError> {
    world(Some(file), variables).load()
}

fn complaint(file: &str) -> ConfigError {
    let error = load(file, &[OPENAI, ANTHROPIC]).unwrap_err();
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    error
}

#[test]
fn localhost_is_an_address_to_listen_on() {
    let config = load("listen = \"localhost:1004\"\n", &[OPENAI, ANTHROPIC]).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:1004");
}

#[test]
fn variables_alone_make_a_server() {
    let config = world(None, &[OPENAI, ANTHROPIC]).load().unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.max_body_bytes, 1_048_576);
    assert_eq!((config.limits.keys.per_minute, config.limits.keys.per_day), (60, 1000));
    let names: Vec<_> = config.providers.iter().map(|settings| settings.name.as_str()).collect();
    assert_eq!(names, ["openai", "anthropic"]);
    assert_eq!(config.providers[0].api_key.as_ref().unwrap().expose_secret(), OPENAI.1);
    let panel = ["openai/gpt-5.4-mini", "anthropic/claude-haiku-4-5", "openai/gpt-5.6-luna"];
    assert_eq!(config.verify.general.panel, panel);
    assert_eq!(config.verify.legal.panel, panel);
    assert_eq!(config.verify.general.extractor, panel[0]);
    assert_eq!(config.verify.general.extractor_fallbacks, panel[1..]);
    assert_eq!(config.notes[0], "providers found: openai (OPENAI_API_KEY), anthropic (ANTHROPIC_API_KEY)");
    assert_eq!(config.notes[1], "panel of 3 models: chosen across providers, different ones first");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    assert!(!format!("{config:?}").contains("secret"));
    let alone = world(None, &[OPENAI]).load().unwrap();
    assert_eq!(alone.notes[1], "panel of 3 models: chosen from one provider, different makers first");
}

#[test]
fn nothing_found_explains_three_ways_forward() {
    let error = world(None, &[]).load().unwrap_err();
    assert_eq!(error.hints.len(), 3);
    for (hint, way) in error.hints.iter().zip(["OPENAI_API_KEY", "mk config init", "mk serve --sandbox"]) {
        assert!(hint.contains(way), "{hint}");
    }
}

#[test]
fn a_local_ollama_is_found_by_its_port() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = world(None, &[]);
    world.env.ollama = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let count = stream.read(&mut [0; 1024]).unwrap();
        assert!(count > 0);
        let body = r#"{"data":[{"id":"llama3.1:8b"},{"id":"qwen2.5:7b"}]}"#;
        stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes()).unwrap();
    });
    let config = world.load().unwrap();
    server.join().unwrap();
    assert_eq!(config.verify.general.panel, ["ollama/llama3.1:8b", "ollama/qwen2.5:7b"]);
    assert_eq!(config.providers[0].base_url, format!("http://{}/v1", world.env.ollama));
    assert!(config.providers[0].api_key.is_none());
    assert!(config.notes[0].contains("2 models"), "{:?}", config.notes);
}

#[test]
fn the_sandbox_takes_the_place_of_all_providers() {
    let file = "[limits]\nper_minute = 5\n[providers.openai]\napi_key_env = \"NOT_SET\"\n\
                [verify]\npanel = [\"openai/x\", \"openai/y\"]\nmax_claims = 7\n";
    let world = world(Some(file), &[OPENAI]);
    let args = ServerArgs { sandbox: true, ..ServerArgs::default() };
    let config = load_server(&args, &world.env).unwrap();
    assert_eq!(config.providers.len(), 1);
    assert_eq!(config.providers[0].kind, Kind::Sandbox);
    for domain in [&config.verify.general, &config.verify.legal] {
        assert_eq!(domain.panel, ["sandbox/alpha", "sandbox/beta", "sandbox/gamma"]);
        assert_eq!(domain.standby, ["sandbox/delta"]);
        assert_eq!(domain.extractor, "sandbox/extractor");
        assert!(domain.extractor_fallbacks.is_empty());
        assert_eq!(domain.max_claims, 7);
    }
    assert_eq!(config.limits.keys.per_minute, 5);
    assert!(config.notes[0].contains("simulated"));
}

#[test]
fn a_configured_sandbox_is_used_only_if_it_is_alone() {
    let alone = load("[providers.sandbox]\n", &[OPENAI]).unwrap();
    assert_eq!(alone.verify.general.panel[0], "sandbox/alpha");
    assert_eq!(alone.verify.general.extractor, "sandbox/extractor");
    assert!(alone.notes.iter().any(|note| note.ends_with("simulated")), "{:?}", alone.notes);
    let file = "[providers.sandbox]\n[providers.openai]\napi_key_env = \"OPENAI_API_KEY\"\n";
    let beside = load(file, &[OPENAI]).unwrap();
    assert!(beside.verify.general.panel.iter().all(|id| id.starts_with("openai/")));
}

#[test]
fn flags_outrank_variables_outrank_the_file() {
    let file = "listen = \"127.0.0.1:1001\"\ndata_dir = \"store\"\n";
    let by_file = world(Some(file), &[OPENAI]);
    let config = by_file.load().unwrap();
    assert_eq!(config.listen.port(), 1001);
    assert_eq!(config.data_dir, by_file.dir.path().join("store"));

    let by_variable = world(Some(file), &[OPENAI, ("MK_LISTEN", "[::1]:1002"), ("MK_DATA_DIR", "/x")]);
    let config = by_variable.load().unwrap();
    assert_eq!((config.listen.port(), config.data_dir), (1002, "/x".into()));

    let listen = Some("127.0.0.1:1003".to_owned());
    let args = ServerArgs { listen, data_dir: Some("/y".into()), ..ServerArgs::default() };
    let config = load_server(&args, &by_variable.env).unwrap();
    assert_eq!(config.origins.of("listen"), Origin::Flag("--listen"));
    assert_eq!((config.listen.port(), config.data_dir), (1003, "/y".into()));

    let wrong = world(None, &[OPENAI, ("MK_LISTEN", "8080")]).load().unwrap_err();
    assert!(wrong.message.starts_with("MK_LISTEN must be an address and port such as"), "{wrong}");
}

#[test]
fn a_named_file_must_be_there() {
    let world = world(None, &[OPENAI]);
    let missing = world.dir.path().join("no.toml");
    let args = ServerArgs { config: Some(missing.clone()), ..ServerArgs::default() };
    let error = load_server(&args, &world.env).unwrap_err();
    assert_eq!(
        error.message,
        format!("the configuration file {} (--config) does not exist", missing.display())
    );
    let by_variable = self::world(None, &[OPENAI, ("MK_CONFIG", "/no/such.toml")]);
    assert!(by_variable.load().unwrap_err().message.contains("(MK_CONFIG) does not exist"));
    assert_eq!(world.load().unwrap().file, None);
}

#[test]
fn the_whole_contract_file_is_accepted() {
    let file = r#"
        listen = "127.0.0.1:8080"
        database_url = "sqlite"
        limits_url = "memory"
        trusted_proxies = ["10.0.0.0/8", "::1"]
        max_body_bytes = 1048576
        [limits]
        per_minute = 0
        per_day = 1000
        open_pages_per_minute = 600
        failed_auth_per_minute = 60
        [providers.openai]
        kind = "openai"
        base_url = "https://api.openai.com/v1/"
        api_key_env = "OPENAI_API_KEY"
        max_concurrent = 8
        connect_timeout = "500ms"
        first_byte_timeout = "60s"
        idle_timeout = "30s"
        total_timeout = "10m"
        retries = 0
        [providers.openai.models."gpt-5.4-mini"]
        input_usd_per_mtok = 0.25
        output_usd_per_mtok = 2
        fallbacks = ["anthropic/claude-haiku-4-5"]
        [providers.anthropic]
        kind = "anthropic"
        api_key_env = "ANTHROPIC_API_KEY"
        [providers.google]
        kind = "google"
        [providers.mistral]
        [verify]
        extractor = "openai/gpt-5.4-mini"
        extractor_fallbacks = ["anthropic/claude-haiku-4-5"]
        panel = ["openai/gpt-5.4-mini", "anthropic/claude-haiku-4-5", "google/gemini-3.5-flash"]
        standby = ["mistral/mistral-small-latest", "openai/gpt-5.4-mini"]
        max_fact_chars = 20000
        max_claims = 30
        max_concurrent = 65
        model_timeout = "31s"
        deadline = "2m"
        [verify.domains.legal]
        panel = ["google/gemini-3.5-flash", "openai/gpt-5.4-mini"]
        deadline = "3m"
        [inference]
        first_token_timeout_with_fallback = "11s"
        fallbacks = { "openai/gpt-5.4-mini" = ["anthropic/claude-haiku-4-5"] }
    "#;
    let config = load(file, &[OPENAI, ANTHROPIC]).unwrap();
    assert_eq!(config.trusted_proxies.len(), 2);
    assert_eq!(config.limits.keys.per_minute, 0);
    let openai = &config.providers[0];
    assert_eq!(
        (openai.base_url.as_str(), openai.max_concurrent, openai.retries),
        ("https://api.openai.com/v1", 8, 0)
    );
    assert_eq!(
        (openai.connect_timeout, openai.total_timeout),
        (Duration::from_millis(500), Duration::from_mins(10))
    );
    let model = &openai.models["gpt-5.4-mini"];
    assert_eq!(model.price.unwrap().input_per_mtok.0, 250_000_000);
    assert_eq!(model.price.unwrap().output_per_mtok.0, 2_000_000_000);
    assert_eq!(model.fallbacks, ["anthropic/claude-haiku-4-5"]);
    assert_eq!(config.providers[1].base_url, "https://api.anthropic.com/v1");
    assert_eq!(config.providers[1].kind, Kind::Anthropic);
    let google = &config.providers[2];
    assert_eq!(
        (google.kind, google.base_url.as_str()),
        (Kind::Google, "https://generativelanguage.googleapis.com/v1beta")
    );
    let (general, legal) = (&config.verify.general, &config.verify.legal);
    assert_eq!(general.standby, ["mistral/mistral-small-latest"], "a panel model does not stand by");
    assert_eq!((general.model_timeout, general.deadline), (Duration::from_secs(31), Duration::from_mins(2)));
    assert_eq!(legal.panel, ["google/gemini-3.5-flash", "openai/gpt-5.4-mini"]);
    assert_eq!(legal.extractor, "openai/gpt-5.4-mini");
    assert_eq!((legal.model_timeout, legal.deadline), (Duration::from_secs(31), Duration::from_mins(3)));
    assert_eq!(config.verify.max_concurrent, 65);
    assert_eq!(config.inference.first_token_timeout_with_fallback, Duration::from_secs(11));
    assert_eq!(config.inference.fallbacks["openai/gpt-5.4-mini"], ["anthropic/claude-haiku-4-5"]);
    let unkeyed =
        config.warnings.iter().filter(|warning| warning.contains("is called without a key")).count();
    assert_eq!(unkeyed, 2, "{:?}", config.warnings);
}

#[test]
fn what_is_set_for_a_model_comes_before_what_is_set_for_its_provider() {
    let file = r#"
        [providers.openai]
        first_byte_timeout = "10s"
        idle_timeout = "20s"
        total_timeout = "30s"
        first_token_timeout = "7s"
        retries = 0
        breaker_failures = 0
        breaker_pause = "5m"
        [providers.openai.models.own]
        first_byte_timeout = "11s"
        idle_timeout = "21s"
        total_timeout = "31s"
        first_token_timeout = "8s"
        retries = 10
        breaker_failures = 1000
        breaker_pause = "1ms"
    "#;
    let config = load(file, &[]).unwrap();
    let seconds = Duration::from_secs;
    let general = Patience {
        retries: 0,
        first_byte_timeout: seconds(10),
        idle_timeout: seconds(20),
        total_timeout: seconds(30),
        first_token_timeout: Some(seconds(7)),
        breaker_failures: 0,
        breaker_pause: seconds(300),
    };
    assert_eq!(config.providers[0].patience("other"), general);
    let own = Patience {
        retries: 10,
        first_byte_timeout: seconds(11),
        idle_timeout: seconds(21),
        total_timeout: seconds(31),
        first_token_timeout: Some(seconds(8)),
        breaker_failures: 1000,
        breaker_pause: Duration::from_millis(1),
    };
    assert_eq!(config.providers[0].patience("own"), own);
}

#[test]
fn a_panel_is_chosen_from_configured_providers() {
    let file = "[providers.anthropic]\napi_key_env = \"ANTHROPIC_API_KEY\"\n\
                [providers.local]\nbase_url = \"http://127.0.0.1:8000/v1\"\n[providers.local.models.llama]\n\
                [providers.work]\nbase_url = \"https://api.openai.com/v1\"\napi_key_env = \"OPENAI_API_KEY\"\n";
    let config = load(file, &[OPENAI, ANTHROPIC]).unwrap();
    let panel = &config.verify.general.panel;
    assert_eq!(*panel, ["anthropic/claude-haiku-4-5", "local/llama", "work/gpt-5.4-mini"]);
    assert_eq!(config.providers.len(), 3, "variables of others are not looked at");
}

#[test]
fn formats_are_those_named_or_those_usual_at_the_address() {
    const COMPATIBLE: &str = "https://generativelanguage.googleapis.com/v1beta/openai";
    for (file, kind, base_url) in [
        ("[providers.anthropic]", Kind::Anthropic, "https://api.anthropic.com/v1"),
        ("[providers.google]", Kind::Google, "https://generativelanguage.googleapis.com/v1beta"),
        ("[providers.groq]", Kind::OpenAi, "https://api.groq.com/openai/v1"),
        ("[providers.claude]\nkind = \"anthropic\"", Kind::Anthropic, "https://api.anthropic.com/v1"),
        (
            "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"https://proxy/a/\"",
            Kind::Anthropic,
            "https://proxy/a",
        ),
        (
            "[providers.work]\nbase_url = \"https://api.anthropic.com/v1\"",
            Kind::Anthropic,
            "https://api.anthropic.com/v1",
        ),
        ("[providers.google]\nbase_url = \"https://proxy/v1\"", Kind::OpenAi, "https://proxy/v1"),
        (&format!("[providers.google]\nbase_url = {COMPATIBLE:?}"), Kind::OpenAi, COMPATIBLE),
        (
            &format!("[providers.google]\nkind = \"openai\"\nbase_url = {COMPATIBLE:?}"),
            Kind::OpenAi,
            COMPATIBLE,
        ),
    ] {
        let config = load(file, &[]).unwrap();
        let settings = &config.providers[0];
        assert_eq!((settings.kind, settings.base_url.as_str()), (kind, base_url), "{file}");
        let kind = format!("{:?}", kind.name());
        let name = format!("providers.{}.kind", settings.name);
        let listed = server_listing(&config).into_iter().find(|entry| entry.key == name).unwrap();
        assert_eq!(listed.value, kind);
    }
}

#[test]
fn what_is_set_for_simulated_models_is_listed_too() {
    let file = "[providers.sandbox]\nbreaker_failures = 3\n[providers.sandbox.models.alpha]\nretries = 0\n";
    let listed = server_listing(&load(file, &[]).unwrap());
    let value = |key: &str| listed.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str());
    assert_eq!(value("providers.sandbox.breaker_failures"), Some("3"));
    assert_eq!(value("providers.sandbox.models.\"alpha\".retries"), Some("0"));
    assert_eq!(value("providers.sandbox.base_url"), None);
}

#[test]
fn too_small_a_panel_is_said_and_not_refused() {
    let file = "[providers.local]\nbase_url = \"http://127.0.0.1:8000/v1\"\n";
    let config = load(file, &[]).unwrap();
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].starts_with("the panel has no model"), "{:?}", config.warnings);
    let one = format!("{file}[verify]\npanel = [\"local/x\"]\n");
    assert!(load(&one, &[]).unwrap().warnings[0].starts_with("the panel has one model only"));
}

#[test]
fn models_that_are_being_retired_are_named() {
    let file = "[providers.openai]\napi_key_env = \"OPENAI_API_KEY\"\n\
                [verify]\npanel = [\"openai/gpt-4\", \"openai/gpt-5-2025-08-07\", \"openai/gpt-5.1\"]\n";
    assert_eq!(
        load(file, &[OPENAI]).unwrap().warnings,
        [
            "openai/gpt-4 was retired by its provider on 2026-10-23; choose another model",
            "openai/gpt-5-2025-08-07 will be retired by its provider on 2026-12-11"
        ]
    );
    let file = "[providers.openai]\napi_key_env = \"OPENAI_API_KEY\"\n\
                [providers.openai.models.a]\nfallbacks = [\"openai/gpt-4\", \"openai/b\"]\n\
                [verify]\npanel = [\"openai/gpt-4\", \"openai/gpt-5.1\"]\n\
                [inference.fallbacks]\n\"openai/a\" = [\"openai/gpt-5-2025-08-07\", \"openai/gpt-4\"]\n";
    let warned = load(file, &[OPENAI]).unwrap().warnings;
    let named = |model: &str| warned.iter().filter(|warning| warning.starts_with(model)).count();
    assert_eq!((warned.len(), named("openai/gpt-4 was"), named("openai/gpt-5-2025-08-07 will")), (2, 1, 1));
}

#[test]
fn what_is_wrong_is_named_with_line_and_remedy() {
    let ten = (0..10).map(|n| format!("\"openai/{n}\"")).collect::<Vec<_>>().join(", ");
    let too_many = format!("[providers.openai]\n[verify]\npanel = [{ten}]");
    for (file, expected) in [
        ("[limits]\nper_minut = 1", "unknown key `limits.per_minut`"),
        ("[limits]\nper_minut = 1", "line 2; did you mean `per_minute`?"),
        ("[limitz]\nper_minute = 1", "did you mean `limits`?"),
        ("listen = \"8080\"", "must be an address and port such as"),
        ("database_url = \"postgres://u:secret@h/db\"", "`database_url` in "),
        ("limits_url = \"redis://:secret@h\"", "must be \"memory\": this version has nothing else yet"),
        ("tls_cert = \"a.pem\"", "needs `tls_key` beside it"),
        ("tls_cert = \"a.pem\"\ntls_key = \"b.pem\"", "a.pem, which cannot be read: no such file"),
        ("trusted_proxies = [\"10.0.0.0/33\"]", "must be a list of networks"),
        ("[providers.Open]\nbase_url = \"https://a\"", "may only have a–z, 0–9, - and _"),
        ("[providers.mine]", "needs a `base_url`"),
        (
            "[providers.mine]\nbase_url = \"https://u:secret@h\"",
            "must be an http:// or https:// address without",
        ),
        ("[providers.openai]\napi_key_header = \"api-key\"", "needs a key: set `api_key_env`"),
        ("[providers.openai]\napi_key_header = \"content-type\"", "must be the name of a header"),
        (
            "[providers.openai]\nkind = \"azure\"",
            "must be \"openai\", \"anthropic\", \"google\" or \"sandbox\"",
        ),
        ("[providers.openai]\napi_key = \"secret\"", "is not taken from the file"),
        ("[providers.openai]\napi_key_env = \"sk-secret\"", "must be the name of an environment variable"),
        ("[providers.openai]\napi_key_env = \"gsk_secret\"", "must be the name of an environment variable"),
        (
            "[providers.openai]\napi_key_env = \"MY_KEY\"",
            "names the environment variable MY_KEY, which is not set",
        ),
        ("[providers.openai]\napi_key_file = \"no\"", "which cannot be read: no such file"),
        ("[providers.openai]\napi_key_file = \"no\"\napi_key_env = \"OPENAI_API_KEY\"", "are both set"),
        (
            "[providers.sandbox]\nkind = \"openai\"\nbase_url = \"https://a\"",
            "must be \"sandbox\" under this name",
        ),
        ("[providers.toys]\nkind = \"sandbox\"", "name the table [providers.sandbox]"),
        ("[providers.google]\nkind = \"openai\"", "needs a `base_url` for kind = \"openai\""),
        ("[providers.openai]\nconnect_timeout = 5", "must be a span of time such as"),
        ("[providers.openai]\nretries = 11", "must be a whole number from 0 to 10"),
        ("[providers.openai]\nbreaker_failures = 1001", "must be a whole number from 0 to 1000"),
        ("[providers.openai]\nbreaker_pause = \"6m\"", "must be a span of time of at most five minutes"),
        ("[providers.openai.models.x]\nretries = -1", "must be a whole number from 0 to 10"),
        ("[providers.openai.models.x]\nbreaker_pauses = \"1s\"", "did you mean `breaker_pause`?"),
        ("[providers.openai.models.x]\nconnect_timeout = \"1s\"", "set it in the provider's table"),
        ("[providers.openai.models.x]\nmax_concurrent = 1", "set it in the provider's table"),
        ("[providers.openai.models.x]\ninput_usd_per_mtok = 1", "needs both"),
        (
            "[providers.openai.models.x]\ninput_usd_per_mtok = -1\noutput_usd_per_mtok = 1",
            "an amount of US dollars",
        ),
        ("[providers.openai.models.x]\nfallbacks = [\"mistral/y\"]", "no provider mistral is configured"),
        ("[verify]\nextractor = \"openai\"\n[providers.openai]", "models are written as provider/model_name"),
        ("[verify]\npanel = [\"opnai/x\"]\n[providers.openai]", "is configured; did you mean `openai`?"),
        ("[verify]\npanel = [\"openai/x\", \"openai/x\"]\n[providers.openai]", "names `openai/x` twice"),
        ("[verify]\npannel = []", "did you mean `panel`?"),
        ("[verify.domains.medical]\n", "unknown key `verify.domains.medical`"),
        ("[verify.domains.legal]\nmax_concurrent = 5\n", "set it under [verify]"),
        ("[inference]\nfallbacks = { \"x/y\" = [] }\n[providers.openai]", "no provider x is configured"),
        ("[inference]\nfallbacks = { \"openai/y\" = 5 }\n[providers.openai]", "must be a list of strings"),
        ("a = ", "line 1 is not TOML"),
        (too_many.as_str(), "names 10 models; a panel has at most 9"),
    ] {
        let error = complaint(file);
        assert!(error.message.contains(expected), "{file}\n{error}");
        assert!(error.message.contains("server.toml"), "{file}\n{error}");
    }
    let hints = complaint("[verify]\npanel = [\"opnai/x\"]\n[providers.openai]\n[providers.groq]").hints;
    assert_eq!(hints, ["configured providers: openai, groq"]);
    let by_variable =
        world(None, &[OPENAI, ("MK_DATABASE_URL", "postgres://u:secret@h/db")]).load().unwrap_err();
    assert!(by_variable.message.starts_with("MK_DATABASE_URL must be \"sqlite\""), "{by_variable}");
}

#[test]
fn a_key_file_is_read_beside_the_configuration() {
    let world = world(Some("[providers.openai]\napi_key_file = \"key\"\n"), &[]);
    fs::write(world.dir.path().join("key"), "sk-from-file\n").unwrap();
    let config = world.load().unwrap();
    assert_eq!(config.providers[0].api_key.as_ref().unwrap().expose_secret(), "sk-from-file");
}

#[test]
fn a_known_name_at_another_address_is_asked_which_format_it_means() {
    let warned = |kind: &str| {
        let file = format!(
            "[providers.anthropic]\n{kind}base_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"OPENAI_API_KEY\"\n"
        );
        let warnings = load(&file, &[OPENAI]).unwrap().warnings;
        warnings.into_iter().filter(|warning| warning.contains("format")).collect::<Vec<_>>()
    };
    let [warning] = &warned("")[..] else { panic!("{:?}", warned("")) };
    assert!(warning.starts_with("provider anthropic is asked in the format \"openai\""), "{warning}");
    for kind in ["anthropic", "openai"] {
        assert!(warned(&format!("kind = {kind:?}\n")).is_empty(), "{kind}");
    }
}

#[test]
fn a_key_in_the_clear_is_warned_of() {
    let file = "[providers.lan]\nbase_url = \"http://10.0.0.5/v1\"\napi_key_env = \"OPENAI_API_KEY\"\n";
    let warnings = load(file, &[OPENAI]).unwrap().warnings;
    assert_eq!(warnings[0], "the key of provider lan is sent without encryption to http://10.0.0.5/v1");
}

#[test]
fn the_data_directory_needs_no_provider() {
    let world = world(Some("data_dir = \"/srv/mk\"\n[providers.openai]\napi_key_env = \"NOT_SET\"\n"), &[]);
    assert_eq!(load_data_dir(&ServerArgs::default(), &world.env), Ok("/srv/mk".into()));
    assert!(world.load().is_err());
}

#[test]
fn the_example_changes_nothing_and_shows_the_defaults() {
    let bare = world(None, &[OPENAI]).load().unwrap();
    let untouched = load(EXAMPLE, &[OPENAI]).unwrap();
    let settings: String = EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[') => {
                format!("{rest}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let uncommented = load(&settings, &[OPENAI]).unwrap();
    for config in [&untouched, &uncommented] {
        let without_place = |config: &ServerConfig| {
            let values = server_listing(config).into_iter().map(|Entry { key, value, .. }| (key, value));
            // The catalogue's prices stand in the example, which is compared with the catalogue below.
            let is_elsewhere = |key: &str| key == "data_dir" || key.ends_with("_usd_per_mtok");
            values.filter(|(key, _)| !is_elsewhere(key)).collect::<Vec<_>>()
        };
        assert_eq!(without_place(config), without_place(&bare));
        assert_eq!(config.verify, bare.verify);
        assert_eq!(config.inference, bare.inference);
        assert!(config.warnings.is_empty());
    }
    let price = uncommented.providers[0].models["gpt-5.4-mini"].price;
    assert_eq!(price, catalog::model("openai/gpt-5.4-mini").unwrap().price);
    // What the contract lists, the example shows.
    for entry in server_listing(&uncommented) {
        let key = entry.key.rsplit('.').next().unwrap();
        let documented =
            EXAMPLE.contains(&format!("\n#{key} = ")) || EXAMPLE.contains(&format!("  {key} = "));
        assert!(documented || key == "api_key", "{}", entry.key);
    }
}

#[test]
fn the_example_is_written_once() {
    let world = world(None, &[]);
    let path = init(&ServerArgs::default(), &world.env).unwrap();
    assert_eq!(path, world.dir.path().join("server.toml"));
    assert_eq!(fs::read_to_string(&path).unwrap(), EXAMPLE);
    fs::write(&path, "mine").unwrap();
    let error = init(&ServerArgs::default(), &world.env).unwrap_err();
    assert!(error.message.ends_with("is there already and is left as it is"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn the_listing_tells_origins_and_no_secrets() {
    let file = "max_body_bytes = 5\n[providers.openai]\napi_key_env = \"OPENAI_API_KEY\"\nretries = 1\n\
                [verify.domains.legal]\nmax_claims = 3\n\
                [providers.openai.models.\"o.3\"]\nretries = 4\nbreaker_pause = \"2s\"\n\
                input_usd_per_mtok = 0.5\noutput_usd_per_mtok = 2\nfallbacks = [\"openai/gpt-5.4-mini\"]\n";
    let world = world(Some(file), &[OPENAI, ("MK_LISTEN", "127.0.0.1:9")]);
    let entries = server_listing(&world.load().unwrap());
    let path = world.dir.path().join("server.toml").display().to_string();
    let shown = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("{key}"));
        (entry.value.as_str(), entry.origin.to_string())
    };
    assert_eq!(shown("listen"), ("\"127.0.0.1:9\"", "MK_LISTEN".to_owned()));
    assert_eq!(shown("max_body_bytes"), ("5", format!("{path}:1")));
    assert_eq!(shown("limits.per_day"), ("1000", "default".to_owned()));
    assert_eq!(shown("providers.openai.api_key"), ("set", format!("{path}:3")));
    assert_eq!(shown("providers.openai.retries"), ("1", format!("{path}:4")));
    assert_eq!(shown("providers.openai.models.\"o.3\".retries"), ("4", format!("{path}:8")));
    assert_eq!(shown("providers.openai.models.\"o.3\".breaker_pause"), ("\"2s\"", format!("{path}:9")));
    assert_eq!(shown("providers.openai.models.\"o.3\".input_usd_per_mtok"), ("0.5", format!("{path}:10")));
    assert_eq!(shown("providers.openai.models.\"o.3\".output_usd_per_mtok"), ("2", format!("{path}:11")));
    let fallbacks = shown("providers.openai.models.\"o.3\".fallbacks");
    assert_eq!(fallbacks, ("[\"openai/gpt-5.4-mini\"]", format!("{path}:12")));
    assert_eq!(shown("providers.openai.breaker_failures"), ("5", "default".to_owned()));
    assert_eq!(shown("providers.openai.first_token_timeout"), ("", "default".to_owned()));
    let of_models = entries.iter().filter(|entry| entry.key.contains(".models.")).count();
    assert_eq!(of_models, 5, "of a model only what is set");
    assert_eq!(shown("verify.extractor"), ("\"openai/gpt-5.4-mini\"", "chosen at start".to_owned()));
    assert_eq!(shown("verify.domains.legal.max_claims"), ("3", format!("{path}:6")));
    assert!(entries.iter().all(|entry| !entry.value.contains("secret")));
    assert!(entries.iter().all(|entry| entry.key != "verify.domains.legal.panel"), "only what differs");
}
