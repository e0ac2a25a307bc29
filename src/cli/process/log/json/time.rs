//! The timestamp of a line, `2026-11-21T08:04:29.123456Z`; everything but the fraction is formatted once per second.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// The length of `2026-11-21T08:04:29`.
const SECOND_LENGTH: usize = 19;

thread_local! {
    /// The last second, and its formatted text.
    static LAST_SECOND: Cell<(u64, [u8; SECOND_LENGTH])> = const { Cell::new((u64::MAX, [0; SECOND_LENGTH])) };
}

/// Writes the current time. A clock before 1970 is written as the beginning of 1970.
pub(super) fn push_now(out: &mut String) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    push(out, now.as_secs(), now.subsec_micros());
}

fn push(out: &mut String, second: u64, micros: u32) {
    let (mut last, mut written) = LAST_SECOND.get();
    if last != second {
        (last, written) = (second, formatted_second(second));
        LAST_SECOND.set((last, written));
    }
    out.push_str(str::from_utf8(&written).unwrap_or_default());
    let mut fraction = *b".000000Z";
    let mut rest = micros;
    for digit in fraction[1..7].iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    out.push_str(str::from_utf8(&fraction).unwrap_or_default());
}

/// The formatted second. Times for which a calendar has no four-digit year, which no working clock shows, become zeros.
fn formatted_second(second: u64) -> [u8; SECOND_LENGTH] {
    let time = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
    let text = time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string());
    text.and_then(|text| text.as_bytes().try_into().ok()).unwrap_or(*b"0000-00-00T00:00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_formatted_to_the_microsecond() {
        let mut text = String::new();
        for (second, micros) in
            [(0, 0), (1_795_248_269, 123_456), (1_795_248_269, 7), (1_795_248_270, 999_999)]
        {
            push(&mut text, second, micros);
            text.push(' ');
        }
        push(&mut text, u64::MAX - 1, 0);
        assert_eq!(
            text,
            "1970-01-01T00:00:00.000000Z 2026-11-21T08:04:29.123456Z 2026-11-21T08:04:29.000007Z \
             2026-11-21T08:04:30.999999Z 0000-00-00T00:00:00.000000Z"
        );
    }
}
