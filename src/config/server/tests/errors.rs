//! Errors and warnings on a configuration name the place and the remedy, and contain no secrets.

use super::*;

#[test]
fn without_providers_the_error_explains_three_ways_forward() {
    let error = fixture(None, &[]).load().unwrap_err();
    assert_eq!(error.hints.len(), 3);
    for (hint, way) in error.hints.iter().zip(["OPENAI_API_KEY", "mk config init", "mk serve --sandbox"]) {
        assert!(hint.contains(way), "{hint}");
    }
}

#[test]
fn a_named_file_must_exist() {
    let fixture = fixture(None, &[OPENAI]);
    let missing = fixture.dir.path().join("no.toml");
    let args = ServerArgs { config: Some(missing.clone()), ..ServerArgs::default() };
    let error = load_server(&args, &fixture.env).unwrap_err();
    assert_eq!(
        error.message,
        format!("the configuration file {} (--config) does not exist", missing.display())
    );
    let by_variable = self::fixture(None, &[OPENAI, ("MK_CONFIG", "/no/such.toml")]);
    assert!(by_variable.load().unwrap_err().message.contains("(MK_CONFIG) does not exist"));
    assert_eq!(fixture.load().unwrap().file, None);
}

#[test]
fn errors_come_with_line_and_remedy() {
    let ten = (0..10).map(|n| format!("\"openai/{n}\"")).collect::<Vec<_>>().join(", ");
    let too_many = format!("[providers.openai]\n[verify]\npanel = [{ten}]");
    for (file, expected) in [
        ("[limits]\nper_minut = 1", "unknown key `limits.per_minut`"),
        ("[limits]\nper_minut = 1", "line 2; did you mean `per_minute`?"),
        ("[limitz]\nper_minute = 1", "did you mean `limits`?"),
        ("listen = \"8080\"", "must be an address and port such as"),
        (
            "database_url = \"postgers://u:secret@h/db\"",
            "must be \"sqlite\", or the address of a PostgreSQL database",
        ),
        (
            "database_url = \"postgres://u:se/cret@h/db\"",
            "contains a character that must be percent-encoded: `@`",
        ),
        ("database_url = \"postgres://u:secret@h/db?ssl=true\"", "has an unknown parameter or value"),
        (
            "limits_url = \"redsi://:secret@h\"",
            "must be \"memory\", or the address of a Redis or Valkey server",
        ),
        ("limits_url = \"redis://:secret@h/first\"", "or the address of a Redis or Valkey server"),
        ("tls_cert = \"a.pem\"", "also needs `tls_key`"),
        ("[usage]\nretention = \"0d\"", "must be a number of days from 1 to 36500"),
        ("[verify]\ncache = \"0d\"", "must be \"off\", or a number of days from 1 to 36500"),
        ("[verify.domains.legal]\ncache = \"12h\"", "must be \"off\", or a number of days from 1 to 36500"),
        ("tls_cert = \"a.pem\"\ntls_key = \"b.pem\"", "a.pem, which cannot be read: no such file"),
        ("trusted_proxies = [\"10.0.0.0/33\"]", "must be a list of networks"),
        ("[providers.Open]\nbase_url = \"https://a\"", "use only a-z, 0-9, - and _"),
        ("[providers.mine]", "needs a `base_url`"),
        ("[verify]\neffort = \"tiny\"", "must be \"lowest\" (the lowest that a model supports), \"none\""),
        (
            "[providers.mine]\nbase_url = \"https://u:secret@h\"",
            "must be an http:// or https:// address without",
        ),
        ("[providers.openai]\napi_key_header = \"api-key\"", "set `api_key_env` or `api_key_file`"),
        ("[providers.openai]\napi_key_header = \"content-type\"", "must be the name of the header"),
        (
            "[providers.openai]\nkind = \"azure\"",
            "must be \"openai\", \"anthropic\", \"google\" or \"sandbox\"",
        ),
        ("[providers.openai]\napi_key = \"secret\"", "is not allowed in this file"),
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
            "must be \"sandbox\" for a provider of this name",
        ),
        ("[providers.toys]\nkind = \"sandbox\"", "name the table [providers.sandbox]"),
        ("[providers.google]\nkind = \"openai\"", "needs a `base_url` for kind = \"openai\""),
        ("[providers.openai]\nconnect_timeout = 5", "must be a duration such as"),
        ("[providers.openai]\nretries = 11", "must be a whole number from 0 to 10"),
        ("[providers.openai]\nbreaker_failures = 1001", "must be a whole number from 0 to 1000"),
        ("[providers.openai]\nbreaker_pause = \"6m\"", "must be a duration of at most five minutes"),
        ("[providers.openai.models.x]\nretries = -1", "must be a whole number from 0 to 10"),
        ("[providers.openai.models.x]\nbreaker_pauses = \"1s\"", "did you mean `breaker_pause`?"),
        ("[providers.openai.models.x]\nconnect_timeout = \"1s\"", "set it in the provider's table"),
        ("[providers.openai.models.x]\nmax_concurrent = 1", "set it in the provider's table"),
        ("[providers.openai.models.x]\ninput_usd_per_mtok = 1", "needs both"),
        ("[providers.openai.models.\"a b\"]", "must be a model's name: one word"),
        ("[providers.openai.models.\"a\\u202eb\"]", "must be a model's name: one word"),
        ("[providers.openai.models.\"\"]", "must be a model's name: one word"),
        (
            "[providers.openai.models.x]\ninput_usd_per_mtok = -1\noutput_usd_per_mtok = 1",
            "an amount in US dollars",
        ),
        ("[providers.openai.models.x]\nfallbacks = [\"mistral/y\"]", "no provider mistral is configured"),
        (
            "[providers.sandbox]\n[verify]\npanel = [\"sandbox/alpha\", \"sandbox/bta\"]",
            "which is not in the sandbox; did you mean `beta`?",
        ),
        ("[verify]\nextractor = \"openai\"\n[providers.openai]", "models are written as provider/model_name"),
        ("[verify]\npanel = [\"opnai/x\"]\n[providers.openai]", "is configured; did you mean `openai`?"),
        ("[verify]\npanel = [\"openai/x\", \"openai/x\"]\n[providers.openai]", "names `openai/x` twice"),
        ("[verify]\npannel = []", "did you mean `panel`?"),
        ("[verify.domains.medical]\n", "unknown key `verify.domains.medical`"),
        ("[verify.domains.legal]\nmax_concurrent = 5\n", "set it under [verify]"),
        ("[inference]\nfallbacks = { \"x/y\" = [] }\n[providers.openai]", "no provider x is configured"),
        ("[inference]\nfallbacks = { \"openai/y\" = 5 }\n[providers.openai]", "must be a list of strings"),
        (
            "[inference]\nfallbacks = { \"*/y\" = [] }\n[providers.openai]",
            "are written as provider/model_name",
        ),
        (
            "[inference]\nfallbacks = { \"openai/*-*\" = [] }\n[providers.openai]",
            "a pattern must have exactly one `*`",
        ),
        (
            "[inference]\nfallbacks = { \"openai/y\" = [\"openai/*\"] }\n[providers.openai]",
            "has no `*` to match",
        ),
        (
            "[inference]\nfallbacks = { \"openai/*\" = [\"openai/*\"] }\n[providers.openai]",
            "as its own fallback",
        ),
        ("[inference]\nfallbacks = { \"openai/*\" = [\"x/*\"] }\n[providers.openai]", "no provider x is"),
        ("a = ", "line 1 is not valid TOML"),
        (too_many.as_str(), "names 10 models; a panel has at most 9"),
    ] {
        let error = error_of(file);
        assert!(in_full(&error).contains(expected), "{file}\n{error:?}");
        assert!(error.message.contains("server.toml"), "{file}\n{error}");
    }
    let hints = error_of("[verify]\npanel = [\"opnai/x\"]\n[providers.openai]\n[providers.groq]").hints;
    assert_eq!(hints, ["did you mean `openai`?", "configured providers: openai, groq"]);
    let by_variable =
        fixture(None, &[OPENAI, ("MK_DATABASE_URL", "postgres://u:secret@h/db#x")]).load().unwrap_err();
    assert!(
        by_variable.message.starts_with("MK_DATABASE_URL contains a character that must be percent-encoded"),
        "{by_variable}"
    );
    assert!(!by_variable.message.contains("secret"), "{by_variable}");
}

