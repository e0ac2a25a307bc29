//! Where the body of a response ends, and which of its bytes are data (RFC 9112, sections 6 and 7).
//!
//! What must hold: if there is any doubt where a response ends, it is broken, as the next one on the same connection
//! may belong to somebody else.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use super::BrokenResponse;

/// The maximum length of a line with a chunk's size, and of everything that follows the last chunk.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// The maximum number of trailers.
const MAX_TRAILERS: usize = 64;

/// How a body is delimited, and what is still to come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks, each preceded by its size.
    Chunked(ChunkState),
    /// Everything until the connection is closed.
    UntilClosed,
}

/// What comes next in a chunked body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// The line with a chunk's size.
    Size,
    /// This many bytes of data.
    Data(u64),
    /// The line end after the data.
    LineEnd,
    /// The trailers, which are ignored, and the empty line after them.
    Trailers,
    /// Nothing.
    End,
}

impl Framing {
    /// The framing of a response with this head, to a request other than `HEAD`.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Result<Self, BrokenResponse> {
        if Self::has_no_body(status) {
            return Ok(Self::Length(0));
        }
        // If both are sent, `Transfer-Encoding` takes precedence over `Content-Length`.
        if headers.contains_key(TRANSFER_ENCODING) {
            let codings = headers.get_all(TRANSFER_ENCODING).iter().next_back();
            let last = codings.and_then(|value| value.to_str().ok()?.rsplit(',').next());
            let is_chunked = last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
            return Ok(if is_chunked { Self::Chunked(ChunkState::Size) } else { Self::UntilClosed });
        }
        let mut length = None;
        for value in headers.get_all(CONTENT_LENGTH) {
            for value in value.as_bytes().split(|byte| *byte == b',') {
                let announced = parse_length(value.trim_ascii())?;
                if length.replace(announced).is_some_and(|other| other != announced) {
                    return Err(BrokenResponse);
                }
            }
        }
        Ok(length.map_or(Self::UntilClosed, Self::Length))
    }

    /// Whether a response with this status has no body, whatever its head says.
    pub(super) fn has_no_body(status: StatusCode) -> bool {
        matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    }

    /// Takes all data of the body from the beginning of `received`. Only what follows the body, or an incomplete part
    /// of its framing, remains.
    pub(super) fn take(&mut self, received: &mut BytesMut) -> Result<Bytes, BrokenResponse> {
        let state = match self {
            Self::Length(left) => {
                let count = fitting(*left, received.len());
                *left -= count as u64;
                return Ok(received.split_to(count).freeze());
            }
            Self::UntilClosed => return Ok(received.split().freeze()),
            Self::Chunked(state) => state,
        };
        let mut data = BytesMut::with_capacity(received.len());
        let mut at = 0;
        while let Some(count) = state.advance(&received[at..], &mut data)? {
            at += count;
        }
        received.advance(at);
        Ok(data.freeze())
    }

    /// Whether the body is complete.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(ChunkState::End))
    }

    /// How many bytes are still to come, if known.
    pub(super) const fn length(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunked(_) | Self::UntilClosed => None,
        }
    }
}

