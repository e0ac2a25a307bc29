//! A conversation for formats that separate the system text and require two speakers to alternate.

use crate::providers::{Chat, Message, Role};

/// Separates texts that are joined into one.
const SEPARATOR: &str = "\n\n";

/// A conversation between two speakers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers) struct AlternatingTurns {
    /// All system texts, in order.
    pub(in crate::providers) system: Option<String>,
    /// The user's and the model's texts; no two consecutive turns have the same speaker.
    pub(in crate::providers) turns: Vec<(Role, String)>,
}

impl AlternatingTurns {
    /// Joins consecutive messages of the same speaker.
    pub(in crate::providers) fn from_chat(chat: &Chat) -> Self {
        let mut turns: Vec<(Role, String)> = Vec::new();
        for Message { role, content } in chat.messages.iter().filter(|message| message.role != Role::System) {
            match turns.last_mut() {
                Some((last, text)) if last == role => *text = [text.as_str(), content].join(SEPARATOR),
                _ => turns.push((*role, content.clone().into_owned())),
            }
        }
        let system = chat.messages.iter().filter(|message| message.role == Role::System);
        let texts: Vec<&str> = system.map(|message| &*message.content).collect();
        Self { system: (!texts.is_empty()).then(|| texts.join(SEPARATOR)), turns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Effort;

    fn turns(messages: &[(Role, &str)]) -> AlternatingTurns {
        let messages =
            messages.iter().map(|(role, text)| Message { role: *role, content: (*text).to_owned().into() });
        AlternatingTurns::from_chat(&Chat {
            messages: messages.collect(),
            temperature: None,
            max_tokens: None,
            schema: None,
            effort: Effort::Lowest,
        })
    }

    #[test]
    fn consecutive_messages_of_one_speaker_become_one_turn() {
        use Role::{Assistant, System, User};
        let joined =
            turns(&[(System, "a"), (User, "b"), (System, "c"), (User, "d"), (Assistant, "e"), (User, "f")]);
        let owned = |role, text: &str| (role, text.to_owned());
        let expected = vec![owned(User, "b\n\nd"), owned(Assistant, "e"), owned(User, "f")];
        assert_eq!(joined, AlternatingTurns { system: Some("a\n\nc".to_owned()), turns: expected });
        assert_eq!(turns(&[(User, "x")]).system, None);
    }
}
