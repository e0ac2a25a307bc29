//! Verifications with a panel of three formats, each provider on its own socket.

use mk::api::Service;
use mk::config::{Env, ServerArgs, ServerConfig};
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::formats::Format;
use crate::support::panel::panel_by;
use crate::support::provider::{FakeProvider, ModelRequest, Reply};
use crate::support::server::{NOON, Setup};

/// One provider of each format.
struct Providers {
    chat: FakeProvider,
    anthropic: FakeProvider,
    google: FakeProvider,
}

impl Providers {
    /// Starts one provider per format. The extractor is the Anthropic model; the panel replies according to `script`.
    async fn start(script: impl Fn(&ModelRequest) -> Reply + Clone + Send + Sync + 'static) -> Self {
        let start = || {
            let script = script.clone();
            panel_by(move |_, ask| script(ask))
        };
        Self { chat: start().await, anthropic: start().await, google: start().await }
    }

    fn config(&self) -> ServerConfig {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server.toml");
        let (chat, anthropic, google) =
            (&self.chat.base_url, &self.anthropic.base_url, &self.google.base_url);
        let text = format!(
            r#"
data_dir = "/nowhere"
[providers.openai]
base_url = "{chat}"
api_key_env = "CHAT_KEY"
retries = 0
[providers.anthropic]
kind = "anthropic"
base_url = "{anthropic}"
api_key_env = "ANTHROPIC_KEY"
retries = 0
[providers.google]
kind = "google"
base_url = "{google}"
api_key_env = "GOOGLE_KEY"
retries = 0
[verify]
extractor = "anthropic/claude-haiku-4-5"
extractor_fallbacks = []
auditor = "none"
panel = ["openai/gpt-5.4-mini", "anthropic/claude-haiku-4-5", "google/gemini-3.5-flash"]
standby = []
"#
        );
        std::fs::write(&file, text).unwrap();
        let keys = [("CHAT_KEY", "sk-chat"), ("ANTHROPIC_KEY", "sk-anthropic"), ("GOOGLE_KEY", "sk-google")];
        let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
        mk::config::load_server(&arguments, &Env::bare(keys, NOON)).unwrap()
    }

    async fn verify(&self) -> Events {
        let server = Setup::new(self.config()).start().await;
        let key = server.key(Service::Verify);
        Events::read(
            server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
        )
        .await
    }
}

#[tokio::test]
async fn a_panel_of_three_formats_verifies_a_claim() {
    let providers = Providers::start(|ask| ask.choose("Paris")).await;
    let events = providers.verify().await;
    let result = &events.results()[0];
    assert_eq!(result["assessment"], "TRUE");
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 3, "{result}");

    // Thinking and cached prompt tokens are counted as each format reports them: 100 + 10 per call in every format.
    let completed = events.end("completed");
    assert_eq!(completed["tokenUsage"]["totalTokens"], 4 * 110, "{completed}");

    for (provider, format, key, calls) in [
        (&providers.chat, Format::Chat, "sk-chat", 1),
        (&providers.anthropic, Format::Anthropic, "sk-anthropic", 2),
        (&providers.google, Format::Google, "sk-google", 1),
    ] {
        let asks = provider.requests();
        assert_eq!(asks.len(), calls, "{format:?}");
        for ask in asks {
            assert_eq!((ask.format, ask.key.as_deref()), (format, Some(key)));
            assert!(ask.text().contains("END "), "{format:?} transmits the delimited texts");
        }
    }
    let google = &providers.google.requests()[0].body;
    assert_eq!(google["generationConfig"]["responseJsonSchema"]["required"], json!(["found", "answer"]));
    let anthropic = providers.anthropic.requests();
    let extraction = anthropic.iter().find(|ask| ask.task == "claims").unwrap();
    assert_eq!(extraction.body["max_tokens"], 64_000, "the model's own maximum, as extractions set no limit");
    assert_eq!(extraction.body["output_config"]["format"]["type"], "json_schema");
    assert!(!events.raw.contains("sk-"), "no key reaches a caller");
}

#[tokio::test]
async fn a_repair_request_works_in_every_format() {
    let providers = Providers::start(|ask| {
        let is_repair = ask.text().contains("It is Paris.");
        if is_repair { ask.choose("Paris") } else { Reply::Text("It is Paris.".to_owned()) }
    })
    .await;
    let events = providers.verify().await;
    assert_eq!(events.results()[0]["assessment"], "TRUE", "{}", events.raw);
    let roles = |turns: &Value| {
        let turns = turns.as_array().unwrap().iter();
        turns.map(|turn| turn["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let last = |provider: &FakeProvider| provider.requests().pop().unwrap().body;
    assert_eq!(roles(&last(&providers.anthropic)["messages"]), ["user", "assistant", "user"]);
    assert_eq!(roles(&last(&providers.google)["contents"]), ["user", "model", "user"]);
}

#[tokio::test]
async fn failures_of_every_format_are_reported() {
    let providers = Providers::start(|ask| match ask.format {
        Format::Chat => ask.choose("Paris"),
        Format::Anthropic => {
            let error = json!({"type": "authentication_error", "message": "invalid x-api-key sk-anthropic"});
            Reply::status(401, &json!({"type": "error", "error": error}))
        }
        Format::Google => Reply::status(200, &json!({"promptFeedback": {"blockReason": "OTHER"}})),
    })
    .await;
    let events = providers.verify().await;
    let result = &events.results()[0];
    assert_eq!(
        (&result["assessment"], &result["reason_code"]),
        (&json!("NO CONSENSUS"), &json!("insufficient_answers"))
    );
    let errors = [
        json!({"model": "anthropic/claude-haiku-4-5", "code": "auth_failed"}),
        json!({"model": "google/gemini-3.5-flash", "code": "refused"}),
    ];
    assert_eq!(result["model_errors"], json!(errors));
    assert!(!events.raw.contains("sk-"), "no key reaches a caller");
}