impl ChunkState {
    /// Consumes one element at the beginning of `received` and returns its length; `None` if it is incomplete.
    fn advance(&mut self, received: &[u8], data: &mut BytesMut) -> Result<Option<usize>, BrokenResponse> {
        match self {
            Self::Size => {
                let Some((count, size)) = chunk_size(received)? else { return Ok(None) };
                *self = if size == 0 { Self::Trailers } else { Self::Data(size) };
                Ok(Some(count))
            }
            Self::Data(left) => {
                let count = fitting(*left, received.len());
                data.extend_from_slice(&received[..count]);
                *left -= count as u64;
                if *left == 0 {
                    *self = Self::LineEnd;
                }
                Ok((count > 0).then_some(count))
            }
            Self::LineEnd => match received {
                [b'\r', b'\n', ..] => {
                    *self = Self::Size;
                    Ok(Some(2))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(BrokenResponse),
            },
            Self::Trailers => {
                let Some(count) = trailers(received)? else { return Ok(None) };
                *self = Self::End;
                Ok(Some(count))
            }
            Self::End => Ok(None),
        }
    }
}

/// The length of the size line at the beginning, and the size that it announces.
fn chunk_size(received: &[u8]) -> Result<Option<(usize, u64)>, BrokenResponse> {
    // The library reads a line without a digit as zero, and accepts line feeds inside an extension.
    if received.first().is_some_and(|first| !first.is_ascii_hexdigit()) {
        return Err(BrokenResponse);
    }
    match httparse::parse_chunk_size(received).map_err(|_| BrokenResponse)? {
        httparse::Status::Complete((count, _)) if received[..count - 2].contains(&b'\n') => {
            Err(BrokenResponse)
        }
        httparse::Status::Complete(line) => Ok(Some(line)),
        httparse::Status::Partial if received.len() > MAX_LINE_BYTES => Err(BrokenResponse),
        httparse::Status::Partial => Ok(None),
    }
}

/// The length of the trailers at the beginning, including the empty line after them.
fn trailers(received: &[u8]) -> Result<Option<usize>, BrokenResponse> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_TRAILERS];
    let parsed = httparse::parse_headers(received, &mut headers).map_err(|_| BrokenResponse)?;
    match parsed {
        httparse::Status::Partial if received.len() <= MAX_LINE_BYTES => Ok(None),
        httparse::Status::Complete((count, _))
            if count <= MAX_LINE_BYTES && has_crlf_only(&received[..count]) =>
        {
            Ok(Some(count))
        }
        _ => Err(BrokenResponse),
    }
}

/// Whether each line feed is preceded by a carriage return.
fn has_crlf_only(lines: &[u8]) -> bool {
    lines.split_inclusive(|byte| *byte == b'\n').all(|line| line.ends_with(b"\r\n"))
}

/// How many of the received bytes belong to the bytes left.
fn fitting(left: u64, received: usize) -> usize {
    usize::try_from(left).map_or(received, |left| left.min(received))
}

