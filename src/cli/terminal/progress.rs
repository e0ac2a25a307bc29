//! How progress is shown, and the only place that creates live bars.
//!
//! The draw target is our own: indicatif hides its bars when `NO_COLOR` is set, which is about colour only, and queries
//! the terminal for what is already decided here.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::printer::Printer;
use super::term::{Lookup, Terminal};
use super::wrap::{cut_visible, visible_cells};
use crate::cli::process::exit::Failure;
use crate::config::ProgressMode;
use crate::lock::Lock;

/// The interval of ticks, which advance the spinner.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Redraws per second.
const DRAWS_PER_SECOND: u8 = 12;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Live bars, erased at the end.
    Bars,
    /// One line per step, for logs and screen readers.
    Lines,
    /// Not at all.
    None,
}

impl Mode {
    /// The mode that was asked for, as far as the terminal supports it. `Auto` means bars on a terminal, lines in the
    /// logs of CI systems (which set `CI`), and nothing elsewhere.
    pub(crate) fn choose(requested: ProgressMode, printer: &Printer, env: Lookup<'_>) -> Self {
        let terminal = &printer.terminal;
        if printer.quiet {
            return Self::None;
        }
        let can_draw = terminal.err.is_terminal && terminal.can_animate;
        match requested {
            ProgressMode::Bars | ProgressMode::Auto if can_draw => Self::Bars,
            ProgressMode::Lines => Self::Lines,
            ProgressMode::Auto if terminal.err.is_terminal || env("CI").is_some() => Self::Lines,
            ProgressMode::Auto | ProgressMode::Bars | ProgressMode::None => Self::None,
        }
    }
}

/// Progress on standard error: live rows with `Bars`, which are erased when this is dropped; else lines or nothing.
pub(crate) struct Live<'a> {
    pub(crate) printer: &'a Printer,
    mode: Mode,
    begun: Instant,
    rows: RefCell<Option<Rows>>,
}

impl<'a> Live<'a> {
    pub(crate) fn begin(printer: &'a Printer, mode: Mode) -> Self {
        let rows = (mode == Mode::Bars).then(|| Rows::begin(&printer.terminal));
        Self { printer, mode, begun: Instant::now(), rows: RefCell::new(rows) }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The spinner at this moment.
    pub(crate) fn spinner(&self) -> &'static str {
        let frames = self.printer.terminal.symbols.spinner;
        let ticks = usize::try_from(self.elapsed().as_millis() / TICK.as_millis()).unwrap_or_default();
        frames[ticks % frames.len()]
    }

