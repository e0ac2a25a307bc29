//! Streams as providers document them and write them: each folder of `tests/data/streams/openai` holds the bytes in
//! `events.txt`, and in `expected.json` what is expected to be read from them, wherever they are cut.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::stream::Reader;
use crate::providers::{Chunks, Completion, Decoder, Failure, Fields, Labels, Step, sse};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/streams/openai");

#[test]
fn every_stream_reads_as_written() {
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
    let asked = Completion {
        fields: Fields::default(),
        stream: true,
        include_usage: false,
        choices: 1,
        prompt_tokens: 1000,
    };
    let mut chunks = Chunks::new(&asked, Labels { model: "fake/m".into(), created: 1 });
    let mut decoder = sse::Decoder::default();
    let mut reader = Reader::default();
    let mut outcome: Option<Result<Step, Failure>> = None;
    for piece in events.chunks(size) {
        decoder.feed(piece);
        while let Some(event) = decoder.next().unwrap() {
            if outcome.is_some() {
                continue;
            }
            match reader.read(&event, &mut chunks) {
                Ok(Step::More) => {}
                Ok(Step::Skipped | Step::Unreadable) => {
                    panic!("skipped {:?}", String::from_utf8_lossy(event.data))
                }
                end => outcome = Some(end),
            }
        }
    }
    let whole = chunks.may_end();
    let used = chunks.used();
    let reported = used.prompt != asked.prompt_tokens;
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