/// Parses the length in a header: digits and nothing else.
fn parse_length(text: &[u8]) -> Result<u64, BrokenResponse> {
    let digits = Some(text).filter(|text| text.iter().all(u8::is_ascii_digit));
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|text| text.parse().ok()).ok_or(BrokenResponse)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framing(status: u16, headers: &[(&'static str, &str)]) -> Result<Framing, BrokenResponse> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Framing::of(StatusCode::from_u16(status).unwrap(), &headers.collect())
    }

    /// The data of a body that arrives in these pieces, and what remains after its end.
    fn read(mut framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, Framing, Vec<u8>), BrokenResponse> {
        let (mut received, mut data) = (BytesMut::new(), Vec::new());
        for piece in pieces {
            received.extend_from_slice(piece);
            data.extend_from_slice(&framing.take(&mut received)?);
        }
        Ok((data, framing, received.to_vec()))
    }

    fn chunks(body: &str) -> Result<(String, bool, String), BrokenResponse> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (data, framing, left) = read(Framing::Chunked(ChunkState::Size), &[body.as_bytes()])?;
        Ok((text(data), framing.is_over(), text(left)))
    }

    #[test]
    fn the_head_says_where_its_body_ends() {
        let chunked = Ok(Framing::Chunked(ChunkState::Size));
        assert_eq!(framing(200, &[("content-length", "5")]), Ok(Framing::Length(5)));
        assert_eq!(framing(200, &[("content-length", "5, 5")]), Ok(Framing::Length(5)));
        assert_eq!(framing(200, &[("transfer-encoding", "Chunked")]), chunked);
        assert_eq!(framing(200, &[("transfer-encoding", "gzip , chunked")]), chunked);
        assert_eq!(framing(200, &[("transfer-encoding", "chunked"), ("content-length", "5")]), chunked);
        assert_eq!(framing(200, &[("transfer-encoding", "chunked, gzip")]), Ok(Framing::UntilClosed));
        assert_eq!(framing(200, &[]), Ok(Framing::UntilClosed));
        assert_eq!(framing(204, &[("content-length", "5")]), Ok(Framing::Length(0)));
        assert_eq!(framing(304, &[("transfer-encoding", "chunked")]), Ok(Framing::Length(0)));
        for wrong in ["", "-1", "+1", "0x1", "1 1", "1,2", "1,", "99999999999999999999"] {
            assert_eq!(framing(200, &[("content-length", wrong)]), Err(BrokenResponse), "{wrong}");
        }
    }

    #[test]
    fn chunks_are_read_to_their_end_and_no_further() {
        let whole = |data: &str, left: &str| Ok((data.to_owned(), true, left.to_owned()));
        assert_eq!(chunks("2\r\nok\r\n0\r\n\r\n"), whole("ok", ""));
        assert_eq!(
            chunks("2\r\nok\r\nA;x=\"y\" z\r\n0123456789\r\n000 \r\n\r\nnext"),
            whole("ok0123456789", "next")
        );
        assert_eq!(chunks("1\r\n\n\r\n0\r\na: b\r\nc:\r\n\r\n"), whole("\n", ""));
        for (partial, data) in [
            ("", ""),
            ("2", ""),
            ("2\r", ""),
            ("2\r\no", "o"),
            ("2\r\nok\r", "ok"),
            ("0\r\n\r", ""),
            ("0\r\na: b\r\n", ""),
        ] {
            let (read, is_over, _) = chunks(partial).unwrap();
            assert_eq!((read.as_str(), is_over), (data, false), "{partial:?}");
        }
    }

    #[test]
    fn whatever_could_be_read_in_two_ways_is_broken() {
        for wrong in [
            "\r\n\r\n",
            " 2\r\nok\r\n",
            ";\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x2\r\nok\r\n",
            "2\nok\r\n",
            "2;a\nb\r\nok\r\n",
            "0\r\na b\r\n\r\n",
            "2\r\nokay\r\n0\r\n\r\n",
            "2\r\nok\n0\r\n\r\n",
            "2 2\r\nok\r\n",
            "10000000000000000\r\n",
            "0\r\n\n",
            "0\r\na: b\n\r\n",
            &format!("2;{}", "x".repeat(MAX_LINE_BYTES)),
            &format!("0\r\n{}", "x".repeat(MAX_LINE_BYTES + 1)),
            &format!("0\r\n{}", "x: y\r\n".repeat(MAX_LINE_BYTES / 6 + 1)),
        ] {
            assert_eq!(chunks(wrong), Err(BrokenResponse), "{wrong:?}");
        }
    }

    #[test]
    fn a_body_of_unknown_length_ends_with_its_connection() {
        let (data, framing, left) = read(Framing::UntilClosed, &[b"a", b"b"]).unwrap();
        assert_eq!((&*data, framing.is_over(), &*left), (&b"ab"[..], false, &b""[..]));
        let (data, framing, left) = read(Framing::Length(3), &[b"ab", b"cd"]).unwrap();
        assert_eq!((&*data, framing.is_over(), &*left), (&b"abc"[..], true, &b"d"[..]));
    }

    proptest! {
        #[test]
        fn where_a_body_is_cut_changes_nothing(
            pieces in prop::collection::vec(("[0-9a-f\r\n;:x ]{1,40}", any::<bool>()), 0..8),
            cuts in prop::collection::vec(0_usize..400, 0..8),
        ) {
            let mut body: String = pieces
                .iter()
                .map(|(text, is_sound)| if *is_sound { format!("{:x}\r\n{text}\r\n", text.len()) } else { text.clone() })
                .collect();
            body.push_str("0\r\n\r\nx");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).chain([body.len()]).collect();
            cuts.sort_unstable();
            let mut from = 0;
            let pieces: Vec<&[u8]> =
                cuts.iter().map(|to| &body.as_bytes()[std::mem::replace(&mut from, *to)..*to]).collect();
            let framing = || Framing::Chunked(ChunkState::Size);
            prop_assert_eq!(read(framing(), &[body.as_bytes()]), read(framing(), &pieces));
        }

        #[test]
        fn any_chunks_are_read_as_they_were_written(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..8),
        ) {
            let mut body = Vec::new();
            for piece in &pieces {
                body.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
                body.extend_from_slice(piece);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
            let (data, framing, left) = read(Framing::Chunked(ChunkState::Size), &[&body]).unwrap();
            prop_assert_eq!((data, framing.is_over(), left), (pieces.concat(), true, Vec::new()));
        }
    }
}
