//! A verification stream, parsed as a naive client does: split at blank lines, then two prefixes.

use futures_util::StreamExt;
use serde_json::Value;

/// The frames of a finished stream.
#[derive(Debug)]
pub struct Events {
    /// The bytes as received.
    pub raw: String,
    /// Names and data, without comments.
    pub frames: Vec<(String, Value)>,
}

impl Events {
    /// Reads a response to the end.
    pub async fn read(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        Self::parse(response.text().await.unwrap())
    }

    /// Parses a whole stream and fails on any line that the API contract does not allow.
    pub fn parse(raw: String) -> Self {
        let mut frames = Vec::new();
        for frame in raw.split_terminator("\n\n") {
            if frame.starts_with(": ") {
                assert_eq!(frame, ": keep-alive");
                continue;
            }
            let (event, data) = frame.split_once('\n').unwrap_or_else(|| panic!("not two lines: {frame:?}"));
            let name = event.strip_prefix("event: ").unwrap_or_else(|| panic!("no event: {frame:?}"));
            let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("no data: {frame:?}"));
            frames.push((name.to_owned(), serde_json::from_str(data).unwrap()));
        }
        Self { raw, frames }
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.frames.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The data of the only frame with this name.
    pub fn one(&self, name: &str) -> &Value {
        let mut found = self.frames.iter().filter(|(frame, _)| frame == name);
        let (_, data) = found.next().unwrap_or_else(|| panic!("no {name} in {:?}", self.names()));
        assert!(found.next().is_none(), "more than one {name}");
        data
    }

    /// The data of the last frame, which must have this name.
    pub fn end(&self, name: &str) -> &Value {
        let (last, data) = self.frames.last().expect("an empty stream");
        assert_eq!(last, name, "{data}");
        data
    }

    /// The results of a completed verification.
    pub fn results(&self) -> &Vec<Value> {
        self.end("completed")["results"].as_array().unwrap()
    }
}

/// Reads a stream until a frame with this name has arrived.
pub async fn read_until(
    response: &mut (impl StreamExt<Item = reqwest::Result<bytes::Bytes>> + Unpin),
    name: &str,
) {
    let mut seen = String::new();
    while !seen.contains(&format!("event: {name}\n")) {
        let chunk = response.next().await.unwrap_or_else(|| panic!("ended before {name}: {seen}")).unwrap();
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}
