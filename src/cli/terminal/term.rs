//! What is known about the terminal: which streams are terminals, how wide it is, and which colours and symbols it
//! supports.
//!
//! Decided once at the start, per stream, from flags and environment alone, so that tests can decide otherwise. A
//! stream that is not a terminal never gets an escape sequence unless colour is forced, and neither does a terminal
//! with `TERM=dumb`. `NO_COLOR` is about colour only: bold and animation stay.

use std::borrow::Cow;
use std::env::consts::OS;
use std::io::IsTerminal;
#[cfg(unix)]
use std::os::fd::AsFd;

use clap::ValueEnum;
use comfy_table::LineStyle;

use crate::config::ColorMode;

/// The most columns used for text, however wide the terminal is.
const MAX_TEXT_WIDTH: usize = 100;

/// The fewest columns that text is laid out for; narrower terminals wrap by themselves.
const MIN_TEXT_WIDTH: usize = 20;

/// Which escape sequences a stream may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// None.
    Plain,
    /// Bold, but no colour.
    Bold,
    /// Colour and bold.
    Full,
}

/// The styles of output. Cyan, red and yellow can be told apart with all common kinds of colour blindness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// TRUE: cyan.
    True,
    /// FALSE and errors: bold red.
    False,
    /// NO CONSENSUS and warnings: yellow.
    Open,
    /// Headings: bold.
    Strong,
}

impl Paint {
    /// `text` in this style, as far as the stream supports it.
    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        let code = match (self, style) {
            (Self::Plain, _) | (Self::Bold, Style::True | Style::Open) => return text.to_owned(),
            (Self::Bold, Style::False) | (_, Style::Strong) => "1",
            (Self::Full, Style::True) => "36",
            (Self::Full, Style::False) => "1;31",
            (Self::Full, Style::Open) => "33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// One output stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Whether a person reads it live.
    pub(crate) is_terminal: bool,
    /// Which escape sequences it may get.
    pub(crate) paint: Paint,
}

/// Everything that is known about the terminal.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// Standard output.
    pub(crate) out: Stream,
    /// Whether standard output goes to another program, which may write to this same terminal.
    pub(crate) out_is_pipe: bool,
    /// Standard error.
    pub(crate) err: Stream,
    /// Whether standard input is a terminal, so that a person can be asked.
    pub(crate) input_is_tty: bool,
    /// Whether the cursor may be moved: not on `TERM=dumb`.
    pub(crate) can_animate: bool,
    /// Columns for text, at most 100.
    pub(crate) width: usize,
    /// All its columns, for tables that need more than the width of text.
    pub(crate) full_width: usize,
    /// Rows, for what must fit on one screen.
    pub(crate) height: usize,
    /// The width that `COLUMNS` fixes; otherwise it is that of the terminal, which may change.
    pub(crate) fixed_width: Option<usize>,
    /// The symbols that the locale can show.
    pub(crate) symbols: &'static Symbols,
}

/// Looks up an environment variable; empty ones count as absent.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Terminal {
    /// Examines this process's streams. `mode` is `--color`, or the configured value.
    pub(crate) fn detect(mode: Option<ColorMode>, env: Lookup<'_>) -> Self {
        let out_is_terminal = std::io::stdout().is_terminal();
        let err_is_terminal = std::io::stderr().is_terminal();
        let size = terminal_size::terminal_size();
        let columns = size.map(|(width, _)| usize::from(width.0));
        let full_width = full_width(columns, env);
        Self {
            out: stream(out_is_terminal, mode, env),
            out_is_pipe: is_pipe(&std::io::stdout()),
            err: stream(err_is_terminal, mode, env),
            input_is_tty: std::io::stdin().is_terminal(),
            can_animate: !is_dumb(env),
            width: text_width(full_width),
            full_width,
            height: size.map_or(24, |(_, height)| usize::from(height.0)),
            fixed_width: fixed_width(env),
            symbols: symbols(env),
        }
    }
}

impl Terminal {
    /// The same terminal in its present size.
    pub(crate) fn now(&self) -> Self {
        let size = terminal_size::terminal_size().filter(|_| self.fixed_width.is_none());
        let Some((width, height)) = size else { return self.clone() };
        let full_width = usize::from(width.0).max(MIN_TEXT_WIDTH);
        Self { width: text_width(full_width), full_width, height: usize::from(height.0), ..self.clone() }
    }
}