#[test]
fn a_model_is_not_its_own_fallback() {
    for file in [
        "[inference]\nfallbacks = { \"openai/y\" = [\"openai/z\", \"openai/y\"] }\n[providers.openai]",
        "[providers.openai.models.y]\nfallbacks = [\"openai/z\", \"openai/y\"]",
    ] {
        let error = error_of(file);
        assert!(error.message.contains("line 2 names the model `openai/y` as its own fallback"), "{error}");
        assert!(error_of(&file.replace("openai/y\"]", "x/y\"]")).message.contains("no provider x"), "{file}");
    }
}

/// Message and hints, joined by semicolons.
fn in_full(error: &ConfigError) -> String {
    std::iter::once(&error.message).chain(&error.hints).map(String::as_str).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_known_name_at_another_address_gets_a_warning_about_its_format() {
    let warned = |kind: &str| {
        let file = format!(
            "[providers.anthropic]\n{kind}base_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"OPENAI_API_KEY\"\n"
        );
        let warnings = load(&file, &[OPENAI]).unwrap().warnings;
        warnings.into_iter().filter(|warning| warning.contains("format")).collect::<Vec<_>>()
    };
    let [warning] = &warned("")[..] else { panic!("{:?}", warned("")) };
    assert!(warning.starts_with("provider anthropic is called in the format \"openai\""), "{warning}");
    for kind in ["anthropic", "openai"] {
        assert!(warned(&format!("kind = {kind:?}\n")).is_empty(), "{kind}");
    }
}

#[test]
fn an_unencrypted_key_gets_a_warning() {
    let file = "[providers.lan]\nbase_url = \"http://10.0.0.5/v1\"\napi_key_env = \"OPENAI_API_KEY\"\n";
    let warnings = load(file, &[OPENAI]).unwrap().warnings;
    assert_eq!(warnings[0], "the key of provider lan is sent unencrypted to http://10.0.0.5/v1");
}
