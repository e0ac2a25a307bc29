//! A conversation as the formats want it that keep the operator's words apart and let two speakers alternate.

use super::{Chat, Message, Role};

/// What stands between texts that become one.
const SEAM: &str = "\n\n";

/// A conversation of two speakers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// All system texts, in order.
    pub(super) system: Option<String>,
    /// The person's and the model's texts; no two neighbours are of one speaker.
    pub(super) turns: Vec<(Role, String)>,
}

impl Turns {
    /// Joins what one speaker said in a row.
    pub(super) fn of(chat: &Chat) -> Self {
        let mut turns: Vec<(Role, String)> = Vec::new();
        for Message { role, content } in chat.messages.iter().filter(|message| message.role != Role::System) {
            match turns.last_mut() {
                Some((last, text)) if last == role => *text = [text.as_str(), content].join(SEAM),
                _ => turns.push((*role, content.clone().into_owned())),
            }
        }
        let system = chat.messages.iter().filter(|message| message.role == Role::System);
        let texts: Vec<&str> = system.map(|message| &*message.content).collect();
        Self { system: (!texts.is_empty()).then(|| texts.join(SEAM)), turns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(messages: &[(Role, &str)]) -> Turns {
        let messages =
            messages.iter().map(|(role, text)| Message { role: *role, content: (*text).to_owned().into() });
        Turns::of(&Chat { messages: messages.collect(), temperature: None, max_tokens: None, schema: None })
    }

    #[test]
    fn neighbours_of_one_speaker_become_one_turn() {
        use Role::{Assistant, System, User};
        let joined =
            turns(&[(System, "a"), (User, "b"), (System, "c"), (User, "d"), (Assistant, "e"), (User, "f")]);
        let owned = |role, text: &str| (role, text.to_owned());
        let expected = vec![owned(User, "b\n\nd"), owned(Assistant, "e"), owned(User, "f")];
        assert_eq!(joined, Turns { system: Some("a\n\nc".to_owned()), turns: expected });
        assert_eq!(turns(&[(User, "x")]).system, None);
    }
}