    /// Whether rows are drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        self.rows.borrow().is_some()
    }

    /// Prints a step where progress is shown as lines.
    pub(crate) fn line(&self, text: &str) {
        if self.mode == Mode::Lines {
            self.printer.notice(text);
        }
    }

    /// Draws these rows in place of those before.
    pub(crate) fn draw(&self, texts: Vec<String>) {
        if let Some(rows) = &mut *self.rows.borrow_mut() {
            rows.show(texts);
        }
    }

    /// Runs `act`, which uses the terminal, with the rows hidden.
    pub(crate) fn suspended<T>(&self, act: impl FnOnce() -> T) -> T {
        let all = self.rows.borrow().as_ref().map(|rows| rows.all.clone());
        match all {
            Some(all) => all.suspend(act),
            None => act(),
        }
    }

    /// Prints a message above the rows.
    pub(crate) fn notice(&self, text: &str) {
        self.suspended(|| self.printer.notice(text));
    }

    /// Prints results above the rows.
    pub(crate) fn print(&self, lines: &[String]) -> Result<(), Failure> {
        self.make_way();
        self.suspended(|| lines.iter().try_for_each(|line| self.printer.line(line)))
    }

    /// Makes way for results. If they go to a pipe, nothing is drawn any more: the reading program may print to this
    /// same terminal, and drawings would overwrite it.
    pub(crate) fn make_way(&self) {
        if self.printer.terminal.out_is_pipe {
            self.end();
        }
    }

    /// Erases the rows for good.
    pub(crate) fn end(&self) {
        if let Some(Rows { all, .. }) = self.rows.take() {
            // Fails only if standard error is gone, and then nobody would see this.
            drop(all.clear());
            // The rows redraw themselves when they are dropped, which must not be seen.
            all.set_draw_target(ProgressDrawTarget::hidden());
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The rows on standard error.
struct Rows {
    all: MultiProgress,
    shown: Vec<ProgressBar>,
}

impl Rows {
    fn begin(terminal: &Terminal) -> Self {
        let target =
            Box::new(Stderr { width: terminal.width, height: terminal.height, state: Mutex::default() });
        let target = ProgressDrawTarget::term_like_with_hz(target, DRAWS_PER_SECOND);
        Self { all: MultiProgress::with_draw_target(target), shown: Vec::new() }
    }

    /// Shows these texts, of which those that did not change are not redrawn.
    fn show(&mut self, texts: Vec<String>) {
        for row in self.shown.drain(texts.len().min(self.shown.len())..) {
            self.all.remove(&row);
        }
        while self.shown.len() < texts.len() {
            let row = self.all.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                row.set_style(style);
            }
            self.shown.push(row);
        }
        for (row, text) in self.shown.iter().zip(texts) {
            if row.message() != text {
                row.set_message(text);
            }
        }
    }
}

/// What indicatif takes for the terminal's width: more than any line has, as lines are cut here to the width at the
/// time of writing, and each takes one row.
const UNBROKEN: u16 = 1000;

/// Standard error as a draw target of indicatif. The fields are the terminal's size where that is unknown. A drawing is
/// written in one piece when it is complete: keys typed in the middle of one would shift its last lines.
#[derive(Debug)]
struct Stderr {
    width: usize,
    height: usize,
    state: Mutex<Drawing>,
}

/// The drawing under way, and the one on the screen.
#[derive(Debug, Default)]
struct Drawing {
    /// What precedes the lines: movements of the cursor.
    head: String,
    lines: Vec<String>,
    /// Whether what comes next fills up the last line.
    is_filler_next: bool,
    /// The lines on the screen, in cells.
    shown: Vec<usize>,
    /// The columns of the terminal when that was written.
    columns: usize,
}

impl Drawing {
    /// Takes a line, or what fills it up. That is left out, and lines end instead: a terminal that gets narrower would
    /// break each of them, and one that gets wider would join them.
    fn take(&mut self, text: &str) {
        if !self.is_filler_next {
            self.lines.push(text.to_owned());
        }
        self.is_filler_next = !self.is_filler_next;
    }

    /// The complete drawing for a terminal of `columns`, after which the next one begins. The carriage return at its
    /// end keeps what is typed then, such as the `^C` that a terminal echoes, from starting a line of its own that
    /// nobody would erase.
    fn finish(&mut self, columns: usize, breaks_lines: bool) -> String {
        let erased = if columns < self.columns { self.erase(columns, breaks_lines) } else { String::new() };
        // Other rows than the one that changed may still be as wide as the terminal was.
        let room = columns.saturating_sub(1);
        let lines: Vec<String> = self.lines.drain(..).map(|line| cut_visible(&line, room)).collect();
        self.is_filler_next = false;
        self.columns = columns;
        self.shown = lines.iter().map(|line| visible_cells(line)).collect();
        format!("{erased}{}{}\r", std::mem::take(&mut self.head), lines.join("\r\n"))
    }

    /// Erases the lines on the screen of a terminal that got narrower and may have broken some of them; whoever draws
    /// next finds the cursor where it would be otherwise.
    fn erase(&self, columns: usize, breaks_lines: bool) -> String {
        let Some((_, above)) = self.shown.split_last() else { return String::new() };
        let broken: usize = above.iter().map(|cells| cells.div_ceil(columns.max(1)).max(1) - 1).sum();
        let up = above.len() + if breaks_lines { broken } else { 0 };
        let moved =
            |rows: usize, way: char| if rows > 0 { format!("\u{1b}[{rows}{way}") } else { String::new() };
        format!("{}\u{1b}[J{}", moved(up, 'A'), moved(above.len(), 'B'))
    }
}

/// Whether the terminal breaks lines for which it gets too narrow, as all common ones do but xterm and the console of
/// Linux, which cut them. No terminal tells.
fn breaks_lines() -> bool {
    std::env::var_os("XTERM_VERSION").is_none() && std::env::var_os("TERM").is_none_or(|term| term != "linux")
}

impl Stderr {
    /// The width of the terminal.
    fn columns(&self) -> usize {
        terminal_size::terminal_size().map_or(self.width, |(width, _)| usize::from(width.0))
    }

    fn write(&self, text: &str) {
        self.state.locked().head.push_str(text);
    }

    /// A cursor movement (ECMA-48); nothing for a distance of zero, which terminals treat as one.
    fn move_cursor(&self, distance: usize, direction: char) {
        if distance > 0 {
            self.write(&format!("\u{1b}[{distance}{direction}"));
        }
    }
}

impl TermLike for Stderr {
    fn width(&self) -> u16 {
        UNBROKEN
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
        self.state.locked().take(s);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write("\r\u{1b}[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let drawing = self.state.locked().finish(self.columns(), breaks_lines());
        let mut stderr = io::stderr().lock();
        stderr.write_all(drawing.as_bytes())?;
        stderr.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::term::Paint;

    fn choose(requested: ProgressMode, is_terminal: bool, can_animate: bool, ci: bool) -> Mode {
        let mut terminal = Terminal::test(80, Paint::Plain);
        terminal.err.is_terminal = is_terminal;
        terminal.can_animate = can_animate;
        let printer = Printer { terminal, quiet: false, verbose: false };
        Mode::choose(requested, &printer, &|name| (ci && name == "CI").then(|| "true".to_owned()))
    }

    #[test]
    fn a_drawing_is_not_written_before_it_is_complete() {
        let target = Stderr { width: 80, height: 24, state: Mutex::default() };
        target.clear_line().unwrap();
        target.move_cursor_up(2).unwrap();
        target.move_cursor_down(0).unwrap();
        target.write_str("one").unwrap();
        target.write_str("   ").unwrap();
        let seen = || {
            let state = target.state.locked();
            (state.head.clone(), state.lines.clone())
        };
        assert_eq!(seen(), ("\r\u{1b}[2K\u{1b}[2A".to_owned(), vec!["one".to_owned()]));
        target.flush().unwrap();
        assert_eq!(seen(), (String::new(), Vec::new()));
    }

    #[test]
    fn a_drawing_ends_no_line_with_spaces_and_erases_what_a_narrower_terminal_has_broken() {
        let mut drawing = Drawing::default();
        let mut draw = |columns: usize, breaks_lines: bool| {
            for line in ["header", "\u{1b}[36m✓\u{1b}[0m a claim of twenty-six cells", "last"] {
                drawing.take(line);
                drawing.take("    ");
            }
            drawing.finish(columns, breaks_lines)
        };
        let claim = "\u{1b}[36m✓\u{1b}[0m a claim of twenty-six cells";
        let text = format!("header\r\n{claim}\r\nlast\r");
        assert_eq!(draw(80, true), text);
        assert_eq!(draw(60, true), format!("\u{1b}[2A\u{1b}[J\u{1b}[2B{text}"));
        let cut = "header\r\n\u{1b}[36m✓\u{1b}[0m a claim of twenty\r\nlast\r";
        assert_eq!(
            draw(20, true),
            format!("\u{1b}[3A\u{1b}[J\u{1b}[2B{cut}"),
            "of which one line was broken"
        );
        assert!(draw(10, false).starts_with("\u{1b}[2A\u{1b}[J\u{1b}[2Bheader\r\n"));
        assert_eq!(draw(80, true), text, "a wider terminal breaks nothing");
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
