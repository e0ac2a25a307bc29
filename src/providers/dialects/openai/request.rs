//! Requests, which are in this format already: bytes are passed on with the few edits required.
//!
//! A request gets the provider's own model name, streams are always asked for their usage, and the token limit gets the
//! name that the model expects. Everything else is passed on unchanged, including unknown fields, whose meaning is
//! between the caller and the provider.

use bytes::Bytes;

use crate::json::fields::{self, Fields};
use crate::providers::{CompletionRequest, Model, ProviderRequest};

/// The request that asks `model` for this completion.
pub(super) fn encode(request: &CompletionRequest<'_>, model: &Model) -> ProviderRequest {
    let length: usize = request.fields.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum();
    let mut body = Vec::with_capacity(length + model.name.len() + 64);
    body.push(b'{');
    fields::write_string_field(&mut body, "model", &model.name);
    let renames_limit =
        model.max_completion_tokens && request.fields.non_null("max_completion_tokens").is_none();
    for (name, value) in request.fields.iter() {
        match name {
            "model" => {}
            "stream_options" if request.stream => {}
            "max_tokens" if renames_limit => {
                fields::write_field(&mut body, "max_completion_tokens", value.get());
            }
            // An explicit null; the renamed limit would otherwise appear twice.
            "max_completion_tokens" if renames_limit => {}
            _ => fields::write_field_escaped(&mut body, name, value.get()),
        }
    }
    if request.stream {
        let options = stream_options(request, model);
        if options != "{}" {
            fields::write_field(&mut body, "stream_options", &options);
        }
    }
    body.push(b'}');
    ProviderRequest { path: "/chat/completions".into(), headers: Vec::new(), body: Bytes::from(body) }
}

/// The caller's own options, with the usage always requested, as it is needed for accounting.
fn stream_options(request: &CompletionRequest<'_>, model: &Model) -> String {
    let given: Fields<'_> = request.fields.read("stream_options").unwrap_or_default();
    let mut options = b"{".to_vec();
    if model.stream_usage {
        fields::write_field(&mut options, "include_usage", "true");
    }
    given
        .iter()
        .filter(|(name, _)| *name != "include_usage")
        .for_each(|(name, value)| fields::write_field_escaped(&mut options, name, value.get()));
    options.push(b'}');
    String::from_utf8(options).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::providers::Kind;

    fn sent(body: &str, stream: bool, change: impl FnOnce(&mut Model)) -> String {
        let fields = serde_json::from_str(body).unwrap();
        let request = CompletionRequest {
            fields,
            stream,
            include_usage: false,
            choices: 1,
            prompt_tokens: 1,
            native: None,
        };
        let mut model = Model::known("nobody", Kind::OpenAi, "m");
        change(&mut model);
        let outgoing = encode(&request, &model);
        String::from_utf8(outgoing.body.to_vec()).unwrap()
    }

    #[test]
    fn the_token_limit_has_the_name_that_the_model_expects_and_appears_once() {
        let renamed = |body| sent(body, false, |model| model.max_completion_tokens = true);
        assert_eq!(renamed(r#"{"max_tokens":5}"#), r#"{"model":"m","max_completion_tokens":5}"#);
        let null = r#"{"max_completion_tokens":null,"max_tokens":5}"#;
        assert_eq!(renamed(null), r#"{"model":"m","max_completion_tokens":5}"#);
        // If both are given, the provider decides.
        let both = r#"{"max_tokens":5,"max_completion_tokens":6}"#;
        assert_eq!(renamed(both), r#"{"model":"m","max_tokens":5,"max_completion_tokens":6}"#);
        assert_eq!(sent(r#"{"max_tokens":5}"#, false, |_| {}), r#"{"model":"m","max_tokens":5}"#);
    }

    #[test]
    fn only_streams_are_asked_for_their_usage() {
        assert_eq!(sent("{}", true, |_| {}), r#"{"model":"m","stream_options":{"include_usage":true}}"#);
        assert_eq!(
            sent(r#"{"stream_options":null}"#, false, |_| {}),
            r#"{"model":"m","stream_options":null}"#
        );
        let without = |body| sent(body, true, |model| model.stream_usage = false);
        assert_eq!(without(r#"{"stream_options":{"include_usage":true}}"#), r#"{"model":"m"}"#);
        let kept = without(r#"{"stream_options":{"include_usage":true,"x":1}}"#);
        assert_eq!(kept, r#"{"model":"m","stream_options":{"x":1}}"#);
    }

    proptest! {
        #[test]
        fn all_fields_but_the_model_are_passed_on_unchanged(
            names in prop::collection::btree_set("[a-z\"\\\\é]{1,6}", 0..8),
            number in any::<f64>().prop_filter("JSON has no other numbers", |number| number.is_finite()),
        ) {
            let mut given = serde_json::Map::new();
            for name in names {
                given.insert(name.clone(), json!([number, {name: null}]));
            }
            given.insert("model".to_owned(), json!("x/y"));
            let body = json!(given).to_string();
            let got: Value = serde_json::from_str(&sent(&body, false, |_| {})).unwrap();
            let mut expected: Value = serde_json::from_str(&body).unwrap();
            expected["model"] = json!("m");
            prop_assert_eq!(got, expected);
        }
    }
}
