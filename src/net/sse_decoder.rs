//! An incremental decoder for Server-Sent Events, by the WHATWG algorithm (HTML, section 9.2.6).
//!
//! Our own, because untrusted bytes must control nothing but the content: lines and events have a maximum size, a byte
//! order mark and every form of line end are accepted, and invalid UTF-8 is left to the caller. It is pull-based:
//! [`Decoder::feed`] takes a piece as it arrived, and [`Decoder::next`] returns the events that are complete.

use memchr::memchr2;

/// The maximum length of a line, and of the data of one event, where none other is given. An image in a chunk takes a
/// few megabytes.
pub const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The value of the `event` field; empty if there is none.
    pub name: &'a [u8],
    /// The values of all `data` fields, joined by line feeds.
    pub data: &'a [u8],
}

/// The error for a line or an event that is too large.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Decodes the events of one stream.
#[derive(Debug)]
pub struct Decoder {
    /// The maximum length of a line, and of the data of one event.
    max_bytes: usize,
    /// The bytes that were fed, of which those up to `read` are consumed.
    buffer: Vec<u8>,
    read: usize,
    /// There is no line end between `read` and this offset.
    scanned: usize,
    /// The last line has ended with CR: an LF right after it belongs to it.
    skip_line_feed: bool,
    is_begun: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    stage: Stage,
    /// Whether there was a line that no event stream has.
    is_foreign: bool,
}

