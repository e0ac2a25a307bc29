//! The decoder of providers' event streams: however a stream is split, it has the same events, and none is too large.

use crate::input::pieces;
use mk::net::sse_decoder::{Decoder, MAX_EVENT_BYTES};

type Owned = (Vec<u8>, Vec<u8>);

fn read(pieces: &[&[u8]], ends: bool) -> Vec<Owned> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    let mut drain = |decoder: &mut Decoder| {
        while let Some(event) = decoder.next().expect("an input is smaller than any event may be") {
            assert!(event.name.len() <= MAX_EVENT_BYTES && event.data.len() <= MAX_EVENT_BYTES);
            assert!(!event.name.iter().any(|byte| matches!(byte, b'\r' | b'\n')));
            assert!(!event.data.contains(&b'\r'));
            events.push((event.name.to_vec(), event.data.to_vec()));
        }
    };
    for piece in pieces {
        decoder.feed(piece);
        drain(&mut decoder);
    }
    if ends {
        decoder.end();
        drain(&mut decoder);
    }
    events
}

/// The simplest stream with these events.
fn written(events: &[Owned]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (name, data) in events {
        stream.extend([b"event: ", name.as_slice(), b"\n"].concat());
        data.split(|byte| *byte == b'\n').for_each(|line| stream.extend([b"data: ", line, b"\n"].concat()));
        stream.push(b'\n');
    }
    stream
}

pub(super) fn run(bytes: &[u8]) {
    let open = read(&[bytes], false);
    assert_eq!(read(&pieces(bytes), false), open, "cut into pieces");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&single, false), open, "byte by byte");

    let whole = read(&[bytes], true);
    assert!(whole.starts_with(&open) && whole.len() <= open.len() + 1, "the end completes one event at most");
    assert_eq!(read(&[&written(&whole)], false), whole, "written again");
}
