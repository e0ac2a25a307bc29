//! The head of a response, and what it says about the body and the connection.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use httparse::{ParserConfig, Status};

use super::BrokenResponse;
use super::framing::Framing;

/// The maximum size of all heads of one response, including those of interim responses (1xx).
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// The maximum number of headers in one head.
const MAX_HEADERS: usize = 128;
/// The headers that are read, here or by a dialect. The many others that providers send are dropped.
const KEPT_HEADERS: [HeaderName; 7] = [
    CONTENT_LENGTH,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
    CONNECTION,
    RETRY_AFTER,
    HeaderName::from_static("retry-after-ms"),
    DATE,
];
/// The offset of the status in a response: `HTTP/1.1 200`.
const STATUS_AT: usize = 9;

/// The head of a final (not 1xx) response.
#[derive(Debug)]
pub(super) struct Head {
    /// Has the headers of [`KEPT_HEADERS`].
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// Whether the connection persists after the response (RFC 9112, section 9.3).
    pub(super) keep_alive: bool,
}

/// The kind of a response that begins while its request is still being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlyResponse {
    /// A success: sending goes on.
    Success,
    /// Anything else, including what is no response.
    Refusal,
}

/// Takes the final head, and any interim responses (1xx) before it, from the beginning of `received`; `None` if it is
/// incomplete. `interim_bytes` accumulates the length of interim responses across calls.
pub(super) fn take(
    received: &mut BytesMut,
    interim_bytes: &mut usize,
) -> Result<Option<Head>, BrokenResponse> {
    loop {
        let read = read(received)?;
        let length = read.as_ref().map_or(received.len(), |(length, _)| *length);
        if *interim_bytes + length > MAX_BYTES {
            return Err(BrokenResponse);
        }
        let Some((length, head)) = read else { return Ok(None) };
        received.advance(length);
        if head.is_some() {
            return Ok(head);
        }
        *interim_bytes += length;
    }
}

/// The kind of a response that may be incomplete; `None` if it cannot be told yet. Consumes interim responses, as
/// [`take`] does.
pub(super) fn early_response(received: &mut BytesMut, interim_bytes: &mut usize) -> Option<EarlyResponse> {
    loop {
        match *received.get(STATUS_AT)? {
            b'1' => {}
            b'2' => return Some(EarlyResponse::Success),
            _ => return Some(EarlyResponse::Refusal),
        }
        match read(received) {
            Ok(Some((length, None))) if *interim_bytes + length <= MAX_BYTES => {
                received.advance(length);
                *interim_bytes += length;
            }
            Ok(None) if *interim_bytes + received.len() <= MAX_BYTES => return None,
            _ => return Some(EarlyResponse::Refusal),
        }
    }
}

/// Parses the head at the beginning and returns its length with it; without the head if it is that of an interim
/// response.
fn read(received: &[u8]) -> Result<Option<(usize, Option<Head>)>, BrokenResponse> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        ParserConfig::default().parse_response_with_uninit_headers(&mut response, received, &mut headers);
    let Status::Complete(length) = parsed.map_err(|_| BrokenResponse)? else { return Ok(None) };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(BrokenResponse)?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(BrokenResponse);
    }
    if status.is_informational() {
        return Ok(Some((length, None)));
    }
    let mut map = HeaderMap::with_capacity(KEPT_HEADERS.len());
    for header in &*response.headers {
        if let Some(name) = KEPT_HEADERS.iter().find(|name| name.as_str().eq_ignore_ascii_case(header.name)) {
            map.append(name, HeaderValue::from_bytes(header.value).map_err(|_| BrokenResponse)?);
        }
    }
    let is_1_1 = response.version == Some(1);
    if !is_1_1 && map.contains_key(TRANSFER_ENCODING) {
        // HTTP/1.0 has no such header, so either the version or the header is wrong.
        return Err(BrokenResponse);
    }
    let framing = Framing::of(status, &map)?;
    let keep_alive = framing != Framing::UntilClosed && keep_alive(is_1_1, status, &map);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = map;
    Ok(Some((length, Some(Head { response, framing, keep_alive }))))
}

