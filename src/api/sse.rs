//! Encodes frames of Server-Sent Events.
//!
//! A frame is exactly `event: NAME\ndata: {JSON on one line}\n\n`, one space after each colon, because naive
//! clients match `"event: "` and `"data: "`.

use bytes::Bytes;
use serde::Serialize;

/// The comment that keeps an idle stream alive through proxies.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// One frame. `data` must serialize to JSON, which never contains a raw line end.
///
/// # Errors
/// Only if `data` cannot be serialized, which the wire types always can.
pub fn frame(name: &str, data: &impl Serialize) -> serde_json::Result<Bytes> {
    frame_of_about(256, name, data)
}

/// Like [`frame`], for one of about so many bytes: one of a megabyte would be copied a dozen times while it grows.
///
/// # Errors
/// As [`frame`].
pub fn frame_of_about(bytes: usize, name: &str, data: &impl Serialize) -> serde_json::Result<Bytes> {
    let mut out = Vec::with_capacity(bytes);
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    serde_json::to_writer(&mut out, data)?;
    out.extend_from_slice(b"\n\n");
    Ok(Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_two_lines_and_a_blank_one() {
        let frame = frame("starting", &serde_json::json!({"status": "a\nb"})).unwrap();
        assert_eq!(&frame[..], b"event: starting\ndata: {\"status\":\"a\\nb\"}\n\n");
    }
}
