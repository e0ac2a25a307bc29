//! The headers of limits, which every answer carries.

use std::fmt::Write;

use http::HeaderMap;
use http::header::HeaderValue;

use crate::limits::{State, Window};
use crate::server::header_names as names;

/// The limits that an answer's headers describe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Both windows.
    pub(crate) state: State,
    /// The window that refused the request, if one did: the headers then speak of it alone.
    pub(crate) violated: Option<Window>,
}

impl From<State> for Rate {
    fn from(state: State) -> Self {
        Self { state, violated: None }
    }
}

/// Writes the limits into an answer's headers: `X-RateLimit-*` of the window with the fewest requests left, and
/// the fields of the IETF draft (draft-ietf-httpapi-ratelimit-headers) for all windows there are.
pub(crate) fn write_rate_headers(headers: &mut HeaderMap, rate: &Rate) {
    let state = rate.state;
    let violated = rate.violated.and_then(|window| match window {
        Window::Minute => state.minute,
        Window::Day => state.day,
    });
    let headline = violated.unwrap_or_else(|| state.headline());
    headers.insert(&names::RATE_LIMIT, HeaderValue::from(headline.limit));
    headers.insert(&names::RATE_REMAINING, HeaderValue::from(headline.remaining));
    headers.insert(&names::RATE_RESET, HeaderValue::from(headline.reset));

    let windows = [("minute", 60, state.minute), ("day", 86_400, state.day)];
    let (mut policy, mut current) = (String::with_capacity(64), String::with_capacity(64));
    for (name, seconds, window) in windows {
        let Some(window) = window else { continue };
        let separator = if policy.is_empty() { "" } else { ", " };
        // `reset_in` is rounded up to whole seconds of the clock, and may thereby be one more than the window.
        let seconds_left = window.reset_in.min(seconds);
        // Writing into memory cannot fail.
        let _ = write!(policy, "{separator}\"{name}\";q={};w={seconds}", window.limit);
        let _ = write!(current, "{separator}\"{name}\";r={};t={seconds_left}", window.remaining);
    }
    if policy.is_empty() {
        return;
    }
    for (name, text) in [(&names::RATE_POLICY, policy), (&names::RATE_STATE, current)] {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    }
}