/// Whether a stream is a pipe, or a socket, which some shells use for one.
#[cfg(unix)]
fn is_pipe(stream: &impl AsFd) -> bool {
    kind_of(stream).is_some_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Whether standard input is a pipe or a file. `/dev/null` is neither.
#[cfg(unix)]
pub(crate) fn input_is_data() -> bool {
    let stdin = std::io::stdin();
    is_pipe(&stdin) || kind_of(&stdin).is_some_and(rustix::fs::FileType::is_file)
}

#[cfg(unix)]
fn kind_of(stream: &impl AsFd) -> Option<rustix::fs::FileType> {
    rustix::fs::fstat(stream).ok().map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode))
}

/// Unknown on systems other than Unix.
#[cfg(not(unix))]
fn is_pipe<T>(_: &T) -> bool {
    false
}

/// Unknown on systems other than Unix, where a text is asked for by `-`.
#[cfg(not(unix))]
pub(crate) fn input_is_data() -> bool {
    false
}

fn stream(is_terminal: bool, mode: Option<ColorMode>, env: Lookup<'_>) -> Stream {
    Stream { is_terminal, paint: paint(is_terminal, mode, env) }
}

/// Precedence: the flag, then `MK_COLOR`, then the conventions of no-color.org and bixense.com/clicolors.
fn paint(is_terminal: bool, flag: Option<ColorMode>, env: Lookup<'_>) -> Paint {
    let mode = flag.or_else(|| env("MK_COLOR").and_then(|name| ColorMode::from_str(&name, false).ok()));
    match mode.unwrap_or_default() {
        ColorMode::Always => return Paint::Full,
        ColorMode::Never if is_terminal && !is_dumb(env) => return Paint::Bold,
        ColorMode::Never => return Paint::Plain,
        ColorMode::Auto => {}
    }
    let no_color = env("NO_COLOR").is_some();
    if !no_color && env("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return Paint::Full;
    }
    if !is_terminal || is_dumb(env) {
        return Paint::Plain;
    }
    if no_color { Paint::Bold } else { Paint::Full }
}

fn is_dumb(env: Lookup<'_>) -> bool {
    env("TERM").is_some_and(|term| term == "dumb")
}

fn full_width(columns: Option<usize>, env: Lookup<'_>) -> usize {
    fixed_width(env).or(columns).unwrap_or(80).max(MIN_TEXT_WIDTH)
}

fn fixed_width(env: Lookup<'_>) -> Option<usize> {
    env("COLUMNS").and_then(|value| value.parse().ok()).filter(|&columns: &usize| columns > 0)
}

fn text_width(full_width: usize) -> usize {
    full_width.min(MAX_TEXT_WIDTH)
}

/// The symbols of output. There is always a word beside them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Symbols {
    /// TRUE.
    pub(crate) yes: &'static str,
    /// FALSE.
    pub(crate) no: &'static str,
    /// NO CONSENSUS.
    pub(crate) open: &'static str,
    /// Not verified.
    pub(crate) skipped: &'static str,
    /// Not started.
    pub(crate) waiting: &'static str,
    /// Between the parts of a summary.
    pub(crate) between: &'static str,
    /// Where text was cut.
    pub(crate) cut: &'static str,
    /// Animation frames while something runs.
    pub(crate) spinner: &'static [&'static str],
    /// Before an amount that is only a part.
    pub(crate) at_least: &'static str,
    /// A cell of a bar, from nearly empty to full.
    pub(crate) bar: &'static [&'static str],
    /// The lines of tables.
    pub(crate) table: comfy_table::TableStyle,
}

/// For UTF-8 locales.
pub(crate) static UNICODE: Symbols = Symbols {
    yes: "✓",
    no: "✗",
    open: "~",
    skipped: "!",
    waiting: "·",
    between: " · ",
    cut: "…",
    spinner: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
    at_least: "≥",
    bar: &["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    table: comfy_table::presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()),
};

/// For all others, and for `MK_ASCII=1`.
pub(crate) static ASCII: Symbols = Symbols {
    yes: "+",
    no: "x",
    open: "~",
    skipped: "!",
    waiting: ".",
    between: " | ",
    cut: "...",
    spinner: &["-", "\\", "|", "/"],
    at_least: ">=",
    bar: &["#"],
    table: comfy_table::presets::ASCII_HORIZONTAL_ONLY.row_separator(LineStyle::none()),
};

impl Symbols {
    /// A text for people with these symbols in place of the UTF-8 ones that sentences and names are written with.
    pub(crate) fn adapt<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        let pairs = [(UNICODE.cut, self.cut), (UNICODE.at_least, self.at_least)];
        pairs.into_iter().fold(text, |text, (unicode, own)| {
            if unicode != own && text.contains(unicode) { text.replace(unicode, own).into() } else { text }
        })
    }
}

