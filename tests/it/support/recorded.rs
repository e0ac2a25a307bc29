//! Providers of every format behind one server, which replay the recordings in `tests/data/providers`.

use std::path::Path;

use serde_json::{Value, json};

use super::chat::{Gateway, gateway_with};
use super::provider::{ModelRequest, Reply, StreamStep};

/// The formats: the provider's name here and the folder of its recordings.
pub const FORMATS: [(&str, &str); 3] = [("fake", "openai"), ("claude", "anthropic"), ("gemini", "google")];

/// Models of every format at the one fake provider: `fake/…`, `claude/…`, `gemini/…`.
pub async fn gateway(script: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static) -> Gateway {
    let others = "[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\nretries = 0\n\
                  [providers.gemini]\nkind = \"google\"\nbase_url = \"{base_url}\"\nretries = 0\n";
    gateway_with("", others, |setup| setup, script).await
}

/// A request for this model.
pub fn hello_to(model: &str, stream: bool) -> Value {
    let mut body =
        json!({"model": model, "messages": [{"role": "user", "content": "Hello"}], "stream": stream});
    if stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// Replays a recorded scenario: a stream or a complete response.
pub fn play(folder: &str, scenario: &str) -> Reply {
    let text = |file: &str| std::fs::read_to_string(path(folder, scenario).join(file));
    match text("stream.txt") {
        Ok(stream) => Reply::Stream(vec![StreamStep::Send(stream)]),
        Err(_) => Reply::Raw(200, Vec::new(), text("answer.json").unwrap()),
    }
}

/// The events of a recorded stream, each with its terminator.
pub fn events(folder: &str, scenario: &str) -> Vec<String> {
    let stream = std::fs::read_to_string(path(folder, scenario).join("stream.txt")).unwrap();
    stream.split_inclusive("\n\n").map(str::to_owned).collect()
}

fn path(folder: &str, scenario: &str) -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/providers")).join(folder).join(scenario)
}
