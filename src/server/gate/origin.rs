//! Same-origin checks, which protect against CSRF.
//!
//! Sessions travel in a cookie that browsers attach to every request to us. So a request that changes something must
//! come from one of our own pages, as its `Origin` tells: host and port have to be those that the request was sent to.
//! The scheme is not compared, as a proxy that terminates TLS for us need not say so. What a proxy says about the
//! outside (`X-Forwarded-Host`, `X-Forwarded-Proto`) is believed of trusted proxies alone; no foreign page can make a
//! browser send these headers.

use http::{HeaderMap, HeaderName, Uri, header};

use crate::server::ServerState;
use crate::server::reply::{ApiError, ErrorCode};
use crate::server::request::incoming::Incoming;

/// Whether the caller uses TLS, to us or to a trusted proxy.
pub(in crate::server) fn is_https(context: &ServerState, incoming: &Incoming) -> bool {
    context.options.tls.is_some()
        || forwarded(incoming, "x-forwarded-proto").is_some_and(|it| it.eq_ignore_ascii_case("https"))
}

/// Accepts only requests from our own pages: an `Origin` is required, and has to be ours.
pub(in crate::server) fn require_same_origin(incoming: &Incoming) -> Result<(), ApiError> {
    if incoming.headers.contains_key(header::ORIGIN) {
        reject_cross_origin(incoming)
    } else {
        Err(ApiError::from(ErrorCode::OriginNotAllowed))
    }
}

/// Rejects requests that a browser has sent from a foreign page; those without any sign of a browser are accepted.
pub(in crate::server) fn reject_cross_origin(incoming: &Incoming) -> Result<(), ApiError> {
    let is_cross_origin = match text(&incoming.headers, &header::ORIGIN) {
        Ok(origin) => origin.is_some_and(|origin| !is_same_origin(origin, incoming)),
        Err(Unreadable) => true,
    };
    let is_cross_site = match text(&incoming.headers, &HeaderName::from_static("sec-fetch-site")) {
        Ok(site) => site.is_some_and(|site| !matches!(site, "same-origin" | "none")),
        Err(Unreadable) => true,
    };
    if is_cross_origin || is_cross_site { Err(ApiError::from(ErrorCode::OriginNotAllowed)) } else { Ok(()) }
}

/// A header is repeated, or not text.
struct Unreadable;

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Unreadable),
        (Some(_), Some(_)) => Err(Unreadable),
    }
}

/// Whether `origin` is the host and port that the request was sent to.
fn is_same_origin(origin: &str, incoming: &Incoming) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let (Some(scheme), Some(host)) = (origin.scheme_str(), origin.host()) else { return false };
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Some(target) = target_authority(incoming) else { return false };
    host.eq_ignore_ascii_case(target.host())
        && origin.port_u16().unwrap_or(default_port) == target.port_u16().unwrap_or(default_port)
}

/// The host and port that the request was sent to, as its sender sees them.
fn target_authority(incoming: &Incoming) -> Option<http::uri::Authority> {
    if let Some(host) = forwarded(incoming, "x-forwarded-host") {
        return host.parse().ok();
    }
    match &incoming.authority {
        Some(authority) => Some(authority.clone()),
        None => text(&incoming.headers, &header::HOST).ok()??.parse().ok(),
    }
}

/// The value of a forwarding header from a trusted proxy; the outermost one if several proxies forwarded the request.
fn forwarded<'a>(incoming: &'a Incoming, name: &'static str) -> Option<&'a str> {
    let value = incoming.headers.get(name).filter(|_| incoming.is_proxied)?;
    value.to_str().ok()?.split(',').next().map(str::trim).filter(|value| !value.is_empty())
}
