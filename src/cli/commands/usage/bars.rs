//! Bars beside the rows of a table, as wide as the terminal has space for.

use crate::cli::terminal::wrap::cells;

/// The widest bar; longer ones would be too far from what they belong to.
const MAX_WIDTH: usize = 24;

/// The width of bars in this space; `None` if their heading would not fit.
pub(super) fn width(room: usize, heading: &str) -> Option<usize> {
    (room >= cells(heading)).then_some(room.min(MAX_WIDTH))
}

/// A bar for `value`, at most `width` cells wide, where the longest bar stands for `max`. `cell` lists the symbols for
/// a partly filled cell, up to the full one. A value above zero is never drawn as nothing.
pub(super) fn bar(value: f64, max: f64, width: usize, cell: &[&str]) -> String {
    let (Some(whole), true) = (cell.last(), value > 0.0 && max > 0.0) else { return String::new() };
    let steps = width * cell.len();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of some cells"
    )]
    let filled = ((value / max).min(1.0) * steps as f64).round() as usize;
    let filled = filled.max(1);
    let rest = filled % cell.len();
    let part = if rest == 0 { "" } else { cell[rest - 1] };
    format!("{}{part}", whole.repeat(filled / cell.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::{ASCII, UNICODE};

    #[test]
    fn the_longest_fills_its_width_and_the_shortest_is_visible() {
        let unicode = |value| bar(value, 8.0, 4, UNICODE.bar);
        assert_eq!([8.0, 4.0, 1.0, 0.000_1, 0.0].map(unicode), ["████", "██", "▌", "▏", ""]);
        assert_eq!(unicode(3.25), "█▋");
        let ascii = |value| bar(value, 8.0, 4, ASCII.bar);
        assert_eq!([8.0, 4.0, 1.0, 0.000_1, 0.0].map(ascii), ["####", "##", "#", "#", ""]);
        assert_eq!(bar(1.0, 0.0, 4, UNICODE.bar), "");
    }

    #[test]
    fn bars_take_the_available_width() {
        assert_eq!(
            [0, 6, 7, 20, 90].map(|room| width(room, "by cost")),
            [None, None, Some(7), Some(20), Some(24)]
        );
    }
}
