//! The head of an answer, and what it says of its body and its connection.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use httparse::{ParserConfig, Status};

use super::Broken;
use super::framing::Framing;

/// The most that heads of one answer may be, those before the last word included.
pub(super) const MOST_BYTES: usize = 64 * 1024;
/// The most headers in one.
const MOST_HEADERS: usize = 128;
/// The headers that anybody reads, here or in a format. What else a provider says of an answer, and that is much, is left
/// where it came.
const READ: [HeaderName; 7] = [
    CONTENT_LENGTH,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
    CONNECTION,
    RETRY_AFTER,
    HeaderName::from_static("retry-after-ms"),
    DATE,
];
/// Where the status stands in an answer: `HTTP/1.1 200`.
const STATUS_AT: usize = 9;

/// The head of an answer that is the last word on its request.
#[derive(Debug)]
pub(super) struct Head {
    /// With the headers of [`READ`].
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// Whether the connection stays open behind the answer (RFC 9112, section 9.3).
    pub(super) stays_open: bool,
}

/// What an answer begins with, as far as whoever still sends the request has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstWord {
    /// A success: the request may go on.
    Answer,
    /// Anything else, or no answer.
    Refusal,
}

/// Takes the head at the beginning of what came, and all before it that is not the last word (1xx); `None` if it is not
/// all there. `passed` is how much was before it already.
pub(super) fn take(came: &mut BytesMut, passed: &mut usize) -> Result<Option<Head>, Broken> {
    loop {
        let read = read(came)?;
        let length = read.as_ref().map_or(came.len(), |(length, _)| *length);
        if *passed + length > MOST_BYTES {
            return Err(Broken);
        }
        let Some((length, head)) = read else { return Ok(None) };
        came.advance(length);
        if head.is_some() {
            return Ok(head);
        }
        *passed += length;
    }
}

/// How an answer begins that has come in part; `None` if that cannot be seen yet. What comes before it is taken away, as
/// by [`take`].
pub(super) fn first_word(came: &mut BytesMut, passed: &mut usize) -> Option<FirstWord> {
    loop {
        match *came.get(STATUS_AT)? {
            b'1' => {}
            b'2' => return Some(FirstWord::Answer),
            _ => return Some(FirstWord::Refusal),
        }
        match read(came) {
            Ok(Some((length, None))) if *passed + length <= MOST_BYTES => {
                came.advance(length);
                *passed += length;
            }
            Ok(None) if *passed + came.len() <= MOST_BYTES => return None,
            _ => return Some(FirstWord::Refusal),
        }
    }
}

/// The head at the beginning, and its length; no head if it is not the last word.
fn read(came: &[u8]) -> Result<Option<(usize, Option<Head>)>, Broken> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, came, &mut headers);
    let Status::Complete(length) = parsed.map_err(|_| Broken)? else { return Ok(None) };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Broken)?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Broken);
    }
    if status.is_informational() {
        return Ok(Some((length, None)));
    }
    let mut map = HeaderMap::with_capacity(READ.len());
    for header in &*response.headers {
        if let Some(name) = READ.iter().find(|name| name.as_str().eq_ignore_ascii_case(header.name)) {
            map.append(name, HeaderValue::from_bytes(header.value).map_err(|_| Broken)?);
        }
    }
    let is_1_1 = response.version == Some(1);
    if !is_1_1 && map.contains_key(TRANSFER_ENCODING) {
        // It knows no such thing: what speaks so means one of the two wrongly.
        return Err(Broken);
    }
    let framing = Framing::of(status, &map)?;
    let stays_open = framing != Framing::UntilClosed && stays_open(is_1_1, status, &map);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = map;
    Ok(Some((length, Some(Head { response, framing, stays_open }))))
}

