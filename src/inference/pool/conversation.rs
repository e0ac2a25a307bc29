//! Which conversation a request belongs to, as far as it says so.
//!
//! In this order: what the caller wants the provider's prompt cache to go by (`prompt_cache_key`), the session that a
//! client names in a header, the end user, and else the beginning of the conversation, up to the first message of the
//! user: clients send all of it again with each turn. Texts are compared as they are written, which a client does not
//! change between turns; what else is in a message (a cache mark moves on with the conversation) does not count.

use sha2::{Digest, Sha256};

use crate::json::fields::Fields;
use crate::json::reader::{Json, Reader};

/// How much of each text at the beginning counts. Who shares that much may as well share a target, and its cache.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// A conversation, told from others by a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation([u8; 32]);

impl Conversation {
    /// The conversation of a request with these fields, of which a header may name the session; `None` if nothing tells
    /// it from others.
    pub fn of(fields: &Fields<'_>, session: Option<&[u8]>) -> Option<Self> {
        let name = |field: &str| fields.get(field).and_then(Json::string).filter(|name| !name.is_empty());
        let hash = |bytes: &[u8]| Some(Self(Sha256::digest(bytes).into()));
        if let Some(key) = name("prompt_cache_key") {
            return hash(key.as_bytes());
        }
        if let Some(session) = session.filter(|session| !session.is_empty()) {
            return hash(session);
        }
        match name("user") {
            Some(user) => hash(user.as_bytes()),
            None => Self::beginning(fields.get("messages")?),
        }
    }

    /// From the texts up to the first of the user's.
    fn beginning(messages: Json<'_>) -> Option<Self> {
        let mut hash = Sha256::new();
        let mut is_empty = true;
        let mut reader = Reader::new(messages.get());
        // It ends early, which is no failure.
        let _ = reader.array(|reader| {
            let [role, content] = reader.fields(["role", "content"])?;
            if let Some(content) = content {
                each_text(content, |text| {
                    is_empty = false;
                    let bytes = text.get().as_bytes();
                    hash.update(&bytes[..bytes.len().min(MAX_TEXT_BYTES)]);
                });
            }
            let is_users = role.and_then(Json::string).is_some_and(|role| role == "user");
            (!is_users).then_some(())
        });
        (!is_empty).then(|| Self(hash.finalize().into()))
    }

    /// A number from 0 to 1, both excluded, that depends on the conversation and `target` alone.
    pub(super) fn chance(&self, target: &str) -> f64 {
        let hash = Sha256::new().chain_update(self.0).chain_update(target).finalize();
        let mut bits = [0; 4];
        bits.copy_from_slice(&hash[..4]);
        (f64::from(u32::from_le_bytes(bits)) + 0.5) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The texts of a content, a string or parts, as they are written.
fn each_text<'a>(content: Json<'a>, mut each: impl FnMut(Json<'a>)) {
    if content.is_string() {
        return each(content);
    }
    for part in content.items().unwrap_or_default() {
        if let Some([Some(text)]) = part.fields(["text"]) {
            each(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(body: &str, session: Option<&str>) -> Option<Conversation> {
        Conversation::of(&Fields::parse(body).unwrap(), session.map(str::as_bytes))
    }

    #[test]
    fn a_turn_belongs_to_the_conversation_it_continues() {
        let first =
            of(r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}"#, None);
        let next = concat!(
            r#"{"messages":[{"role":"system","content":"s"},"#,
            r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},"#,
            r#"{"role":"assistant","content":"x"},{"role":"user","content":"b"}]}"#
        );
        assert!(first.is_some());
        assert_eq!(of(next, None), first);
        let other = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"b"}]}"#;
        assert_ne!(of(other, None), first);
        assert_eq!(of(r#"{"messages":[]}"#, None), None);
        assert_eq!(of("{}", None), None);
    }

    #[test]
    fn what_is_named_comes_before_what_is_said() {
        let all = r#"{"prompt_cache_key":"k","user":"u","messages":[{"role":"user","content":"a"}]}"#;
        let user = r#"{"prompt_cache_key":null,"user":"u","messages":[{"role":"user","content":"a"}]}"#;
        let same = |one: &str, session, other: &str| of(one, session) == of(other, None);
        assert!(same(all, Some("s"), r#"{"prompt_cache_key":"k"}"#));
        assert!(same(user, Some("s"), r#"{"user":"s"}"#));
        assert!(same(user, Some(""), r#"{"user":"u"}"#));
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(messages in r#"\[(\{("(role|content)":("user"|null|\[\{"text":"\\ud800é"\}\]|7),?){0,2}\},?){0,3}\]"#) {
            let _ = Conversation::beginning(serde_json::from_str(&messages).unwrap_or(serde_json::from_str("7").unwrap()));
        }
    }
}
