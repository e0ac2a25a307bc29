//! The sources of an answer as annotations in the form of chat completions: pages that Google found
//! (`groundingMetadata`) and texts that the answer repeats (`citationMetadata`).
//!
//! Both name a part of the text by bytes; annotations do so by characters.

use serde_json::{Value, json};

use crate::providers::dialects::render::url_citation;

/// More sources than any answer has.
const MAX_ANNOTATIONS: usize = 1024;

/// The annotations of an answer with this text.
pub(super) fn annotations(grounding: &Value, citations: &Value, text: &str) -> Vec<Value> {
    let mut found = grounded(grounding, text);
    let lists = [&citations["citationSources"], &citations["citations"]];
    let sources = lists.into_iter().filter_map(Value::as_array).flatten();
    found.extend(sources.map(|source| cited(source, text)));
    found.truncate(MAX_ANNOTATIONS);
    found
}

/// A source that the answer repeats; some are named only by a licence.
fn cited(source: &Value, text: &str) -> Value {
    let range = characters(source, text);
    match source["uri"].as_str() {
        Some(uri) => url_citation(uri, source["title"].as_str(), None, range),
        None => json!({"type": "citation", "citation": source}),
    }
}

/// The pages that support the answer: each for the parts that it supports or, without any, for all of it.
fn grounded(grounding: &Value, text: &str) -> Vec<Value> {
    let list = |name: &str| grounding[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let chunks = list("groundingChunks");
    let annotation = |chunk: &Value, segment: &Value| {
        let kinds = ["web", "retrievedContext", "maps"];
        let source = kinds.into_iter().map(|kind| &chunk[kind]).find(|source| source["uri"].is_string())?;
        let cited = segment["text"].as_str();
        Some(url_citation(
            source["uri"].as_str()?,
            source["title"].as_str(),
            cited,
            characters(segment, text),
        ))
    };
    let supports = list("groundingSupports");
    let mut found: Vec<Value> = Vec::new();
    for support in supports {
        let indices = support["groundingChunkIndices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let supporting =
            indices.iter().filter_map(|index| chunks.get(usize::try_from(index.as_u64()?).ok()?));
        found.extend(supporting.filter_map(|chunk| annotation(chunk, &support["segment"])));
        if found.len() > MAX_ANNOTATIONS {
            break;
        }
    }
    if supports.is_empty() {
        found.extend(chunks.iter().filter_map(|chunk| annotation(chunk, &Value::Null)));
    }
    found
}

/// The range of a segment in characters: by its own text, as its bytes count from the beginning of a part, else by its
/// bytes; the whole text if neither is there.
fn characters(segment: &Value, text: &str) -> (usize, usize) {
    let byte = |name: &str| segment[name].as_u64().and_then(|byte| usize::try_from(byte).ok());
    let (start, end) = (byte("startIndex").unwrap_or_default(), byte("endIndex"));
    let by_bytes = end.filter(|end| text.get(start..*end).is_some()).map(|end| (start, end));
    let range = match segment["text"].as_str().filter(|cited| !cited.is_empty()) {
        Some(cited) => by_bytes
            .filter(|(start, end)| &text[*start..*end] == cited)
            .or_else(|| text.find(cited).map(|at| (at, at + cited.len()))),
        None => by_bytes,
    };
    let (start, end) = range.unwrap_or((0, text.len()));
    let before = text[..start].chars().count();
    (before, before + text[start..end].chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(title: &str, range: (usize, usize)) -> Value {
        url_citation("https://a.example", Some(title), None, range)
    }

    #[test]
    fn bytes_become_characters() {
        let text = "Zürich is a city.";
        let source = |start: u64, end: u64| {
            let source =
                json!({"startIndex": start, "endIndex": end, "uri": "https://a.example", "title": "A"});
            annotations(&Value::Null, &json!({"citationSources": [source]}), text).remove(0)
        };
        assert_eq!(source(0, 7), url("A", (0, 6)));
        // In the middle of a character, or beyond the text: the whole text.
        assert_eq!(source(0, 2), url("A", (0, 17)));
        assert_eq!(source(0, 700), url("A", (0, 17)));
    }

    #[test]
    fn a_page_is_cited_for_each_part_that_it_supports() {
        let page = |title: &str| json!({"web": {"uri": "https://a.example", "title": title}});
        let segment = json!({"startIndex": 0, "endIndex": 4, "text": "four"});
        let support = json!({"segment": segment, "groundingChunkIndices": [1, 7]});
        let grounding = json!({"groundingChunks": [page("A"), page("B")], "groundingSupports": [support]});
        let expected = url_citation("https://a.example", Some("B"), Some("four"), (10, 14));
        assert_eq!(annotations(&grounding, &Value::Null, "2 + 2 are four"), [expected]);
        let unsupported = json!({"groundingChunks": [page("A"), {"web": {}}]});
        assert_eq!(annotations(&unsupported, &Value::Null, "four"), [url("A", (0, 4))]);
    }

    #[test]
    fn a_source_without_an_address_is_kept_as_it_is() {
        let source = json!({"startIndex": 1, "endIndex": 2, "license": "mit"});
        let expected = json!({"type": "citation", "citation": source});
        assert_eq!(annotations(&Value::Null, &json!({"citations": [source]}), "abc"), [expected]);
    }
}
