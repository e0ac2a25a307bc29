//! Answers in the chat-completion format, written for providers that speak another one.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::chunks::{Chunks, usage_json};
use super::completion::{Completed, Completion, Labels};
use super::estimate;
use crate::money::Tokens;

/// What an answer took, in as much detail as the provider gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) usage: Tokens,
    /// Of the prompt, read from the provider's cache.
    pub(super) cached_tokens: Option<u64>,
    /// Of the answer, thoughts that the caller does not see.
    pub(super) reasoning_tokens: Option<u64>,
}

impl Spent {
    /// The documented usage object.
    pub(super) fn json(&self) -> Value {
        let mut value = usage_json(self.usage, false);
        if let Some(cached) = self.cached_tokens {
            value["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        if let Some(reasoning) = self.reasoning_tokens {
            value["completion_tokens_details"] = json!({"reasoning_tokens": reasoning});
        }
        value
    }
}

/// One choice of an answer.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// All texts as one; `None` if there was none.
    pub(super) text: Option<String>,
    /// In the format of `tool_calls`.
    pub(super) calls: Vec<Value>,
}

impl Said {
    /// Adds a text behind those that came before.
    pub(super) fn add(&mut self, text: &str) {
        self.text.get_or_insert_default().push_str(text);
    }

    /// The choice, ended for a reason of the chat-completion format.
    pub(super) fn choice(self, index: u32, finish: &str) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        // Callers read the length of a text that they expect; only beside calls they expect none.
        let no_text = if self.calls.is_empty() { json!("") } else { Value::Null };
        message.insert("content".to_owned(), self.text.map_or(no_text, Value::from));
        if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::from(self.calls));
        }
        json!({"index": index, "message": message, "finish_reason": finish})
    }
}

/// A call of a tool in the format of `tool_calls`; `arguments` become JSON inside a text.
pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
}

/// A complete answer. Without the provider's word on what it took, that is estimated and marked as such.
pub(super) fn completed(
    id: Option<&str>,
    choices: &[Value],
    spent: Option<Spent>,
    asked: &Completion<'_>,
    labels: &Labels,
) -> Completed {
    let (usage, shown) = if let Some(spent) = spent {
        (spent.usage, spent.json())
    } else {
        let said = choices.iter().map(|choice| estimate::said_characters(&choice["message"])).sum();
        let completion = estimate::length_tokens(said);
        let usage = Tokens { prompt: asked.prompt_tokens, completion };
        (usage, usage_json(usage, true))
    };
    let id = id.filter(|id| !id.is_empty()).map_or_else(|| crate::id::new("chatcmpl"), str::to_owned);
    let body = json!({
        "id": id,
        "object": "chat.completion",
        "created": labels.created,
        "model": &*labels.model,
        "choices": choices,
        "usage": shown,
    });
    Completed { body: Bytes::from(body.to_string()), usage }
}

/// Keeps the account of a stream whose provider says what it took now and then: what came since is estimated, so
/// that a stream which ends early is neither free nor without its prompt.
#[derive(Debug, Default)]
pub(super) struct Meter {
    reported: Option<Spent>,
    characters: u64,
    /// Whether something came since the provider's last word.
    is_behind: bool,
}

impl Meter {
    /// Text that came, shown or not.
    pub(super) fn count(&mut self, text: &str, chunks: &mut Chunks) {
        let characters = text.chars().count();
        self.characters = self.characters.saturating_add(characters as u64);
        self.is_behind = true;
        chunks.count(characters);
        if let Some(usage) = self.expected() {
            chunks.usage(usage, None);
        }
    }

    /// The provider's word, which holds for all that came until now.
    pub(super) fn report(&mut self, spent: Spent, chunks: &mut Chunks) {
        self.reported = Some(spent);
        self.is_behind = false;
        chunks.usage(spent.usage, Some(&spent.json().to_string()));
    }

    /// At the end: an account that the provider did not bring up to date is marked as estimated.
    pub(super) fn settle(&self, chunks: &mut Chunks) {
        if let Some(usage) = self.expected().filter(|_| self.is_behind) {
            chunks.usage(usage, Some(&usage_json(usage, true).to_string()));
        }
    }

    fn expected(&self) -> Option<Tokens> {
        let Tokens { prompt, completion } = self.reported?.usage;
        let estimated = estimate::length_tokens(self.characters);
        Some(Tokens { prompt, completion: completion.max(estimated) })
    }
}
