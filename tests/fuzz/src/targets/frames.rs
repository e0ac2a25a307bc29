//! The frames of the server's streams: whatever text an event contains, it is one frame, and is read back unchanged.

use crate::input::pieces;
use mk::api::sse::frame;
use mk::api::verify::Event;
use mk::net::sse_decoder::Decoder;

const NAMES: [&str; 9] = [
    "starting",
    "extracting_claims",
    "claims_extracted",
    "verifying_claims",
    "verifying_claim",
    "model_answered",
    "claim_verified",
    "completed",
    "error",
];

/// The only event of a stream, read by the decoder for providers' streams.
fn only_event(stream: &[u8]) -> (String, String) {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in pieces(stream) {
        decoder.feed(piece);
        while let Some(event) = decoder.next().expect("smaller than any event may be") {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
            events.push((text(event.name), text(event.data)));
        }
    }
    let [event] = events.try_into().expect("one frame is one event");
    event
}

fn naive(stream: &[u8]) -> Option<(&str, &str)> {
    let lines = std::str::from_utf8(stream).ok()?.strip_suffix("\n\n")?;
    let (name, data) = lines.split_once('\n')?;
    Some((name.strip_prefix("event: ")?, data.strip_prefix("data: ").filter(|data| !data.contains('\n'))?))
}

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let written = frame("claim_verified", &[&text]).expect("a text is JSON");
    let (name, data) = only_event(&written);
    assert_eq!(name, "claim_verified");
    assert_eq!(serde_json::from_str::<[String; 1]>(&data).expect("JSON"), [&*text]);

    for name in NAMES {
        let Ok(Some(event)) = Event::read(name, &text) else { continue };
        let written = event.frame().expect("what was read is written");
        let (read_name, data) = only_event(&written);
        assert_eq!(naive(&written), Some((read_name.as_str(), data.as_str())));
        assert_eq!(read_name, name);
        let again = Event::read(&read_name, &data).expect("what was written is read");
        assert_eq!(again, Some(event));
    }
}
