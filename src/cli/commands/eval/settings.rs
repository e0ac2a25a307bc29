//! What an evaluation was asked with, so that its figures can be told from those of another.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::args::EvalArgs;
use super::panel::Panels;
use super::reports::document::fields;
use crate::api::verify::{Domain, VerifyRequest};
use crate::clock::Clock;
use crate::config::ClientConfig;
use crate::hex::hex;

/// The settings of an evaluation.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// When it began, RFC 3339.
    pub(super) date: String,
    /// What verdicts depend on: the server, and the request without its statement.
    pub(super) pinned: Map<String, Value>,
    /// What was asked, and how.
    other: Map<String, Value>,
}

impl Settings {
    /// Settings from arguments and configuration.
    pub(super) fn new(args: &EvalArgs, config: &ClientConfig, request: &VerifyRequest) -> Self {
        let server = match (args.backend.sandbox, args.backend.local) {
            (true, _) => "sandbox",
            (_, true) => "local",
            _ => &config.server,
        };
        let pinned = json!({
            "server": server,
            "domain": request.domain.map(Domain::as_str),
            "min_required": request.min_required,
            "total_models": request.total_models,
            "as_of": request.as_of,
            "context_sha256": request.context.as_ref().map(|context| sha256([context])),
        });
        let other = json!({
            "limit": args.limit,
            "shuffle": args.shuffle,
            "seed": args.shuffle.then_some(args.seed),
            "repeat": args.repeat,
            "open": args.open,
        });
        Self { date: Clock::system().now().rfc3339(), pinned: fields(pinned), other: fields(other) }
    }

    /// Adds what is known only later.
    pub(super) fn add(&mut self, name: &str, value: Value) {
        self.other.insert(name.to_owned(), value);
    }

    /// All of them as JSON, with the panels that were asked and the numbers that they used, where those are the same for
    /// all.
    pub(super) fn document(&self, panels: &Panels) -> Value {
        let given = self.pinned.iter().chain(&self.other);
        let mut all: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, used) in [
            ("min_required", panels.common(|panel| panel.min_required)),
            ("total_models", panels.common(|panel| panel.total_models)),
        ] {
            if let Some(used) = used {
                all.insert(name.to_owned(), used.into());
            }
        }
        all.insert("panels".to_owned(), json!(panels));
        Value::Object(all)
    }
}

/// The SHA-256 of texts, one after the other, in hexadecimal digits.
pub(super) fn sha256(texts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_ref());
    }
    hex(&hash.finalize())
}
