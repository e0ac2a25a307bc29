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

    /// `more` goes into `[verify]`.
    fn config(&self, more: &str) -> ServerConfig {
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
{more}
"#
        );
        std::fs::write(&file, text).unwrap();
        let keys = [("CHAT_KEY", "sk-chat"), ("ANTHROPIC_KEY", "sk-anthropic"), ("GOOGLE_KEY", "sk-google")];
        let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
        mk::config::load_server(&arguments, &Env::bare(keys, NOON)).unwrap()
    }

    async fn verify(&self) -> Events {
        self.verify_with("").await
    }

    async fn verify_with(&self, more: &str) -> Events {
        let server = Setup::new(self.config(more)).start().await;
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

/// What the panel's first vote says about thinking, by format.
fn thinking(providers: &Providers) -> [Value; 3] {
    let vote = |provider: &FakeProvider| {
        provider.requests().into_iter().find(|ask| ask.task != "claims").unwrap().body
    };
    let (chat, anthropic, google) =
        (vote(&providers.chat), vote(&providers.anthropic), vote(&providers.google));
    let of_anthropic = json!([anthropic["thinking"]["type"], anthropic["output_config"]["effort"]]);
    [chat["reasoning_effort"].clone(), of_anthropic, google["generationConfig"]["thinkingConfig"].clone()]
}

#[tokio::test]
async fn models_that_reason_are_asked_with_the_least_effort_that_they_take() {
    let providers = Providers::start(|ask| ask.choose("Paris")).await;
    providers.verify().await;
    let least = [json!("none"), json!([null, null]), json!({"thinkingLevel": "minimal"})];
    assert_eq!(thinking(&providers), least);
    // Neither is the extractor's told anything: its provider has it think only where that is asked for.
    assert!(providers.anthropic.requests().iter().all(|ask| ask.body["temperature"] == 0.0));
}

#[tokio::test]
async fn an_effort_is_told_in_each_format_and_to_the_extractor_too() {
    let panel = "effort = \"medium\"\n[verify.domains.general]\nextractor = \"anthropic/claude-sonnet-5\"\n\
                 extractor_fallbacks = []\n\
                 panel = [\"openai/gpt-5.4-mini\", \"anthropic/claude-sonnet-5\", \"google/gemini-3.5-flash\"]";
    let providers = Providers::start(|ask| ask.choose("Paris")).await;
    let events = providers.verify_with(panel).await;
    assert_eq!(events.results()[0]["assessment"], "TRUE");
    let medium = [json!("medium"), json!(["adaptive", "medium"]), json!({"thinkingLevel": "medium"})];
    assert_eq!(thinking(&providers), medium);
    let asked = providers.anthropic.requests();
    let extraction = asked.iter().find(|ask| ask.task == "claims").unwrap();
    assert_eq!(extraction.body["output_config"]["effort"], "medium");
    // A model that thinks takes no temperature in this format.
    assert!(asked.iter().all(|ask| ask.body.get("temperature").is_none()));
}

#[tokio::test]
async fn an_effort_that_a_model_refuses_is_raised_and_that_is_remembered() {
    let providers = Providers::start(|ask| {
        let message = "Unsupported value: 'reasoning_effort' does not support this value with this model.";
        match ask.body["reasoning_effort"].as_str() {
            Some("none" | "minimal") => {
                Reply::status(400, &json!({"error": {"message": message, "param": "reasoning_effort"}}))
            }
            _ => ask.choose("Paris"),
        }
    })
    .await;
    let server = Setup::new(providers.config("")).start().await;
    let key = server.key(Service::Verify);
    for expected in [&["none", "minimal", "low"][..], &["none", "minimal", "low", "low"]] {
        let request = server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."}));
        let events = Events::read(request.send().await.unwrap()).await;
        assert_eq!(events.results()[0]["model_errors"], json!([]));
        let sent: Vec<Value> =
            providers.chat.requests().into_iter().map(|ask| ask.body["reasoning_effort"].clone()).collect();
        assert_eq!(sent, expected);
    }
}
