//! The session cookie. Scripts cannot read it, other sites cannot make browsers send it, and over HTTPS its name says
//! that it was set by this very host and over TLS (`__Host-`), so that no sibling domain can replace it.

use http::{HeaderMap, HeaderValue, header};

const PLAIN: &str = "mk_session";
const SECURE: &str = "__Host-mk_session";

const fn name(is_https: bool) -> &'static str {
    if is_https { SECURE } else { PLAIN }
}

/// The value of a request's session cookie, if it has one. Of several, nobody can say which is ours: they count as
/// empty.
pub(in crate::server) fn session(headers: &HeaderMap, is_https: bool) -> Option<&str> {
    let mut found = headers.get_all(header::COOKIE).iter().flat_map(|value| {
        value.as_bytes().split(|byte| *byte == b';').filter_map(|pair| value_of(pair, name(is_https)))
    });
    let first = found.next()?;
    if found.next().is_some() { Some("") } else { Some(first) }
}

/// The value of a `name=value` pair with this name; empty if it is not text.
fn value_of<'a>(pair: &'a [u8], name: &str) -> Option<&'a str> {
    let value = pair.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
    Some(std::str::from_utf8(value).unwrap_or_default())
}

/// The `Set-Cookie` header. The browser keeps the cookie until it is closed; the server expires the session by itself.
pub(in crate::server) fn set(token: &str, is_https: bool) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format_cookie(token, is_https, "")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The `Set-Cookie` header that deletes the cookie.
pub(in crate::server) fn clear(is_https: bool) -> Option<HeaderValue> {
    HeaderValue::try_from(format_cookie("", is_https, "; Max-Age=0")).ok()
}

fn format_cookie(token: &str, is_https: bool, attributes: &str) -> String {
    let (name, secure) = (name(is_https), if is_https { "; Secure" } else { "" });
    format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/{secure}{attributes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(lines: &[&[u8]]) -> HeaderMap {
        lines.iter().map(|line| (header::COOKIE, HeaderValue::from_bytes(line).unwrap())).collect()
    }

    #[test]
    fn it_is_found_among_others_by_its_whole_name() {
        let headers = cookies(&[b"a=\xc3\xa9; mk_session=x;mk_sessions=y", b"not_mk_session=z; mk_session"]);
        assert_eq!(session(&headers, false), Some("x"));
        assert_eq!(session(&headers, true), None);
        assert_eq!(session(&cookies(&[b"__Host-mk_session=x; mk_session=y"]), true), Some("x"));
        assert_eq!(session(&cookies(&[]), false), None);
    }

    #[test]
    fn several_cookies_hold_nothing() {
        assert_eq!(session(&cookies(&[b"mk_session=x; mk_session=x"]), false), Some(""));
        assert_eq!(session(&cookies(&[b"mk_session=x", b"mk_session=y"]), false), Some(""));
        assert_eq!(session(&cookies(&[b"mk_session=\xff"]), false), Some(""));
    }

    #[test]
    fn its_attributes_keep_it_to_this_host() {
        let set = set("x", false).unwrap();
        assert_eq!(set, "mk_session=x; HttpOnly; SameSite=Strict; Path=/");
        assert!(set.is_sensitive());
        let cleared = clear(true).unwrap();
        assert_eq!(cleared, "__Host-mk_session=; HttpOnly; SameSite=Strict; Path=/; Secure; Max-Age=0");
    }
}
