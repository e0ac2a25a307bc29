//! Decisions and their presentation: the numbers of the response headers.

/// The limit that headers state if there is none.
const UNLIMITED: u32 = 2_147_483_647;
/// How far ahead the reset is if there is no limit.
const UNLIMITED_RESET_SECONDS: u32 = 60;

/// One window as headers describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowState {
    /// Requests per window.
    pub limit: u32,
    /// Requests left.
    pub remaining: u32,
    /// The Unix second in which a request becomes available again: for the minute, 60 s after the oldest admitted one;
    /// for the day, the next midnight. Rounded up: at that second it is available.
    pub reset: i64,
    /// Seconds until then, rounded up: waiting this long never ends before the reset.
    pub reset_in: u64,
}

/// The state of both windows; `None` for one without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// The sliding minute.
    pub minute: Option<WindowState>,
    /// The UTC day.
    pub day: Option<WindowState>,
    /// The current Unix second, for the headers of unlimited subjects.
    pub now: i64,
}

impl LimitState {
    /// The window with the fewest requests remaining; the day if both have the same number. Without any limit, a window
    /// that is never used up and resets in a minute.
    pub fn headline(&self) -> WindowState {
        match (self.minute, self.day) {
            (Some(minute), Some(day)) if minute.remaining < day.remaining => minute,
            (_, Some(day)) => day,
            (Some(minute), None) => minute,
            (None, None) => self.unlimited(),
        }
    }

    /// This window; one that is never used up if it has no limit.
    pub fn window(&self, window: Window) -> WindowState {
        let state = match window {
            Window::Minute => self.minute,
            Window::Day => self.day,
        };
        state.unwrap_or_else(|| self.unlimited())
    }

    /// The window that is used up; if both are, the one that resets last. `None` if a request would be admitted.
    pub fn used_up(&self) -> Option<Window> {
        let used_up = |state: Option<WindowState>| state.filter(|state| state.remaining == 0);
        match (used_up(self.minute), used_up(self.day)) {
            (Some(minute), Some(day)) if minute.reset > day.reset => Some(Window::Minute),
            (_, Some(_)) => Some(Window::Day),
            (Some(_), None) => Some(Window::Minute),
            (None, None) => None,
        }
    }

    fn unlimited(&self) -> WindowState {
        WindowState {
            limit: UNLIMITED,
            remaining: UNLIMITED,
            reset: self.now.saturating_add(i64::from(UNLIMITED_RESET_SECONDS)),
            reset_in: u64::from(UNLIMITED_RESET_SECONDS),
        }
    }
}

/// A window's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// 60 seconds, sliding.
    Minute,
    /// A UTC day.
    Day,
}

/// Whether a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is admitted and has been counted.
    Admitted(LimitState),
    /// It is refused and has not been counted. The window is the exceeded one that resets last.
    Refused(LimitState, Window),
}

impl Decision {
    /// Both windows, whatever was decided.
    pub fn state(&self) -> &LimitState {
        match self {
            Self::Admitted(state) | Self::Refused(state, _) => state,
        }
    }

    /// The window that the `X-RateLimit-*` headers describe: [`LimitState::headline`] for an admitted request, the
    /// window that refused it for a refused one.
    pub fn headline(&self) -> WindowState {
        match self {
            Self::Admitted(state) => state.headline(),
            Self::Refused(state, window) => state.window(*window),
        }
    }

    /// Seconds to wait after a refusal, never ending before the reset; `None` for an admitted request.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Admitted(_) => None,
            Self::Refused(state, window) => Some(state.window(*window).reset_in),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(remaining: u32, reset_in: u64) -> WindowState {
        WindowState { limit: 60, remaining, reset: 1000 + reset_in.cast_signed(), reset_in }
    }

    fn state(minute: WindowState, day: WindowState) -> LimitState {
        LimitState { minute: Some(minute), day: Some(day), now: 1000 }
    }

    #[test]
    fn the_headline_is_the_window_with_the_fewest_left() {
        let day = left(4, 9000);
        assert_eq!(state(left(5, 60), day).headline(), day);
        assert_eq!(state(left(3, 60), day).headline(), left(3, 60));
        assert_eq!(state(left(4, 60), day).headline(), day, "a tie goes to the longer");
        assert_eq!(LimitState { day: None, ..state(left(5, 60), day) }.headline(), left(5, 60));
    }

    #[test]
    fn without_limits_there_is_always_enough() {
        let headline = LimitState { minute: None, day: None, now: 1000 }.headline();
        assert_eq!((headline.limit, headline.remaining), (2_147_483_647, 2_147_483_647));
        assert_eq!((headline.reset, headline.reset_in), (1060, 60));
    }

    #[test]
    fn of_two_used_up_windows_the_one_that_resets_last_refuses() {
        assert_eq!(state(left(0, 50), left(0, 10)).used_up(), Some(Window::Minute));
        assert_eq!(state(left(0, 50), left(0, 500)).used_up(), Some(Window::Day));
        assert_eq!(state(left(0, 50), left(1, 500)).used_up(), Some(Window::Minute));
        assert_eq!(state(left(1, 50), left(0, 10)).used_up(), Some(Window::Day));
        assert_eq!(state(left(1, 50), left(1, 10)).used_up(), None);
    }

    #[test]
    fn a_refusal_describes_the_window_that_refused() {
        let refused = Decision::Refused(state(left(0, 50), left(0, 10)), Window::Minute);
        assert_eq!(refused.headline(), left(0, 50));
        assert_eq!(refused.retry_after(), Some(50));
        assert_eq!(Decision::Admitted(state(left(1, 50), left(1, 10))).retry_after(), None);
    }
}
