//! The headers of limits, which every answer carries.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::limits::{LimitState, Window, WindowState};
use crate::server::header_names as names;

/// The headers, in the order in which their values are written.
static NAMES: [&HeaderName; 5] =
    [&names::RATE_LIMIT, &names::RATE_REMAINING, &names::RATE_RESET, &names::RATE_POLICY, &names::RATE_STATE];
/// More than their values are long.
const MOST_BYTES: usize = 192;

/// The limits that an answer's headers describe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Both windows.
    pub(crate) state: LimitState,
    /// The window that refused the request, if one did: `X-RateLimit-*` tell of it then; the IETF fields of all windows.
    pub(crate) violated: Option<Window>,
}

impl From<LimitState> for Rate {
    fn from(state: LimitState) -> Self {
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
    // Every answer has these: they are written into one text, and each value is a part of it.
    let mut text = String::with_capacity(MOST_BYTES);
    let mut ends = [0; 5];
    push_number(&mut text, headline.limit);
    ends[0] = text.len();
    push_number(&mut text, headline.remaining);
    ends[1] = text.len();
    push_number(&mut text, headline.reset);
    ends[2] = text.len();
    let windows = [("\"minute\"", 60, state.minute), ("\"day\"", 86_400, state.day)];
    push_list(&mut text, &windows, |text, seconds, window| {
        push_all(text, ";q=", window.limit, ";w=", seconds);
    });
    ends[3] = text.len();
    push_list(&mut text, &windows, |text, seconds, window| {
        // `reset_in` is rounded up to whole seconds of the clock, and may thereby be one more than the window.
        push_all(text, ";r=", window.remaining, ";t=", window.reset_in.min(seconds));
    });
    ends[4] = text.len();

    let text = Bytes::from(text);
    let mut begin = 0;
    for (name, end) in NAMES.into_iter().zip(ends) {
        if begin < end
            && let Ok(value) = HeaderValue::from_maybe_shared(text.slice(begin..end))
        {
            headers.insert(name, value);
        }
        begin = end;
    }
}

/// The windows that there are, each with what `describe` says of it.
fn push_list(
    text: &mut String,
    windows: &[(&str, u64, Option<WindowState>)],
    describe: impl Fn(&mut String, u64, WindowState),
) {
    let begin = text.len();
    for (name, seconds, window) in windows {
        let Some(window) = window else { continue };
        if text.len() > begin {
            text.push_str(", ");
        }
        text.push_str(name);
        describe(text, *seconds, *window);
    }
}

fn push_all(text: &mut String, one: &str, first: u32, two: &str, second: u64) {
    text.push_str(one);
    push_number(text, first);
    text.push_str(two);
    push_number(text, second);
}

fn push_number(text: &mut String, number: impl itoa::Integer) {
    text.push_str(itoa::Buffer::new().format(number));
}
