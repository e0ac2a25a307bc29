//! A panel of fake models behind one fake provider: `fake/extractor`, `fake/one` … `fake/five`.

use std::path::Path;

use mk::config::{Env, ServerArgs, ServerConfig};

use super::provider::{FakeProvider, ModelRequest, Reply, claim, claims};
use super::server::{NOON, Setup, TestServer};

/// The usual claim: the Eiffel Tower is in Paris.
pub fn eiffel() -> serde_json::Value {
    let mut found = claim(
        "The Eiffel Tower is in Paris.",
        "In which city is the Eiffel Tower?",
        "Paris",
        &["London", "Rome", "Berlin"],
    );
    // Without its stop, so that a statement may say something behind it: "The Eiffel Tower is in Paris: slowly."
    found["quote"] = "The Eiffel Tower is in Paris".into();
    found
}

/// The reply of an extractor that finds the usual claim.
pub fn finds_eiffel() -> Reply {
    claims(&[eiffel()])
}

/// The configuration file of a server on a free port, whose panel is `one`, `two` and `three` of the provider at
/// `base_url`, without standby models.
pub fn server_file(base_url: &str, data_dir: &Path) -> String {
    let data_dir = data_dir.display();
    format!(
        r#"
listen = "127.0.0.1:0"
data_dir = "{data_dir}"
[providers.fake]
kind = "openai"
base_url = "{base_url}"
retries = 0
[verify]
extractor = "fake/extractor"
extractor_fallbacks = []
auditor = "none"
panel = ["fake/one", "fake/two", "fake/three"]
standby = []
"#
    )
}

/// That configuration, loaded from a file as an operator would provide it.
pub fn config(base_url: &str) -> ServerConfig {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    std::fs::write(&file, server_file(base_url, Path::new("/nowhere"))).unwrap();
    let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([], NOON)).unwrap()
}

/// The setup of a server whose models are never called.
pub fn idle_setup() -> Setup {
    Setup::new(config("http://127.0.0.1:0"))
}

/// A server whose models are never called.
pub async fn idle_server() -> TestServer {
    idle_setup().start().await
}

/// A provider whose extractor finds the usual claim and whose panel replies according to `script`, which gets the
/// model's name.
pub async fn panel_by(script: impl Fn(&str, &ModelRequest) -> Reply + Send + Sync + 'static) -> FakeProvider {
    FakeProvider::start(move |ask| match ask.task.as_str() {
        "claims" => finds_eiffel(),
        _ => script(&ask.model, ask),
    })
    .await
}

/// A server with an agreeing panel whose extractor fails on statements that say "broken".
pub async fn failing_on_broken() -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask: &ModelRequest| match ask.task.as_str() {
        "claims" if ask.block("SECTION").contains("broken") => Reply::status(500, &serde_json::json!({})),
        "claims" => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    (server, provider)
}

/// A server in front of such a provider.
pub async fn with_panel(
    script: impl Fn(&str, &ModelRequest) -> Reply + Send + Sync + 'static,
) -> (TestServer, FakeProvider) {
    let provider = panel_by(script).await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    (server, provider)
}

/// A server whose panel agrees that the tower is in Paris.
pub async fn agreeing_panel() -> (TestServer, FakeProvider) {
    with_panel(|_, ask| ask.choose("Paris")).await
}

/// A server whose panel never answers.
pub async fn hanging_panel() -> (TestServer, FakeProvider) {
    with_panel(|_, _| Reply::Hang).await
}
