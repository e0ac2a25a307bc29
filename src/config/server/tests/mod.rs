//! From flags, variables and a file to the server's configuration.

use super::*;
use crate::clock::Time;
use crate::config::{Entry, example, init, server_listing};
use crate::providers::{CallPolicy, Effort, Kind, catalog};
use crate::secret::ExposeSecret;
use std::fs;

mod errors;
mod listing;
mod providers;

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-openai-secret");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant-secret");

/// A directory with a `server.toml`, and an environment around it.
struct Fixture {
    dir: tempfile::TempDir,
    env: Env,
}

fn fixture(file: Option<&str>, variables: &[(&str, &str)]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    if let Some(text) = file {
        fs::write(dir.path().join("server.toml"), text).unwrap();
    }
    let mut env = Env::bare(variables.iter().copied(), Time::parse("2026-11-20").unwrap());
    env.config_home = Some(dir.path().to_owned());
    env.data_home = Some(dir.path().join("data"));
    Fixture { dir, env }
}

impl Fixture {
    fn load(&self) -> Result<ServerConfig, ConfigError> {
        load_server(&ServerArgs::default(), &self.env)
    }
}

fn load(file: &str, variables: &[(&str, &str)]) -> Result<ServerConfig, ConfigError> {
    fixture(Some(file), variables).load()
}

fn error_of(file: &str) -> ConfigError {
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
fn variables_alone_configure_a_server() {
    let config = fixture(None, &[OPENAI, ANTHROPIC]).load().unwrap();
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
    let alone = fixture(None, &[OPENAI]).load().unwrap();
    assert_eq!(
        alone.notes[1],
        "panel of 3 models: all from one provider (openai); add another, because models of one maker make similar mistakes"
    );
    let through_one = fixture(None, &[("OPENROUTER_API_KEY", "secret")]).load().unwrap();
    assert_eq!(
        through_one.notes[1],
        "panel of 3 models: chosen from one provider (openrouter), different makers first"
    );
}

#[test]
fn flags_outrank_variables_outrank_the_file() {
    let file = "listen = \"127.0.0.1:1001\"\ndata_dir = \"store\"\n";
    let by_file = fixture(Some(file), &[OPENAI]);
    let config = by_file.load().unwrap();
    assert_eq!(config.listen.port(), 1001);
    assert_eq!(config.data_dir, by_file.dir.path().join("store"));

    let by_variable = fixture(Some(file), &[OPENAI, ("MK_LISTEN", "[::1]:1002"), ("MK_DATA_DIR", "/x")]);
    let config = by_variable.load().unwrap();
    assert_eq!((config.listen.port(), config.data_dir), (1002, "/x".into()));

    let listen = Some("127.0.0.1:1003".to_owned());
    let args = ServerArgs { listen, data_dir: Some("/y".into()), ..ServerArgs::default() };
    let config = load_server(&args, &by_variable.env).unwrap();
    assert_eq!(config.origins.get("listen"), Origin::Flag("--listen"));
    assert_eq!((config.listen.port(), config.data_dir), (1003, "/y".into()));

    let wrong = fixture(None, &[OPENAI, ("MK_LISTEN", "8080")]).load().unwrap_err();
    assert!(wrong.message.starts_with("MK_LISTEN must be an address and port such as"), "{wrong}");
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
        effort = "low"
        model_timeout = "31s"
        deadline = "2m"
        [verify.domains.legal]
        panel = ["google/gemini-3.5-flash", "openai/gpt-5.4-mini"]
        deadline = "3m"
        effort = "high"
        [inference]
        first_token_timeout_with_fallback = "11s"
        drop_unsupported = true
        fallbacks = { "openai/gpt-5.4-mini" = ["anthropic/claude-haiku-4-5"] }
    "#;
    let config = load(file, &[OPENAI, ANTHROPIC]).unwrap();
    assert_eq!(config.trusted_proxies.len(), 2);
    assert_eq!(config.limits.keys.per_minute, 0);
    let openai = &config.providers[0];
    assert_eq!(
        (openai.base_url.as_str(), openai.max_concurrent, openai.call_policy.retries),
        ("https://api.openai.com/v1", 8, 0)
    );
    assert_eq!(
        (openai.connect_timeout, openai.call_policy.total_timeout),
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
    assert_eq!((general.effort, legal.effort), (Effort::Low, Effort::High));
    assert_eq!(config.verify.max_concurrent, 65);
    assert_eq!(config.inference.first_token_timeout_with_fallback, Duration::from_secs(11));
    assert!(config.inference.drop_unsupported);
    assert_eq!(config.inference.fallbacks["openai/gpt-5.4-mini"], ["anthropic/claude-haiku-4-5"]);
    let unkeyed =
        config.warnings.iter().filter(|warning| warning.contains("is called without a key")).count();
    assert_eq!(unkeyed, 2, "{:?}", config.warnings);
}

#[test]
fn the_data_directory_needs_no_provider() {
    let fixture =
        fixture(Some("data_dir = \"/srv/mk\"\n[providers.openai]\napi_key_env = \"NOT_SET\"\n"), &[]);
    assert_eq!(
        load_database(&ServerArgs::default(), &fixture.env),
        Ok(StorePlace::Directory("/srv/mk".into()))
    );
    assert!(fixture.load().is_err());
}

#[test]
fn a_configured_database_is_used_unless_a_flag_names_a_directory() {
    let file = "database_url = \"postgres://mk:secret@one.example/mk\"\n";
    let place = |fixture: &Fixture, args: &ServerArgs| load_database(args, &fixture.env).unwrap().to_string();
    let by_file = fixture(Some(file), &[OPENAI]);
    assert_eq!(place(&by_file, &ServerArgs::default()), "postgres://one.example:5432/mk");
    let config = by_file.load().unwrap();
    assert_eq!(config.store_place().to_string(), "postgres://one.example:5432/mk");
    assert!(!format!("{config:?}").contains("secret"));

    let other = ("MK_DATABASE_URL", "postgresql://mk:secret@two.example/mk");
    let by_variable = fixture(Some(file), &[OPENAI, other, ("MK_DATA_DIR", "/x")]);
    assert_eq!(place(&by_variable, &ServerArgs::default()), "postgres://two.example:5432/mk");
    let args = ServerArgs { data_dir: Some("/y".into()), ..ServerArgs::default() };
    assert_eq!(place(&by_variable, &args), "/y");

    let back = fixture(Some(file), &[OPENAI, ("MK_DATABASE_URL", "sqlite")]);
    assert_eq!(back.load().unwrap().database, DatabaseUrl::Sqlite);

    let mut homeless = fixture(Some(file), &[]);
    homeless.env.data_home = None;
    assert_eq!(place(&homeless, &ServerArgs::default()), "postgres://one.example:5432/mk");
}

#[test]
fn the_address_of_a_database_may_be_a_credential() {
    let credentials = tempfile::tempdir().unwrap();
    fs::write(credentials.path().join("MK_DATABASE_URL"), "postgres://mk:secret@db.example/mk\n").unwrap();
    let directory = ("CREDENTIALS_DIRECTORY", credentials.path().to_str().unwrap());
    let config = fixture(None, &[OPENAI, directory]).load().unwrap();
    assert_eq!(config.database.to_string(), "postgres://db.example:5432/mk");
    assert_eq!(config.origins.get("database_url"), Origin::Variable(DATABASE_URL));
}