/// The progress of the current event.
#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It has no data yet.
    #[default]
    Empty,
    /// It has data.
    Filled,
    /// It has been returned.
    Returned,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl Decoder {
    /// A decoder for events of at most this length.
    pub const fn with_limit(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            buffer: Vec::new(),
            read: 0,
            scanned: 0,
            skip_line_feed: false,
            is_begun: false,
            name: Vec::new(),
            data: Vec::new(),
            stage: Stage::Empty,
            is_foreign: false,
        }
    }

    /// Takes a piece of the stream.
    pub fn feed(&mut self, piece: &[u8]) {
        self.buffer.drain(..self.read);
        self.scanned = self.scanned.saturating_sub(self.read);
        self.read = 0;
        self.buffer.extend_from_slice(piece);
    }

    /// Ends the stream, and with it an event that lacks its final line ends, as the last one may.
    pub fn end(&mut self) {
        self.feed(b"\n\n");
    }

    /// The next complete event.
    ///
    /// # Errors
    /// If a line or an event is too large; nothing more can be decoded then.
    #[expect(
        clippy::should_implement_trait,
        reason = "events borrow from the decoder, as no iterator's items may"
    )]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, TooLarge> {
        if self.stage == Stage::Returned {
            self.clear();
        }
        while let Some((from, to)) = self.line()? {
            if from < to {
                self.field(from, to)?;
            } else if self.stage == Stage::Filled {
                self.stage = Stage::Returned;
                return Ok(Some(Event { name: &self.name, data: &self.data }));
            } else {
                self.clear();
            }
        }
        Ok(None)
    }

    /// Whether there was a line that is none of an event stream, although decoders have to ignore it.
    pub const fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.stage = Stage::Empty;
    }

    /// The range of the next complete line in the buffer, without its line end.
    fn line(&mut self) -> Result<Option<(usize, usize)>, TooLarge> {
        if !self.is_begun {
            const MARK: &[u8] = "\u{feff}".as_bytes();
            if self.buffer.len() < MARK.len() && MARK.starts_with(&self.buffer) {
                return Ok(None);
            }
            self.is_begun = true;
            self.read = if self.buffer.starts_with(MARK) { MARK.len() } else { 0 };
        }
        if self.skip_line_feed && self.read < self.buffer.len() {
            self.skip_line_feed = false;
            self.read += usize::from(self.buffer[self.read] == b'\n');
        }
        let from = self.read;
        let scanned = self.scanned.max(from);
        let found = memchr2(b'\n', b'\r', &self.buffer[scanned..]);
        let to = scanned + found.unwrap_or(self.buffer.len() - scanned);
        self.scanned = to;
        if to - from > self.max_bytes {
            return Err(TooLarge);
        }
        if found.is_none() {
            return Ok(None);
        }
        self.skip_line_feed = self.buffer[to] == b'\r';
        self.read = to + 1;
        self.scanned = self.read;
        Ok(Some((from, to)))
    }

    fn field(&mut self, from: usize, to: usize) -> Result<(), TooLarge> {
        let line = &self.buffer[from..to];
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                if self.data.len() + value.len() > self.max_bytes {
                    return Err(TooLarge);
                }
                if self.stage == Stage::Filled {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.stage = Stage::Filled;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Comments have an empty name; `id` and `retry` are about reconnecting, which nobody does here.
            b"" | b"id" | b"retry" => {}
            _ => self.is_foreign = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            while let Some(Event { name, data }) = decoder.next().unwrap() {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                events.push((text(name), text(data)));
            }
        }
        events
    }

    fn data(pieces: &[&[u8]]) -> Vec<String> {
        read(pieces).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn all_kinds_of_line_ends_comments_and_fields_are_understood() {
        assert_eq!(data(&[b"data: a\n\ndata:b\r\n\r\ndata:  c\r\r"]), ["a", "b", " c"]);
        assert_eq!(data(&[b": hi\n\nretry: 1\nid: 2\ndata: a\ndata\ndata: b\nfoo: x\n\n"]), ["a\n\nb"]);
        assert_eq!(read(&[b"event: x\n\nevent: y\ndata: 1\n\ndata: 2\n\n"])[0].0, "y");
        assert_eq!(read(&[b"event: y\ndata: 1\n\ndata: 2\n\n"])[1], (String::new(), "2".to_owned()));
        assert_eq!(data(&[b"data: unfinished\n"]), [""; 0]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once_even_in_pieces() {
        assert_eq!(data(&[b"\xef", b"\xbb", b"\xbfdata: a\n\n"]), ["a"]);
        assert_eq!(data(&[b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n"]), [""; 0]);
        assert_eq!(data(&[b"\xef\xbb", b"\n\ndata: a\n\n"]), ["a"]);
    }

    #[test]
    fn a_line_end_may_be_split_across_pieces() {
        assert_eq!(data(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"]), ["a", "b"]);
        assert_eq!(data(&[b"data: a\r", b"data: b\r", b"\r"]), ["a\nb"]);
    }

    #[test]
    fn a_stream_may_end_without_line_ends() {
        let mut decoder = Decoder::default();
        decoder.feed(b"data: [DONE]");
        assert_eq!(decoder.next(), Ok(None));
        decoder.end();
        assert_eq!(decoder.next().unwrap().unwrap().data, b"[DONE]");
        assert_eq!(decoder.next(), Ok(None));
    }

    #[test]
    fn lines_that_no_event_stream_has_are_noticed() {
        let is_foreign = |text: &str| {
            let mut decoder = Decoder::default();
            decoder.feed(text.as_bytes());
            while decoder.next().unwrap().is_some() {}
            decoder.is_foreign()
        };
        assert!(is_foreign("<html>\n<body>\n") && is_foreign("upstream timed out\n"));
        assert!(!is_foreign(": hi\n\nid: 1\nretry: 2\nevent: x\ndata: <html>\n\n"));
    }

    #[test]
    fn lines_and_events_have_a_maximum_size() {
        let mut line = Decoder::default();
        line.feed(b"data: ");
        line.feed(&vec![b'x'; MAX_EVENT_BYTES]);
        assert_eq!(line.next(), Err(TooLarge));
        let mut event = Decoder::default();
        let mut many = b"data: ".to_vec();
        many.extend(vec![b'x'; MAX_EVENT_BYTES / 2]);
        many.push(b'\n');
        event.feed(&many.repeat(2));
        assert_eq!(event.next(), Ok(None));
        event.feed(b"data: x\n");
        assert_eq!(event.next(), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn the_boundaries_of_pieces_do_not_matter(
            text in r"(data|event|:|id)?:? ?[a-zé]{0,3}(\n|\r|\r\n|\n\n|\r\n\r\n)((data: ?[a-c]{0,2}|:x|event:y)(\n|\r|\r\n|\n\n|\r\r)){0,8}",
            cuts in prop::collection::vec(0usize..120, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&[bytes]), read(&pieces));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = Decoder::default();
            for piece in bytes.chunks(7) {
                decoder.feed(piece);
                while decoder.next().unwrap().is_some() {}
            }
        }
    }
}
