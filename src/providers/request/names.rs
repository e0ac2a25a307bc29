//! The names of participants (`name`), for formats that have none.
//!
//! A name only tells apart participants of the same role, so one that everybody in a role shares says nothing and is
//! left out. Where names differ, they precede the texts, so that the model can tell the participants apart.

use std::collections::HashSet;

use serde_json::Value;

use super::{ContentPart, Part, is_empty, unsupported};
use crate::providers::Failure;

/// Whether the names of a role have to be shown to the model.
#[derive(Debug)]
pub(super) struct Names {
    users_differ: bool,
    assistants_differ: bool,
}

impl Names {
    /// Reads the names in all messages.
    pub(super) fn read(messages: &[Value]) -> Result<Self, Failure> {
        let (mut users, mut assistants) = (HashSet::new(), HashSet::new());
        for (index, message) in messages.iter().enumerate() {
            let value = &message["name"];
            let Some(name) = value.as_str() else {
                if is_empty(&value.to_string()) {
                    continue;
                }
                return Err(unsupported(format!("messages[{index}].name"), "must be a string"));
            };
            match message["role"].as_str() {
                _ if name.is_empty() => false,
                Some("user") => users.insert(name),
                Some("assistant") => assistants.insert(name),
                _ => false,
            };
        }
        Ok(Self { users_differ: users.len() > 1, assistants_differ: assistants.len() > 1 })
    }

    /// Puts the message's name before its text, if the model could not tell the participants apart otherwise. `path`
    /// is that of the content.
    pub(super) fn show(&self, message: &Value, path: &str, parts: &mut Vec<Part>) {
        let differ = match message["role"].as_str() {
            Some("user") => self.users_differ,
            Some("assistant") => self.assistants_differ,
            _ => false,
        };
        let Some(name) = message["name"].as_str().filter(|name| differ && !name.is_empty()) else { return };
        let is_call = |part: &Part| matches!(part.content, ContentPart::ToolCall { .. });
        let says_something = !parts.is_empty() && !parts.iter().any(is_call);
        match parts.iter_mut().find_map(Part::as_text_mut) {
            Some(text) => text.insert_str(0, &format!("{name}: ")),
            // An image without a word is somebody's, too; a call alone is no statement.
            None if says_something => parts.insert(0, Part::of_text(format!("{name}:"), path.to_owned())),
            None => {}
        }
    }
}
