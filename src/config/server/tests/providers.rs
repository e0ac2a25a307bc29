//! Which providers, models and panels follow from a configuration, and their timeouts and retries.

use super::*;
use crate::api::guard::{BlockOn, Guard};

#[test]
fn a_local_ollama_is_found_by_its_port() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut fixture = fixture(None, &[]);
    fixture.env.ollama = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let count = stream.read(&mut [0; 1024]).unwrap();
        assert!(count > 0);
        let body = r#"{"data":[{"id":"llama3.1:8b"},{"id":"qwen2.5:7b"}]}"#;
        stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes()).unwrap();
    });
    let config = fixture.load().unwrap();
    server.join().unwrap();
    assert_eq!(config.verify.general.panel, ["ollama/llama3.1:8b", "ollama/qwen2.5:7b"]);
    assert_eq!(config.providers[0].base_url, format!("http://{}/v1", fixture.env.ollama));
    assert!(config.providers[0].api_key.is_none());
    assert!(config.notes[0].contains("2 models"), "{:?}", config.notes);
}

#[test]
fn the_sandbox_replaces_all_providers() {
    let file = "[limits]\nper_minute = 5\n[providers.openai]\napi_key_env = \"NOT_SET\"\n\
                [verify]\npanel = [\"openai/x\", \"openai/y\"]\nmax_claims = 7\n";
    let fixture = fixture(Some(file), &[OPENAI]);
    let args = ServerArgs { sandbox: true, ..ServerArgs::default() };
    let config = load_server(&args, &fixture.env).unwrap();
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
fn a_model_s_settings_outrank_its_provider_s() {
    let file = r#"
        [providers.openai]
        first_byte_timeout = "10s"
        idle_timeout = "20s"
        total_timeout = "30s"
        first_token_timeout = "7s"
        whole_answer_timeout = "70s"
        retries = 0
        breaker_failures = 0
        breaker_pause = "1m"
        breaker_max_pause = "5m"
        [providers.openai.models.own]
        first_byte_timeout = "11s"
        idle_timeout = "21s"
        total_timeout = "31s"
        first_token_timeout = "8s"
        whole_answer_timeout = "80s"
        retries = 10
        breaker_failures = 1000
        breaker_pause = "1ms"
        breaker_max_pause = "2ms"
    "#;
    let config = load(file, &[]).unwrap();
    let seconds = Duration::from_secs;
    let general = CallPolicy {
        retries: 0,
        first_byte_timeout: seconds(10),
        idle_timeout: seconds(20),
        total_timeout: seconds(30),
        first_token_timeout: Some(seconds(7)),
        whole_answer_timeout: Some(seconds(70)),
        breaker_failures: 0,
        breaker_pause: seconds(60),
        breaker_max_pause: seconds(300),
    };
    assert_eq!(config.providers[0].call_policy("other"), general);
    let own = CallPolicy {
        retries: 10,
        first_byte_timeout: seconds(11),
        idle_timeout: seconds(21),
        total_timeout: seconds(31),
        first_token_timeout: Some(seconds(8)),
        whole_answer_timeout: Some(seconds(80)),
        breaker_failures: 1000,
        breaker_pause: Duration::from_millis(1),
        breaker_max_pause: Duration::from_millis(2),
    };
    assert_eq!(config.providers[0].call_policy("own"), own);
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
fn formats_are_as_configured_or_as_usual_at_the_address() {
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
fn too_small_a_panel_gets_a_warning_and_is_not_refused() {
    let file = "[providers.local]\nbase_url = \"http://127.0.0.1:8000/v1\"\n";
    let config = load(file, &[]).unwrap();
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].starts_with("the panel has no model"), "{:?}", config.warnings);
    let one = format!("{file}[verify]\npanel = [\"local/x\"]\n");
    assert!(load(&one, &[]).unwrap().warnings[0].starts_with("the panel has one model only"));
    let for_chat_only = load("[providers.openai]\n[verify]\npanel = []\n", &[]).unwrap();
    let is_about_panels = |text: &&String| text.contains("panel");
    assert_eq!(for_chat_only.warnings.iter().find(is_about_panels), None);
    assert!(for_chat_only.notes.iter().any(|note| note.starts_with("no panel: chat only, as set in ")));
    assert!(for_chat_only.verify.general.panel.is_empty() && for_chat_only.verify.legal.panel.is_empty());
}

#[test]
fn models_being_retired_are_named() {
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
fn a_key_file_is_read_beside_the_configuration() {
    let fixture = fixture(Some("[providers.openai]\napi_key_file = \"key\"\n"), &[]);
    fs::write(fixture.dir.path().join("key"), "sk-from-file\n").unwrap();
    let config = fixture.load().unwrap();
    assert_eq!(config.providers[0].api_key.as_ref().unwrap().expose_secret(), "sk-from-file");
}

#[test]
fn answers_cannot_be_verified_without_a_panel() {
    let with = |panel: &str, rest: &str| {
        let file = format!(
            "[providers.openai]\napi_key_env = \"OPENAI_API_KEY\"\n[verify]\npanel = {panel}\n{rest}"
        );
        load(&file, &[OPENAI])
    };
    let warns =
        |config: &ServerConfig| config.warnings.iter().any(|warning| warning.contains("has no panel"));
    let all = "[inference]\nverify = \"block\"\nblock_on = [\"unchecked\", \"failed\"]\n";
    let one = "[models.fast]\ntargets = [\"openai/a\"]\nverify = \"flag\"\n";
    for (panel, rest, expected) in [
        ("[]", all, true),
        ("[]", one, true),
        ("[]", "[inference]\nverify = \"off\"\n", false),
        ("[\"openai/a\", \"openai/b\"]", all, false),
    ] {
        assert_eq!(warns(&with(panel, rest).unwrap()), expected, "{panel} {rest}");
    }
    let read = with("[]", all).unwrap().inference;
    assert_eq!((read.verify, read.block_on), (Some(Guard::Block), vec![BlockOn::Unchecked, BlockOn::Failed]));
    assert_eq!(with("[]", one).unwrap().inference.pools["fast"].verify, Some(Guard::Flag));
    for wrong in ["verify = \"on\"", "block_on = []", "block_on = [\"lies\"]"] {
        assert!(with("[]", &format!("[inference]\n{wrong}\n")).is_err(), "{wrong}");
    }
}
