//! Where the body of an answer ends, and which of its bytes are data (RFC 9112, sections 6 and 7).
//!
//! What must hold: where there is any doubt where an answer ends, it is broken. The next one on its connection may be
//! somebody else's.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use super::Broken;

/// The longest line that tells a chunk's size, and the most of all that may follow the last chunk.
const MOST_LINE_BYTES: usize = 8 * 1024;
/// The most trailers.
const MOST_TRAILERS: usize = 64;

/// What is still to come of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks that tell their sizes.
    Chunks(Expected),
    /// All that comes until the connection ends.
    UntilClosed,
}

/// What comes next among chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The line with a size.
    Size,
    /// So many bytes of data.
    Data(u64),
    /// The line end behind data.
    Behind,
    /// The trailers and the empty line behind them. They tell nothing that anybody asks for.
    Trailers,
    /// Nothing.
    End,
}

impl Framing {
    /// That of the answer with this head to a request that is not `HEAD`.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Result<Self, Broken> {
        if Self::has_none(status) {
            return Ok(Self::Length(0));
        }
        // Who sends both means the codings.
        if headers.contains_key(TRANSFER_ENCODING) {
            let codings = headers.get_all(TRANSFER_ENCODING).iter().next_back();
            let last = codings.and_then(|value| value.to_str().ok()?.rsplit(',').next());
            let is_chunked = last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
            return Ok(if is_chunked { Self::Chunks(Expected::Size) } else { Self::UntilClosed });
        }
        let mut length = None;
        for value in headers.get_all(CONTENT_LENGTH) {
            for value in value.as_bytes().split(|byte| *byte == b',') {
                let told = length_of(value.trim_ascii())?;
                if length.replace(told).is_some_and(|other| other != told) {
                    return Err(Broken);
                }
            }
        }
        Ok(length.map_or(Self::UntilClosed, Self::Length))
    }

    /// Whether no body belongs to an answer with this status, whatever its head says.
    pub(super) fn has_none(status: StatusCode) -> bool {
        matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    }

    /// Takes what there is of the data from the beginning of what came. Nothing is left there but what belongs to no
    /// body, or what is not yet complete.
    pub(super) fn take(&mut self, came: &mut BytesMut) -> Result<Bytes, Broken> {
        let expected = match self {
            Self::Length(left) => {
                let count = fitting(*left, came.len());
                *left -= count as u64;
                return Ok(came.split_to(count).freeze());
            }
            Self::UntilClosed => return Ok(came.split().freeze()),
            Self::Chunks(expected) => expected,
        };
        let mut data = BytesMut::with_capacity(came.len());
        let mut at = 0;
        while let Some(count) = expected.pass(&came[at..], &mut data)? {
            at += count;
        }
        came.advance(at);
        Ok(data.freeze())
    }

    /// Whether all has come.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunks(Expected::End))
    }

    /// How much is to come, if that is known.
    pub(super) const fn length(&self) -> Option<u64> {
        match self {
            Self::Length(left) => Some(*left),
            Self::Chunks(_) | Self::UntilClosed => None,
        }
    }
}

