//! The headers of limits, which every answer carries.

use http::HeaderMap;
use http::header::HeaderValue;

use crate::limits::{State, Window};

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
    headers.insert("x-ratelimit-limit", HeaderValue::from(headline.limit));
    headers.insert("x-ratelimit-remaining", HeaderValue::from(headline.remaining));
    headers.insert("x-ratelimit-reset", HeaderValue::from(headline.reset));

    let windows = [("minute", 60, state.minute), ("day", 86_400, state.day)];
    let mut policy = Vec::with_capacity(2);
    let mut current = Vec::with_capacity(2);
    for (name, seconds, window) in windows {
        let Some(window) = window else { continue };
        policy.push(format!("\"{name}\";q={};w={seconds}", window.limit));
        // `reset_in` is rounded up to whole seconds of the clock, and may thereby be one more than the window.
        let seconds_left = window.reset_in.min(seconds);
        current.push(format!("\"{name}\";r={};t={seconds_left}", window.remaining));
    }
    if policy.is_empty() {
        return;
    }
    for (name, items) in [("ratelimit-policy", policy), ("ratelimit", current)] {
        if let Ok(value) = HeaderValue::try_from(items.join(", ")) {
            headers.insert(name, value);
        }
    }
}