fn symbols(env: Lookup<'_>) -> &'static Symbols {
    let ascii = match env("MK_ASCII") {
        Some(value) => value != "0",
        None => !locale_is_utf8(env),
    };
    if ascii { &ASCII } else { &UNICODE }
}

/// POSIX order of locale variables; if none is set, it is the C locale. Windows terminals accept UTF-8 from us whatever
/// the locale says.
fn locale_is_utf8(env: Lookup<'_>) -> bool {
    if OS == "windows" {
        return true;
    }
    let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG"));
    locale.is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

#[cfg(test)]
impl Terminal {
    /// A terminal for tests: `width` columns, nothing forced.
    pub(crate) fn test(width: usize, paint: Paint) -> Self {
        let stream = Stream { is_terminal: true, paint };
        Self {
            out: stream,
            out_is_pipe: false,
            err: stream,
            input_is_tty: false,
            can_animate: true,
            width,
            full_width: width,
            height: 24,
            fixed_width: Some(width),
            symbols: &UNICODE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn pipes_get_no_escape_byte_unless_forced() {
        assert_eq!(paint(false, None, &env(&[])), Paint::Plain);
        assert_eq!(paint(false, Some(ColorMode::Never), &env(&[])), Paint::Plain);
        assert_eq!(paint(false, Some(ColorMode::Always), &env(&[("NO_COLOR", "1")])), Paint::Full);
        assert_eq!(paint(false, None, &env(&[("CLICOLOR_FORCE", "1")])), Paint::Full);
        assert_eq!(paint(false, None, &env(&[("CLICOLOR_FORCE", "0")])), Paint::Plain);
    }

    #[test]
    fn no_color_keeps_bold_and_dumb_keeps_nothing() {
        assert_eq!(paint(true, None, &env(&[])), Paint::Full);
        assert_eq!(paint(true, None, &env(&[("NO_COLOR", "1")])), Paint::Bold);
        assert_eq!(paint(true, None, &env(&[("TERM", "dumb")])), Paint::Plain);
        assert_eq!(paint(true, Some(ColorMode::Never), &env(&[])), Paint::Bold);
    }

    #[test]
    fn a_flag_beats_the_environment() {
        assert_eq!(paint(true, Some(ColorMode::Auto), &env(&[("MK_COLOR", "always")])), Paint::Full);
        assert_eq!(paint(false, Some(ColorMode::Auto), &env(&[("MK_COLOR", "always")])), Paint::Plain);
        assert_eq!(paint(false, None, &env(&[("MK_COLOR", "always")])), Paint::Full);
    }

    #[test]
    fn paint_applies_what_the_stream_supports() {
        assert_eq!(Paint::Full.apply(Style::True, "x"), "\u{1b}[36mx\u{1b}[0m");
        assert_eq!(Paint::Full.apply(Style::False, "x"), "\u{1b}[1;31mx\u{1b}[0m");
        assert_eq!(Paint::Bold.apply(Style::False, "x"), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(Paint::Bold.apply(Style::True, "x"), "x");
        assert_eq!(Paint::Plain.apply(Style::Strong, "x"), "x");
    }

    #[test]
    fn width_comes_from_columns_then_the_terminal_then_80() {
        assert_eq!(full_width(Some(120), &env(&[])), 120);
        assert_eq!(full_width(Some(120), &env(&[("COLUMNS", "44")])), 44);
        assert_eq!(full_width(Some(60), &env(&[("COLUMNS", "wide")])), 60);
        assert_eq!(full_width(None, &env(&[])), 80);
        assert_eq!(full_width(Some(3), &env(&[])), MIN_TEXT_WIDTH);
        assert_eq!([44, 100, 120].map(text_width), [44, 100, 100]);
    }

    #[test]
    fn texts_are_adapted_to_the_available_symbols() {
        let text = "key …wXyZ: ≥$2";
        assert_eq!(ASCII.adapt(text.into()), "key ...wXyZ: >=$2");
        assert!(matches!(UNICODE.adapt(text.into()), Cow::Borrowed(kept) if kept == text));
    }

    #[test]
    fn symbols_follow_the_locale() {
        assert_eq!(symbols(&env(&[("LANG", "de_CH.UTF-8")])), &UNICODE);
        assert_eq!(symbols(&env(&[("LC_ALL", "C"), ("LANG", "de_CH.UTF-8")])), &ASCII);
        assert_eq!(symbols(&env(&[("MK_ASCII", "1"), ("LANG", "C.utf8")])), &ASCII);
        assert_eq!(symbols(&env(&[("MK_ASCII", "0")])), &UNICODE);
    }
}