impl Expected {
    /// Goes over one thing at the beginning of what came, and gives its length; `None` if it is not all there.
    fn pass(&mut self, came: &[u8], data: &mut BytesMut) -> Result<Option<usize>, Broken> {
        match self {
            Self::Size => {
                let Some((count, size)) = size(came)? else { return Ok(None) };
                *self = if size == 0 { Self::Trailers } else { Self::Data(size) };
                Ok(Some(count))
            }
            Self::Data(left) => {
                let count = fitting(*left, came.len());
                data.extend_from_slice(&came[..count]);
                *left -= count as u64;
                if *left == 0 {
                    *self = Self::Behind;
                }
                Ok((count > 0).then_some(count))
            }
            Self::Behind => match came {
                [b'\r', b'\n', ..] => {
                    *self = Self::Size;
                    Ok(Some(2))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(Broken),
            },
            Self::Trailers => {
                let Some(count) = trailers(came)? else { return Ok(None) };
                *self = Self::End;
                Ok(Some(count))
            }
            Self::End => Ok(None),
        }
    }
}

/// The size that the line at the beginning tells, and the length of that line.
fn size(came: &[u8]) -> Result<Option<(usize, u64)>, Broken> {
    // The library takes a line without a digit for a zero, and line feeds for a part of an extension.
    if came.first().is_some_and(|first| !first.is_ascii_hexdigit()) {
        return Err(Broken);
    }
    match httparse::parse_chunk_size(came).map_err(|_| Broken)? {
        httparse::Status::Complete((count, _)) if came[..count - 2].contains(&b'\n') => Err(Broken),
        httparse::Status::Complete(told) => Ok(Some(told)),
        httparse::Status::Partial if came.len() > MOST_LINE_BYTES => Err(Broken),
        httparse::Status::Partial => Ok(None),
    }
}

/// The length of the trailers at the beginning, with the empty line behind them.
fn trailers(came: &[u8]) -> Result<Option<usize>, Broken> {
    let mut room = [httparse::EMPTY_HEADER; MOST_TRAILERS];
    let parsed = httparse::parse_headers(came, &mut room).map_err(|_| Broken)?;
    match parsed {
        httparse::Status::Partial if came.len() <= MOST_LINE_BYTES => Ok(None),
        httparse::Status::Complete((count, _))
            if count <= MOST_LINE_BYTES && has_whole_ends(&came[..count]) =>
        {
            Ok(Some(count))
        }
        _ => Err(Broken),
    }
}

/// Whether each line feed ends a line as HTTP has it.
fn has_whole_ends(lines: &[u8]) -> bool {
    lines.split_inclusive(|byte| *byte == b'\n').all(|line| line.ends_with(b"\r\n"))
}

/// How much of what came belongs to what is left.
fn fitting(left: u64, came: usize) -> usize {
    usize::try_from(left).map_or(came, |left| left.min(came))
}

/// A length as it stands in a header: digits and nothing else.
fn length_of(text: &[u8]) -> Result<u64, Broken> {
    let digits = Some(text).filter(|text| text.iter().all(u8::is_ascii_digit));
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|text| text.parse().ok()).ok_or(Broken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framing(status: u16, headers: &[(&'static str, &str)]) -> Result<Framing, Broken> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Framing::of(StatusCode::from_u16(status).unwrap(), &headers.collect())
    }

    /// The data of a body that comes in these pieces, and what is left behind its end.
    fn read(mut framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, Framing, Vec<u8>), Broken> {
        let (mut came, mut data) = (BytesMut::new(), Vec::new());
        for piece in pieces {
            came.extend_from_slice(piece);
            data.extend_from_slice(&framing.take(&mut came)?);
        }
        Ok((data, framing, came.to_vec()))
    }

    fn chunks(body: &str) -> Result<(String, bool, String), Broken> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (data, framing, left) = read(Framing::Chunks(Expected::Size), &[body.as_bytes()])?;
        Ok((text(data), framing.is_over(), text(left)))
    }

    #[test]
    fn a_head_tells_where_its_body_ends() {
        let chunked = Ok(Framing::Chunks(Expected::Size));
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
            assert_eq!(framing(200, &[("content-length", wrong)]), Err(Broken), "{wrong}");
        }
    }

    #[test]
    fn chunks_are_read_to_their_end_and_no_farther() {
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
            &format!("2;{}", "x".repeat(MOST_LINE_BYTES)),
            &format!("0\r\n{}", "x".repeat(MOST_LINE_BYTES + 1)),
            &format!("0\r\n{}", "x: y\r\n".repeat(MOST_LINE_BYTES / 6 + 1)),
        ] {
            assert_eq!(chunks(wrong), Err(Broken), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_not_told_ends_with_its_connection() {
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
            let framing = || Framing::Chunks(Expected::Size);
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
            let (data, framing, left) = read(Framing::Chunks(Expected::Size), &[&body]).unwrap();
            prop_assert_eq!((data, framing.is_over(), left), (pieces.concat(), true, Vec::new()));
        }
    }
}
