//! How a configuration is presented: the example file, and the listing of values.

use super::*;

#[test]
fn settings_of_simulated_models_are_listed_too() {
    let file = "[providers.sandbox]\nbreaker_failures = 3\n[providers.sandbox.models.alpha]\nretries = 0\n";
    let listed = server_listing(&load(file, &[]).unwrap());
    let value = |key: &str| listed.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str());
    assert_eq!(value("providers.sandbox.breaker_failures"), Some("3"));
    assert_eq!(value("providers.sandbox.models.\"alpha\".retries"), Some("0"));
    assert_eq!(value("providers.sandbox.base_url"), None);
}

#[test]
fn the_example_changes_nothing_and_shows_the_defaults() {
    let bare = fixture(None, &[OPENAI]).load().unwrap();
    let untouched = load(&example(), &[OPENAI]).unwrap();
    let settings: String = example()
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
            // The catalogue's prices stand in the example, which is compared with the catalogue below; and so does a
            // pool, of which there is none by default.
            let is_elsewhere =
                |key: &str| key == "data_dir" || key.ends_with("_usd_per_mtok") || key.starts_with("models.");
            values.filter(|(key, _)| !is_elsewhere(key)).collect::<Vec<_>>()
        };
        assert_eq!(without_place(config), without_place(&bare));
        assert_eq!(config.verify, bare.verify);
        let inference =
            crate::inference::Settings { pools: bare.inference.pools.clone(), ..config.inference.clone() };
        assert_eq!(inference, bare.inference);
        assert!(config.warnings.is_empty());
    }
    let price = uncommented.providers[0].models["gpt-5.4-mini"].price;
    assert_eq!(price, catalog::model("openai/gpt-5.4-mini").unwrap().price);
    // What the contract lists, the example shows.
    for entry in server_listing(&uncommented) {
        let key = entry.key.rsplit('.').next().unwrap();
        let documented =
            example().contains(&format!("\n#{key} = ")) || example().contains(&format!("  {key} = "));
        // Secrets are no settings of the file.
        assert!(documented || ["api_key", "otlp_headers"].contains(&key), "{}", entry.key);
    }
}

#[test]
fn the_example_is_written_once() {
    let fixture = fixture(None, &[]);
    let path = init(&ServerArgs::default(), &fixture.env).unwrap();
    assert_eq!(path, fixture.dir.path().join("server.toml"));
    assert_eq!(fs::read_to_string(&path).unwrap(), example());
    fs::write(&path, "mine").unwrap();
    let error = init(&ServerArgs::default(), &fixture.env).unwrap_err();
    assert!(error.message.ends_with("already exists and is unchanged"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn the_listing_shows_origins_and_no_secrets() {
    let file = "max_body_bytes = 5\n[providers.openai]\napi_key_env = \"OPENAI_API_KEY\"\nretries = 1\n\
                [verify.domains.legal]\ncache = \"30d\"\nmax_claims = 3\n\
                [providers.openai.models.\"o.3\"]\nretries = 4\nbreaker_pause = \"2s\"\n\
                input_usd_per_mtok = 0.5\noutput_usd_per_mtok = 2\ncached_input_usd_per_mtok = 0.25\n\
                cache_write_usd_per_mtok = 1.5\nfallbacks = [\"openai/gpt-5.4-mini\"]\n\
                [usage]\nretention = \"400d\"\n";
    let store = ("MK_LIMITS_URL", "rediss://mk:hunter2@db.example/1");
    let database = ("MK_DATABASE_URL", "postgres://robin:hunter2@db.example/mk?sslmode=require");
    let fixture = fixture(Some(file), &[OPENAI, ("MK_LISTEN", "127.0.0.1:9"), store, database]);
    let entries = server_listing(&fixture.load().unwrap());
    let path = fixture.dir.path().join("server.toml").display().to_string();
    let shown = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("{key}"));
        (entry.value.as_str(), entry.origin.to_string())
    };
    assert_eq!(shown("listen"), ("\"127.0.0.1:9\"", "MK_LISTEN".to_owned()));
    assert_eq!(shown("limits_url"), ("\"rediss://db.example:6379/1\"", "MK_LIMITS_URL".to_owned()));
    let address = "\"postgres://db.example:5432/mk\"";
    assert_eq!(shown("database_url"), (address, "MK_DATABASE_URL".to_owned()));
    assert_eq!(shown("max_body_bytes"), ("5", format!("{path}:1")));
    assert_eq!(shown("limits.per_day"), ("1000", "default".to_owned()));
    assert_eq!(shown("usage.retention"), ("\"400d\"", format!("{path}:17")));
    assert_eq!(shown("providers.openai.api_key"), ("set", format!("{path}:3")));
    assert_eq!(shown("providers.openai.retries"), ("1", format!("{path}:4")));
    assert_eq!(shown("providers.openai.models.\"o.3\".retries"), ("4", format!("{path}:9")));
    assert_eq!(shown("providers.openai.models.\"o.3\".breaker_pause"), ("\"2s\"", format!("{path}:10")));
    assert_eq!(shown("providers.openai.models.\"o.3\".input_usd_per_mtok"), ("0.5", format!("{path}:11")));
    assert_eq!(shown("providers.openai.models.\"o.3\".output_usd_per_mtok"), ("2", format!("{path}:12")));
    assert_eq!(
        shown("providers.openai.models.\"o.3\".cached_input_usd_per_mtok"),
        ("0.25", format!("{path}:13"))
    );
    assert_eq!(
        shown("providers.openai.models.\"o.3\".cache_write_usd_per_mtok"),
        ("1.5", format!("{path}:14"))
    );
    let fallbacks = shown("providers.openai.models.\"o.3\".fallbacks");
    assert_eq!(fallbacks, ("[\"openai/gpt-5.4-mini\"]", format!("{path}:15")));
    assert_eq!(shown("providers.openai.breaker_failures"), ("5", "default".to_owned()));
    assert_eq!(shown("providers.openai.first_token_timeout"), ("", "default".to_owned()));
    let of_models = entries.iter().filter(|entry| entry.key.contains(".models.")).count();
    assert_eq!(of_models, 7, "of a model only what is set");
    assert_eq!(shown("verify.extractor"), ("\"openai/gpt-5.4-mini\"", "chosen at start".to_owned()));
    assert_eq!(shown("verify.domains.legal.max_claims"), ("3", format!("{path}:7")));
    assert_eq!(shown("verify.domains.legal.cache"), ("\"30d\"", format!("{path}:6")));
    assert_eq!(shown("verify.cache"), ("\"off\"", "default".to_owned()));
    assert!(entries.iter().all(|entry| !entry.value.contains("secret") && !entry.value.contains("hunter")));
    assert!(entries.iter().all(|entry| entry.key != "verify.domains.legal.panel"), "only what differs");
}
