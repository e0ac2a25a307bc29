//! Where a browser thinks it is, and which of its pages a request comes from.
//!
//! Sessions travel in a cookie that browsers send along with whatever request goes to us. So a request that changes
//! something must come from a page of our own, which its `Origin` tells: host and port have to be those that the
//! request was sent to. The scheme is left out, as a proxy that speaks TLS for us need not say so. What a proxy says of
//! the outside (`X-Forwarded-Host`, `X-Forwarded-Proto`) is believed of trusted ones alone; no foreign page can make a
//! browser send these.

use http::{HeaderMap, HeaderName, Uri, header};

use super::Context;
use super::incoming::Incoming;
use super::reply::ApiError;

/// Whether the caller speaks TLS, to us or to a trusted proxy.
pub(super) fn is_https(context: &Context, incoming: &Incoming) -> bool {
    context.options.tls.is_some()
        || forwarded(incoming, "x-forwarded-proto").is_some_and(|it| it.eq_ignore_ascii_case("https"))
}

/// Lets through what a page of ours may have sent, and nothing that only looks like it: an `Origin` is needed.
pub(super) fn must_be_ours(incoming: &Incoming) -> Result<(), ApiError> {
    if incoming.headers.contains_key(header::ORIGIN) {
        must_not_be_foreign(incoming)
    } else {
        Err(ApiError::origin_not_allowed())
    }
}

/// Lets through what no browser has sent, or one from a page of ours.
pub(super) fn must_not_be_foreign(incoming: &Incoming) -> Result<(), ApiError> {
    let comes_from_elsewhere = match text(&incoming.headers, &header::ORIGIN) {
        Ok(origin) => origin.is_some_and(|origin| !is_own(origin, incoming)),
        Err(Unreadable) => true,
    };
    let is_cross_site = match text(&incoming.headers, &HeaderName::from_static("sec-fetch-site")) {
        Ok(site) => site.is_some_and(|site| !matches!(site, "same-origin" | "none")),
        Err(Unreadable) => true,
    };
    if comes_from_elsewhere || is_cross_site { Err(ApiError::origin_not_allowed()) } else { Ok(()) }
}

/// A header that stands there twice, or is no text.
struct Unreadable;

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Unreadable),
        (Some(_), Some(_)) => Err(Unreadable),
    }
}

/// Whether a page of this origin is one of ours.
fn is_own(origin: &str, incoming: &Incoming) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let (Some(scheme), Some(host)) = (origin.scheme_str(), origin.host()) else { return false };
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let Some(addressed) = addressed(incoming) else { return false };
    host.eq_ignore_ascii_case(addressed.host())
        && origin.port_u16().unwrap_or(usual) == addressed.port_u16().unwrap_or(usual)
}

/// The host and port that the request was sent to, as its sender knows them.
fn addressed(incoming: &Incoming) -> Option<http::uri::Authority> {
    if let Some(host) = forwarded(incoming, "x-forwarded-host") {
        return host.parse().ok();
    }
    match &incoming.authority {
        Some(authority) => Some(authority.clone()),
        None => text(&incoming.headers, &header::HOST).ok()??.parse().ok(),
    }
}

/// What a trusted proxy says of the outside; where several have passed the request on, the outermost.
fn forwarded<'a>(incoming: &'a Incoming, name: &'static str) -> Option<&'a str> {
    let value = incoming.headers.get(name).filter(|_| incoming.is_proxied)?;
    value.to_str().ok()?.split(',').next().map(str::trim).filter(|value| !value.is_empty())
}