fn stays_open(is_1_1: bool, status: StatusCode, headers: &HeaderMap) -> bool {
    let says = |word: &str| {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
    };
    // Who tells of both means one of them wrongly, and who tells of a body where none can be may send it.
    let told = [TRANSFER_ENCODING, CONTENT_LENGTH].iter().filter(|name| headers.contains_key(*name)).count();
    let most = usize::from(!Framing::has_none(status));
    told <= most && if is_1_1 { !says("close") } else { says("keep-alive") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<Option<(Head, String)>, Broken> {
        let mut came = BytesMut::from(text);
        let head = take(&mut came, &mut 0)?;
        Ok(head.map(|head| (head, String::from_utf8(came.to_vec()).unwrap())))
    }

    #[test]
    fn a_head_is_taken_and_what_is_behind_it_stays() {
        let headers = "Retry-After:  b c \r\nretry-after: d\r\nX-Other: e\r\nContent-Length: 2\r\n";
        let (head, left) = taken(&format!("HTTP/1.1 429 \r\n{headers}\r\nok")).unwrap().unwrap();
        assert_eq!(
            (head.response.status().as_u16(), head.framing, head.stays_open),
            (429, Framing::Length(2), true)
        );
        let values = head.response.headers().get_all("retry-after").iter();
        let values: Vec<_> = values.map(|value| value.to_str().unwrap()).collect();
        assert_eq!((values[0], values[1], values.len(), left.as_str()), ("b c", "d", 2, "ok"));
        for partial in ["", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\na: b\r\n\r"] {
            assert!(taken(partial).unwrap().is_none(), "{partial:?}");
        }
    }

    #[test]
    fn what_is_not_the_last_word_is_passed_over() {
        let before = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        let (head, _) = taken(&format!("{before}HTTP/1.1 200 OK\r\n\r\n")).unwrap().unwrap();
        assert_eq!((head.response.status().as_u16(), head.response.headers().len()), (200, 0));
        assert!(taken(before).unwrap().is_none());

        let (mut came, mut passed) = (BytesMut::from(before), 0);
        assert_eq!((first_word(&mut came, &mut passed), came.len(), passed), (None, 0, before.len()));
        for (text, expected) in [
            ("HTTP/1.1", None),
            ("HTTP/1.1 1", None),
            ("HTTP/1.1 2", Some(FirstWord::Answer)),
            ("HTTP/1.1 4", Some(FirstWord::Refusal)),
            ("anything at all", Some(FirstWord::Refusal)),
            ("HTTP/1.1 101 Go\r\n\r\n", Some(FirstWord::Refusal)),
            ("HTTP/1.1 1xx\r\n\r\n", Some(FirstWord::Refusal)),
        ] {
            assert_eq!(first_word(&mut BytesMut::from(text), &mut 0), expected, "{text}");
        }
    }

    #[test]
    fn nobody_is_kept_by_words_before_the_last() {
        let hint = "HTTP/1.1 103 x\r\na: b\r\n\r\n";
        let (mut passed, mut refused) = (0, 0);
        let mut heads = 0;
        while take(&mut BytesMut::from(hint), &mut passed).is_ok() {
            assert_eq!(first_word(&mut BytesMut::from(hint), &mut refused), None);
            heads += 1;
        }
        assert_eq!(heads, MOST_BYTES / hint.len());
        assert_eq!(first_word(&mut BytesMut::from(hint), &mut refused), Some(FirstWord::Refusal));
    }

    #[test]
    fn what_is_no_head_is_broken() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        let long = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MOST_BYTES));
        let whole = format!("{long}\r\n\r\n");
        let hints = format!("HTTP/1.1 103 X\r\na: {}", "b".repeat(MOST_BYTES));
        for wrong in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
            "HTTP/1.1 200 OK\r\na: \u{1}\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            &many,
            &long,
            &whole,
            &hints,
        ] {
            assert!(taken(wrong).is_err(), "{:?}", &wrong[..wrong.len().min(60)]);
        }
    }

    #[test]
    fn a_connection_stays_open_if_its_answer_lets_it() {
        for (first, header, expected) in [
            ("HTTP/1.1 200 OK", "", true),
            ("HTTP/1.1 200 OK", "connection: keep-alive\r\n", true),
            ("HTTP/1.1 200 OK", "connection: x, Close\r\n", false),
            ("HTTP/1.1 200 OK", "connection: x\r\nconnection: close\r\n", false),
            ("HTTP/1.0 200 OK", "", false),
            ("HTTP/1.0 200 OK", "connection: Keep-Alive\r\n", true),
            ("HTTP/1.1 200 OK", "transfer-encoding: chunked\r\n", false),
        ] {
            let (head, _) = taken(&format!("{first}\r\ncontent-length: 2\r\n{header}\r\n")).unwrap().unwrap();
            assert_eq!(head.stays_open, expected, "{first} {header}");
        }
        let stays_open = |headers: &str| {
            taken(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).unwrap().unwrap().0.stays_open
        };
        assert!(stays_open("transfer-encoding: chunked\r\n"));
        assert!(!stays_open(""), "the connection's end is the body's");
        let bodyless =
            |headers: &str| taken(&format!("HTTP/1.1 204 x\r\n{headers}\r\n")).unwrap().unwrap().0.stays_open;
        assert!(bodyless(""));
        assert!(!bodyless("content-length: 9\r\n"), "what is announced may come");
    }
}
