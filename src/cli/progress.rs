//! The one factory of live bars, and how progress is shown at all.
//!
//! The draw target is our own: indicatif hides its bars when `NO_COLOR` is set, which is about colour only, and
//! asks the terminal in ways that we have decided already.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::printer::Printer;
use super::term::{Lookup, Terminal};
use crate::config::ProgressMode;

/// How often bars are drawn, in times a second.
const DRAWS_PER_SECOND: u8 = 12;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Live, erased at the end.
    Bars,
    /// A line a step: for logs and screen readers.
    Lines,
    /// Not at all.
    None,
}

impl Mode {
    /// What is asked for, as far as the terminal can. `Auto` is bars on a terminal, lines in the logs of CI systems
    /// (which set `CI`), nothing elsewhere.
    pub(crate) fn choose(wish: ProgressMode, printer: &Printer, env: Lookup<'_>) -> Self {
        let terminal = &printer.terminal;
        if printer.quiet {
            return Self::None;
        }
        let can_draw = terminal.err.is_terminal && terminal.can_animate;
        match wish {
            ProgressMode::Bars | ProgressMode::Auto if can_draw => Self::Bars,
            ProgressMode::Lines => Self::Lines,
            ProgressMode::Auto if terminal.err.is_terminal || env("CI").is_some() => Self::Lines,
            ProgressMode::Auto | ProgressMode::Bars | ProgressMode::None => Self::None,
        }
    }
}

/// A set of rows on standard error, with its first one.
pub(crate) fn bars(terminal: &Terminal) -> (MultiProgress, ProgressBar) {
    let target =
        Box::new(Stderr { width: terminal.width, height: terminal.height, drawing: Mutex::default() });
    let bars =
        MultiProgress::with_draw_target(ProgressDrawTarget::term_like_with_hz(target, DRAWS_PER_SECOND));
    let first = add_row(&bars);
    (bars, first)
}

/// Erases a set for good.
pub(crate) fn erase(bars: &MultiProgress) {
    // Fails only where standard error is gone, and with it whoever would see this.
    drop(bars.clear());
    // The rows draw themselves once more when they are dropped; nobody is to see that.
    bars.set_draw_target(ProgressDrawTarget::hidden());
}

/// Sets a row's text; one that stays the same is not drawn again.
pub(crate) fn set(row: &ProgressBar, text: String) {
    if row.message() != text {
        row.set_message(text);
    }
}

/// One more row at the end of a set. Its text is what is set as its message.
pub(crate) fn add_row(bars: &MultiProgress) -> ProgressBar {
    let row = bars.add(ProgressBar::new_spinner());
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        row.set_style(style);
    }
    row
}

/// Standard error as indicatif draws on it. It fills lines up to the last column instead of ending them, so that it
/// needs the terminal's true size at each drawing; the fields stand in where that is unknown. A drawing goes out in one
/// piece, at its end: what is typed in the midst of one would move its last lines.
#[derive(Debug)]
struct Stderr {
    width: usize,
    height: usize,
    drawing: Mutex<String>,
}

impl Stderr {
    /// Also after a panic elsewhere: a drawing that broke off is overwritten by the next.
    fn drawing(&self) -> MutexGuard<'_, String> {
        self.drawing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, text: &str) {
        self.drawing().push_str(text);
    }

    /// A cursor movement (ECMA-48); none for a distance of zero, which terminals take for one.
    fn move_cursor(&self, distance: usize, direction: char) {
        if distance > 0 {
            self.write(&format!("\u{1b}[{distance}{direction}"));
        }
    }
}

impl TermLike for Stderr {
    fn width(&self) -> u16 {
        let known = terminal_size::terminal_size().map(|(width, _)| width.0);
        known.unwrap_or_else(|| u16::try_from(self.width).unwrap_or(u16::MAX))
    }

    fn height(&self) -> u16 {
        let known = terminal_size::terminal_size().map(|(_, height)| height.0);
        known.unwrap_or_else(|| u16::try_from(self.height).unwrap_or(u16::MAX))
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'A');
        Ok(())
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'B');
        Ok(())
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'C');
        Ok(())
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'D');
        Ok(())
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.write(&format!("{s}\n"));
        Ok(())
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.write(s);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write("\r\u{1b}[2K");
        Ok(())
    }

    /// The end of a drawing, whose last line is full: what is typed then, such as the `^C` that a terminal shows, would
    /// begin a line of its own, which nobody erases.
    fn flush(&self) -> io::Result<()> {
        let mut drawing = std::mem::take(&mut *self.drawing());
        drawing.push('\r');
        let mut stderr = io::stderr().lock();
        stderr.write_all(drawing.as_bytes())?;
        stderr.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::term::Paint;

    fn choose(wish: ProgressMode, is_terminal: bool, can_animate: bool, ci: bool) -> Mode {
        let mut terminal = Terminal::test(80, Paint::Plain);
        terminal.err.is_terminal = is_terminal;
        terminal.can_animate = can_animate;
        let printer = Printer { terminal, quiet: false, verbose: false };
        Mode::choose(wish, &printer, &|name| (ci && name == "CI").then(|| "true".to_owned()))
    }

    #[test]
    fn nothing_of_a_drawing_is_out_before_its_end() {
        let target = Stderr { width: 80, height: 24, drawing: Mutex::default() };
        target.clear_line().unwrap();
        target.move_cursor_up(2).unwrap();
        target.move_cursor_down(0).unwrap();
        target.write_str("one").unwrap();
        target.write_line("two").unwrap();
        assert_eq!(*target.drawing(), "\r\u{1b}[2K\u{1b}[2Aonetwo\n");
        target.flush().unwrap();
        assert_eq!(*target.drawing(), "");
    }

    #[test]
    fn bars_only_where_they_can_be_drawn() {
        assert_eq!(choose(ProgressMode::Auto, true, true, false), Mode::Bars);
        assert_eq!(choose(ProgressMode::Auto, true, true, true), Mode::Bars);
        assert_eq!(choose(ProgressMode::Auto, true, false, false), Mode::Lines);
        assert_eq!(choose(ProgressMode::Auto, false, true, true), Mode::Lines);
        assert_eq!(choose(ProgressMode::Auto, false, true, false), Mode::None);
        assert_eq!(choose(ProgressMode::Bars, false, true, false), Mode::None);
        assert_eq!(choose(ProgressMode::Lines, false, true, false), Mode::Lines);
        assert_eq!(choose(ProgressMode::None, true, true, false), Mode::None);
    }

    #[test]
    fn quiet_means_none() {
        let printer = Printer { terminal: Terminal::test(80, Paint::Plain), quiet: true, verbose: false };
        assert_eq!(Mode::choose(ProgressMode::Lines, &printer, &|_| None), Mode::None);
    }
}
