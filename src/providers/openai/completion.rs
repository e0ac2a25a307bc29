//! Chat completions for callers, who speak this format themselves: bytes are passed on with the few edits required.
//!
//! A request gets the provider's own model name, the usage of a stream is always asked for, and a token limit is
//! called what the model calls it; everything else goes as it came, fields that nobody here knows included: whether
//! they mean something is between the caller and the provider. An answer gets the model's full identifier and what
//! the documented shape requires; everything a provider adds is kept.

use bytes::Bytes;

use super::whole::Whole;
use super::{OpenAi, stream};
use crate::providers::completion::{Completed, Completion, Completions, Decoder, Labels};
use crate::providers::fields::{self, Fields};
use crate::providers::{Failed, Failure, Incoming, Model, Outgoing};

impl Completions for OpenAi {
    fn chat_request(&self, asked: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure> {
        let length: usize = asked.fields.iter().map(|(name, value)| name.len() + value.get().len() + 4).sum();
        let mut body = Vec::with_capacity(length + model.name.len() + 64);
        body.push(b'{');
        fields::write_string(&mut body, "model", &model.name);
        let renames_limit =
            model.max_completion_tokens && asked.fields.given("max_completion_tokens").is_none();
        for (name, value) in asked.fields.iter() {
            match name {
                "model" => {}
                "stream_options" if asked.stream => {}
                "max_tokens" if renames_limit => {
                    fields::write(&mut body, "max_completion_tokens", value.get());
                }
                // The null of somebody who left it open; the renamed limit would stand there twice.
                "max_completion_tokens" if renames_limit => {}
                _ => fields::write_foreign(&mut body, name, value.get()),
            }
        }
        if asked.stream {
            let options = stream_options(asked, model);
            if options != "{}" {
                fields::write(&mut body, "stream_options", &options);
            }
        }
        body.push(b'}');
        Ok(Outgoing { path: "/chat/completions".into(), headers: Vec::new(), body: Bytes::from(body) })
    }

    fn chat_answer(
        &self,
        incoming: &Incoming,
        asked: &Completion<'_>,
        labels: &Labels,
    ) -> Result<Completed, Failed> {
        Whole::of(incoming)?.completed(asked, labels)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Reader::default())
    }
}

/// The caller's own options, and that the usage is wanted in any case: it is what is accounted.
fn stream_options(asked: &Completion<'_>, model: &Model) -> String {
    let given: Fields<'_> = asked.fields.read("stream_options").unwrap_or_default();
    let mut options = b"{".to_vec();
    if model.stream_usage {
        fields::write(&mut options, "include_usage", "true");
    }
    given
        .iter()
        .filter(|(name, _)| *name != "include_usage")
        .for_each(|(name, value)| fields::write_foreign(&mut options, name, value.get()));
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
        let asked = Completion { fields, stream, include_usage: false, choices: 1, prompt_tokens: 1 };
        let mut model = Model::known("nobody", Kind::OpenAi, "m");
        change(&mut model);
        let outgoing = OpenAi.chat_request(&asked, &model).unwrap();
        String::from_utf8(outgoing.body.to_vec()).unwrap()
    }

    #[test]
    fn a_limit_is_called_what_the_model_calls_it_and_stands_there_once() {
        let renamed = |body| sent(body, false, |model| model.max_completion_tokens = true);
        assert_eq!(renamed(r#"{"max_tokens":5}"#), r#"{"model":"m","max_completion_tokens":5}"#);
        let null = r#"{"max_completion_tokens":null,"max_tokens":5}"#;
        assert_eq!(renamed(null), r#"{"model":"m","max_completion_tokens":5}"#);
        // Whoever names both means something by it; the provider says what.
        let both = r#"{"max_tokens":5,"max_completion_tokens":6}"#;
        assert_eq!(renamed(both), r#"{"model":"m","max_tokens":5,"max_completion_tokens":6}"#);
        assert_eq!(sent(r#"{"max_tokens":5}"#, false, |_| {}), r#"{"model":"m","max_tokens":5}"#);
    }

    #[test]
    fn usage_is_asked_for_of_streams_alone() {
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
        fn all_fields_but_the_model_arrive_as_they_were(
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