fn keep_alive(is_1_1: bool, status: StatusCode, headers: &HeaderMap) -> bool {
    let has_option = |name: &str| {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|option| option.trim().eq_ignore_ascii_case(name))
    };
    // If both headers are there, one is wrong; if a body is announced where there can be none, it may still be sent.
    let announced =
        [TRANSFER_ENCODING, CONTENT_LENGTH].iter().filter(|name| headers.contains_key(*name)).count();
    let allowed = usize::from(!Framing::has_no_body(status));
    announced <= allowed && if is_1_1 { !has_option("close") } else { has_option("keep-alive") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Result<Option<(Head, String)>, BrokenResponse> {
        let mut received = BytesMut::from(text);
        let head = take(&mut received, &mut 0)?;
        Ok(head.map(|head| (head, String::from_utf8(received.to_vec()).unwrap())))
    }

    #[test]
    fn a_head_is_taken_and_what_follows_it_stays() {
        let headers = "Retry-After:  b c \r\nretry-after: d\r\nX-Other: e\r\nContent-Length: 2\r\n";
        let (head, left) = taken(&format!("HTTP/1.1 429 \r\n{headers}\r\nok")).unwrap().unwrap();
        assert_eq!(
            (head.response.status().as_u16(), head.framing, head.keep_alive),
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
    fn interim_responses_are_skipped() {
        let before = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
        let (head, _) = taken(&format!("{before}HTTP/1.1 200 OK\r\n\r\n")).unwrap().unwrap();
        assert_eq!((head.response.status().as_u16(), head.response.headers().len()), (200, 0));
        assert!(taken(before).unwrap().is_none());

        let (mut received, mut interim_bytes) = (BytesMut::from(before), 0);
        assert_eq!(
            (early_response(&mut received, &mut interim_bytes), received.len(), interim_bytes),
            (None, 0, before.len())
        );
        for (text, expected) in [
            ("HTTP/1.1", None),
            ("HTTP/1.1 1", None),
            ("HTTP/1.1 2", Some(EarlyResponse::Success)),
            ("HTTP/1.1 4", Some(EarlyResponse::Refusal)),
            ("anything at all", Some(EarlyResponse::Refusal)),
            ("HTTP/1.1 101 Go\r\n\r\n", Some(EarlyResponse::Refusal)),
            ("HTTP/1.1 1xx\r\n\r\n", Some(EarlyResponse::Refusal)),
        ] {
            assert_eq!(early_response(&mut BytesMut::from(text), &mut 0), expected, "{text}");
        }
    }

    #[test]
    fn interim_responses_cannot_go_on_for_ever() {
        let hint = "HTTP/1.1 103 x\r\na: b\r\n\r\n";
        let (mut taken_bytes, mut early_bytes) = (0, 0);
        let mut heads = 0;
        while take(&mut BytesMut::from(hint), &mut taken_bytes).is_ok() {
            assert_eq!(early_response(&mut BytesMut::from(hint), &mut early_bytes), None);
            heads += 1;
        }
        assert_eq!(heads, MAX_BYTES / hint.len());
        assert_eq!(early_response(&mut BytesMut::from(hint), &mut early_bytes), Some(EarlyResponse::Refusal));
    }

    #[test]
    fn invalid_heads_are_broken_responses() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        let long = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MAX_BYTES));
        let whole = format!("{long}\r\n\r\n");
        let hints = format!("HTTP/1.1 103 X\r\na: {}", "b".repeat(MAX_BYTES));
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
    fn a_connection_persists_if_its_response_allows_it() {
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
            assert_eq!(head.keep_alive, expected, "{first} {header}");
        }
        let keep_alive = |headers: &str| {
            taken(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n")).unwrap().unwrap().0.keep_alive
        };
        assert!(keep_alive("transfer-encoding: chunked\r\n"));
        assert!(!keep_alive(""), "the connection's end is the body's");
        let bodyless =
            |headers: &str| taken(&format!("HTTP/1.1 204 x\r\n{headers}\r\n")).unwrap().unwrap().0.keep_alive;
        assert!(bodyless(""));
        assert!(!bodyless("content-length: 9\r\n"), "what is announced may come");
    }
}
