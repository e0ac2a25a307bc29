//! What a request tells of itself, for the ledger: whom it is for and what it is marked with.
//!
//! The same fields go on to the provider as they are. So what cannot be read here is nobody's fault: it is the provider
//! that has a word on it, and the request is for nobody.

use std::borrow::Cow;
use std::sync::Arc;

use crate::inference::{Fields, Json, Protocol};
use crate::limits::EndUserLimits;
use crate::server::gate::Caller;
use crate::storage::Labels;

/// What a request has told.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct Told {
    end_user: Option<String>,
    tags: Vec<(String, String)>,
}

impl Told {
    /// What stands in the fields of a chat completion, a response or a request for embeddings.
    pub(in crate::server) fn by(fields: &Fields<'_>) -> Self {
        let text = |name: &str| fields.get(name).and_then(Json::string).map(Cow::into_owned);
        // The newer name says that it is a hash: where it is beside the older one, that says more.
        let end_user = text("user").or_else(|| text("safety_identifier"));
        let metadata = fields.get("metadata").filter(|value| value.is_object());
        let tags = metadata.and_then(|value| Fields::parse(value.get()).ok()).unwrap_or_default();
        let tag = |(name, value): (&str, Json<'_>)| Some((name.to_owned(), value.string()?.into_owned()));
        Self { end_user, tags: tags.iter().filter_map(tag).collect() }
    }

    /// What stands in the fields of a request in this protocol.
    pub(super) fn in_protocol(protocol: Protocol, fields: &Fields<'_>) -> Self {
        match protocol {
            Protocol::Responses => Self::by(fields),
            Protocol::Messages => {
                let metadata = fields.get("metadata").and_then(|value| value.fields(["user_id"]));
                let user = metadata.and_then(|[user]| user?.string()).map(Cow::into_owned);
                Self { end_user: user, tags: Vec::new() }
            }
        }
    }

    /// Whether it is for somebody.
    pub(super) const fn is_for_somebody(&self) -> bool {
        self.end_user.is_some()
    }

    /// As the ledger has it.
    pub(super) fn labels(&self, caller: &Caller, limits: &EndUserLimits) -> Option<Arc<Labels>> {
        let tags = self.tags.iter().map(|(name, value)| (&**name, &**value));
        Labels::new(&caller.key.app_id, self.end_user.as_deref(), limits.has_budget(), tags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fields: &str) -> (Option<String>, Vec<(String, String)>) {
        let told = Told::by(&Fields::parse(fields).unwrap());
        (told.end_user, told.tags)
    }

    #[test]
    fn only_texts_are_told() {
        let tags = |tags: &[(&str, &str)]| -> Vec<(String, String)> {
            tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let all = r#"{"user":"u","safety_identifier":"s","metadata":{"team":"a\u0062","n":7,"o":{},"z":""}}"#;
        assert_eq!(told(all), (Some("u".to_owned()), tags(&[("team", "ab"), ("z", "")])));
        assert_eq!(told(r#"{"user":null,"safety_identifier":"s"}"#), (Some("s".to_owned()), Vec::new()));
        for nobody in [
            r#"{"user":7,"metadata":[{"a":"b"}]}"#,
            r#"{"user":{"a":"b"},"metadata":"a=b"}"#,
            r#"{"user":"\ud800","metadata":{"a":"b","a":"c"}}"#,
        ] {
            assert_eq!(told(nobody), (None, Vec::new()), "{nobody}");
        }
    }
}
