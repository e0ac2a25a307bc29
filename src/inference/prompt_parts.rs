//! The parts of a prompt that cost other than their bytes: images, files, and what only names its content.
//!
//! Reads the messages of chat completions and of Messages, and the input of Responses. A part of an unknown type counts
//! as one that names its content, as providers invent further ones.

use crate::json::reader::Json;

/// The items of a conversation, beside those of messages and tools, that name what a provider has stored.
const STORED: &str = "item_reference";

/// What the types of parts end with that are text, or stand for what is inside them.
const TEXTS: [&str; 8] =
    ["text", "refusal", "thinking", "tool_use", "tool_result", "search_result", "compaction", "input_audio"];

/// How deep parts are within others: an image within the result of a tool within a message. What is deeper is not looked
/// at, as each level is read once more.
const MAX_LEVELS: u32 = 4;

/// What a prompt has of these parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PromptParts {
    /// How many images there are.
    pub(super) images: u64,
    /// How long they are together, in bytes of the request.
    pub(super) image_bytes: usize,
    /// Whether there is content whose tokens nobody can tell from its bytes: it is compressed, or elsewhere.
    pub(super) has_unknown: bool,
}

impl PromptParts {
    /// The parts of a list of messages or other items.
    pub(super) fn of(items: Json<'_>) -> Self {
        let mut parts = Self::default();
        for item in items.items().into_iter().flatten() {
            parts.has_unknown |= is_of_kind(item, |kind| kind == STORED);
            parts.add_inner(item, MAX_LEVELS);
        }
        parts
    }

    /// Adds the parts inside of an item, or of another part.
    fn add_inner(&mut self, outer: Json<'_>, levels: u32) {
        if levels == 0 {
            self.has_unknown = true;
            return;
        }
        let Some(inner) = outer.fields(["content", "output"]) else {
            // Of two fields of one name, a provider may read either.
            self.has_unknown |= outer.is_object();
            return;
        };
        for part in inner.into_iter().flatten().filter_map(Json::items).flatten() {
            if is_of_kind(part, |kind| matches!(kind, "image_url" | "image" | "input_image")) {
                self.images += 1;
                self.image_bytes += part.get().len();
            } else if is_of_kind(part, |kind| matches!(kind, "file" | "input_file" | "document")) {
                self.has_unknown |= !holds_text(part);
            } else {
                self.has_unknown |= !is_of_kind(part, |kind| TEXTS.iter().any(|text| kind.ends_with(text)));
                self.add_inner(part, levels - 1);
            }
        }
    }
}

fn is_of_kind(value: Json<'_>, is: impl Fn(&str) -> bool) -> bool {
    value.fields(["type"]).and_then(|[kind]| kind?.string()).is_some_and(|kind| is(&kind))
}

/// Whether a file is a text that is in the request.
fn holds_text(part: Json<'_>) -> bool {
    let Some([file, source]) = part.fields(["file", "source"]) else { return false };
    if let Some(source) = source {
        return is_of_kind(source, |kind| kind == "text");
    }
    let names = ["file_data", "file_id", "file_url"];
    let Some([data, id, url]) = file.unwrap_or(part).fields(names) else { return false };
    let is_text = data.and_then(Json::string).is_some_and(|data| data.starts_with("data:text/"));
    is_text && [id, url].into_iter().flatten().all(Json::is_null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::reader::Reader;

    fn of(items: &str) -> PromptParts {
        PromptParts::of(Reader::new(items).value().unwrap())
    }

    #[test]
    fn images_are_found_wherever_they_stand() {
        for image in [
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#,
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
            r#"{"type":"input_image","image_url":"data:image/png;base64,AAAA"}"#,
        ] {
            let expected = PromptParts { images: 1, image_bytes: image.len(), has_unknown: false };
            for items in [
                format!(r#"[{{"role":"user","content":[{{"type":"text","text":"a"}},{image}]}}]"#),
                format!(r#"[{{"type":"message","content":[{{"type":"input_text","text":"a"}},{image}]}}]"#),
                format!(r#"[{{"role":"user","content":[{{"type":"tool_result","content":[{image}]}}]}}]"#),
                format!(r#"[{{"type":"function_call_output","call_id":"1","output":[{image}]}}]"#),
            ] {
                assert_eq!(of(&items), expected, "{items}");
            }
        }
    }

    #[test]
    fn texts_and_calls_count_with_their_bytes() {
        for items in [
            r#""a text""#,
            r#"[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"1","content":"b"}]"#,
            r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b"},
                {"type":"redacted_thinking","data":"a"},
                {"type":"tool_use","id":"1","name":"fetch","input":{"content":[{"type":"image","url":"a"}]}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"a"}]}]"#,
            r#"[{"type":"reasoning","summary":[],"encrypted_content":"a"},
                {"type":"function_call","call_id":"1","name":"a","arguments":"{}"},
                {"role":"assistant","content":[{"type":"output_text","text":"a"}]}]"#,
            r#"[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}]"#,
            r#"[{"role":"user","content":[{"type":"file","file":{"file_data":"data:text/csv;base64,AAAA"}}]}]"#,
            r#"[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"a"}}]}]"#,
        ] {
            assert_eq!(of(items), PromptParts::default(), "{items}");
        }
    }

    #[test]
    fn what_is_compressed_or_elsewhere_is_unknown() {
        for part in [
            r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA","filename":"a.pdf"}}"#,
            r#"{"type":"file","file":{"file_id":"file-1"}}"#,
            r#"{"type":"file","file":{"file_data":"data:text/plain;base64,AA==","file_id":"file-1"}}"#,
            r#"{"type":"file","file":{"file_data":"https://a.example/b.pdf"}}"#,
            r#"{"type":"input_file","file_url":"https://a.example/b.pdf"}"#,
            r#"{"type":"input_file","file_data":"data:application/pdf;base64,AAAA"}"#,
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}"#,
            r#"{"type":"document","source":{"type":"url","url":"https://a.example/b.pdf"}}"#,
            r#"{"type":"video_url","video_url":{"url":"https://a.example/b.mp4"}}"#,
            r#"{"text":"a"}"#,
        ] {
            for items in [
                format!(r#"[{{"role":"user","content":[{part}]}}]"#),
                format!(r#"[{{"type":"function_call_output","output":[{part}]}}]"#),
            ] {
                assert!(of(&items).has_unknown, "{items}");
            }
        }
        assert!(of(r#"[{"type":"item_reference","id":"msg_1"}]"#).has_unknown);
        assert!(of(r#"[{"role":"user","content":"a","content":[{"type":"file"}]}]"#).has_unknown);
        let nested = r#"{"type":"tool_result","content":["#.repeat(9) + &"]}".repeat(9);
        assert!(of(&format!("[{nested}]")).has_unknown);
    }
}
