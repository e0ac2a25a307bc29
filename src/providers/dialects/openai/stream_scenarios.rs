//! Streams as providers document or send them: each folder of `tests/data/streams/openai` has the bytes in `events.txt`
//! and the expected outcome, wherever the stream is cut into pieces, in `expected.json`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::stream::Decoder;
use crate::json::fields::Fields;
use crate::providers::{
    ChunkWriter, CompletionRequest, EventOutcome, Failure, ResponseMeta, StreamDecoder, sse,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/streams/openai");

#[test]
fn every_stream_decodes_as_expected() {
    let mut played = 0;
    for entry in fs::read_dir(FOLDER).unwrap() {
        let scenario = entry.unwrap().path();
        let events = fs::read(scenario.join("events.txt")).unwrap();
        let expected: Value =
            serde_json::from_slice(&fs::read(scenario.join("expected.json")).unwrap()).unwrap();
        for size in [1, 7, 64, events.len()] {
            assert_eq!(play(&events, size), expected, "{}, by {size}", name(&scenario));
        }
        played += 1;
    }
    assert!(played >= 15, "only {played} streams were found");
}

fn name(scenario: &Path) -> String {
    scenario.file_name().unwrap().to_string_lossy().into_owned()
}

fn play(events: &[u8], size: usize) -> Value {
    let request = CompletionRequest {
        fields: Fields::default(),
        stream: true,
        include_usage: false,
        choices: 1,
        prompt_tokens: 1000,
        native: None,
    };
    let mut chunks = ChunkWriter::new(&request, ResponseMeta { model: "fake/m".into(), created: 1 });
    let mut sse_decoder = sse::Decoder::default();
    let mut decoder = Decoder::default();
    let mut outcome: Option<Result<EventOutcome, Failure>> = None;
    for piece in events.chunks(size) {
        sse_decoder.feed(piece);
        while let Some(event) = sse_decoder.next().unwrap() {
            if outcome.is_some() {
                continue;
            }
            match decoder.read(&event, &mut chunks) {
                Ok(EventOutcome::More | EventOutcome::Last) => {}
                Ok(EventOutcome::Skipped | EventOutcome::Unreadable) => {
                    panic!("skipped {:?}", String::from_utf8_lossy(event.data))
                }
                end => outcome = Some(end),
            }
        }
    }
    let whole = chunks.may_end();
    chunks.write_finishes();
    let used = chunks.usage();
    let reported = used.prompt != request.prompt_tokens;
    let out = String::from_utf8(chunks.take().to_vec()).unwrap();
    let lines: Vec<Value> = out
        .split_terminator("\n\n")
        .map(|line| serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    assert!(lines.iter().all(|line| line["model"] == "fake/m" && line["id"] == lines[0]["id"]));
    let choices = || lines.iter().map(|line| &line["choices"][0]);
    let text: String = choices().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
    let finish = choices().find_map(|choice| choice["finish_reason"].as_str());
    let mut read = json!({
        "text": text,
        "chunks": lines.len(),
        "finish": finish,
        "whole": whole,
        "usage": reported.then_some([used.prompt, used.completion]),
    });
    if let Some(Err(failure)) = outcome {
        read["failure"] = json!(failure.code());
    }
    read
}
