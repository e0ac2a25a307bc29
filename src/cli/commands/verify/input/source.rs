//! Where statements come from: the command line, standard input, files, or the lines of a file.
//!
//! An argument that names an existing file is that file; what looks like a file's name, or like a word of a text
//! without quotes, is refused rather than verified. `mk verify TEXT` never touches standard input, so that it can stand
//! in a `while read` loop; where nothing is given, a pipe or a file there is read.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::Serialize;
use tokio::sync::mpsc;

use crate::cli::args::text::{MAX_BYTES, read_capped, stdin, unreadable, without_bom};
use crate::cli::commands::verify::args::InputArgs;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::{sanitize, term};

/// Identifies one of several statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Source {
    /// A file.
    File {
        /// As it was given.
        file: String,
    },
    /// A text among the arguments.
    Argument {
        /// Its place among them, from 1.
        argument: usize,
    },
    /// A line of the `--lines` file.
    Line {
        /// The line number, from 1.
        line: usize,
    },
}

impl Source {
    /// What sentences call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File { file } => file.clone(),
            Self::Argument { argument } => format!("argument {argument}"),
            Self::Line { line } => format!("line {line}"),
        }
    }

    /// The first column of plain output.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Line { line } => line.to_string(),
            _ => self.name(),
        }
    }
}

/// One of several statements, or why it cannot be one.
pub(crate) type Statement = (Source, Result<String, Failure>);

/// What to verify.
#[derive(Debug)]
pub(crate) enum Input {
    /// One statement; a file is named.
    One(Option<Source>, String),
    /// Several statements, already read.
    Several(Vec<Statement>),
    /// Each line of a file, or of standard input.
    Lines(Option<File>),
}

/// What an argument gives.
enum Given<'a> {
    Text(&'a str),
    File(&'a Path),
}

/// How many files are named when they are read.
const MAX_NAMED: usize = 3;

/// Fails at once if the arguments give nothing to verify, or what cannot be meant: before a key is looked up or
/// anything is read.
pub(crate) fn check_given(args: &InputArgs, command: &str, printer: &Printer) -> Result<(), Failure> {
    let given = given(args, command)?;
    if given.is_empty() && args.lines.is_none() && !term::input_is_data() {
        return Err(nothing_given(command));
    }
    let files: Vec<String> = given
        .iter()
        .take(args.inputs.len())
        .filter_map(|given| match given {
            Given::File(path) if !is_stdin(path) => Some(path.display().to_string()),
            _ => None,
        })
        .collect();
    if !files.is_empty() {
        let more = files.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {} more", counted(more, "file")) } else { String::new() };
        let named = files[..files.len().min(MAX_NAMED)].join(", ");
        printer.notice(&sanitize::line(&format!("reading {named}{more}")));
    }
    Ok(())
}

fn nothing_given(command: &str) -> Failure {
    Failure::usage(format!("there is nothing to {command}")).hint(format!(
        "give a text or a file: mk {command} \"The Eiffel Tower is in Paris.\"; or use --lines FILE, or pipe in a text"
    ))
}

/// What the arguments give, those without a flag first.
fn given<'a>(args: &'a InputArgs, command: &str) -> Result<Vec<Given<'a>>, Failure> {
    let is_one = args.inputs.len() + args.file.len() == 1;
    let inputs = args.inputs.iter().map(|input| argument(input, command, args.text, is_one));
    inputs.chain(args.file.iter().map(|path| Ok(Given::File(path)))).collect()
}

/// What an argument without a flag gives. In a name, no file's content is looked at.
fn argument<'a>(input: &'a OsStr, command: &str, is_text: bool, is_one: bool) -> Result<Given<'a>, Failure> {
    let path = Path::new(input);
    if is_stdin(path) {
        return Ok(Given::File(path));
    }
    let found = if is_text { None } else { fs::metadata(path).ok() };
    if found.as_ref().is_some_and(fs::Metadata::is_file) {
        return Ok(Given::File(path));
    }
    let shown = path.display();
    let Some(text) = input.to_str() else {
        return Err(Failure::usage(format!("`{shown}` is neither a file nor UTF-8 text")));
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the statement is empty"));
    }
    let is_word = text.is_ascii() && !text.contains(char::is_whitespace);
    let as_text = "add --text to take each argument as text";
    match found {
        Some(other) if other.is_dir() => Err(Failure::usage(format!("{shown} is a directory"))
            .hint(format!("name its files: mk {command} {}/*.md; {as_text}", text.trim_end_matches('/')))),
        Some(_) if !is_text => Err(Failure::usage(format!("{shown} is not a regular file"))
            .hint(format!("use -f to read it anyway; {as_text}"))),
        _ if is_text || !is_word && !ends_like_a_file(text) => Ok(Given::Text(text)),
        _ if !is_word || looks_like_a_file(text) => {
            Err(Failure::usage(format!("there is no file {shown}")).hint(as_text))
        }
        _ if !is_one => {
            Err(Failure::usage(format!("`{shown}` is a single word, and there is no file of this name"))
                .hint(format!("put the whole text in quotes: mk {command} \"…\"; {as_text}")))
        }
        _ => Ok(Given::Text(text)),
    }
}

/// Whether a word has a directory or an extension with a letter in it. Addresses have both, and are no files.
fn looks_like_a_file(word: &str) -> bool {
    let extension = Path::new(word).extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_extension = (1..=5).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
    !word.contains("://") && (word.contains('/') || is_extension)
}

/// Whether several words end as only the name of a document does.
fn ends_like_a_file(words: &str) -> bool {
    let extension =
        Path::new(words).extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let is_document =
        ["md", "markdown", "txt", "rst", "html", "htm", "pdf", "docx", "odt"].contains(&extension.as_str());
    is_document && words.lines().count() == 1
}

/// Whether the arguments lead to standard input.
pub(crate) fn reads_stdin(args: &InputArgs) -> bool {
    let names_it = args.inputs.iter().any(|input| is_stdin(Path::new(input)))
        || args.file.iter().chain(&args.lines).any(|path| is_stdin(path));
    names_it || args.inputs.is_empty() && args.file.is_empty() && args.lines.is_none()
}

/// Whether a path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads what the arguments name.
pub(crate) fn resolve(args: &InputArgs, command: &str, printer: &Printer) -> Result<Input, Failure> {
    if let Some(path) = &args.lines {
        return if is_stdin(path) { Ok(None) } else { open(path).map(Some) }.map(Input::Lines);
    }
    let given = given(args, command)?;
    match given.as_slice() {
        [] => stdin(printer).map(|text| Input::One(None, text)),
        [Given::Text(text)] => Ok(Input::One(None, (*text).to_owned())),
        [Given::File(path)] => {
            let source = (!is_stdin(path)).then(|| named(path));
            file(path, printer).map(|text| Input::One(source, text))
        }
        several => several_statements(several, printer).map(Input::Several),
    }
}

fn named(path: &Path) -> Source {
    Source::File { file: path.display().to_string() }
}

/// Several statements. If none of them can be used, nothing is sent, and the first one's failure is that of the
/// command.
fn several_statements(given: &[Given<'_>], printer: &Printer) -> Result<Vec<Statement>, Failure> {
    let one = |(at, given): (usize, &Given<'_>)| match given {
        Given::Text(text) => Ok((Source::Argument { argument: at + 1 }, Ok((*text).to_owned()))),
        Given::File(path) => one_of_several(path, printer),
    };
    let mut read = given.iter().enumerate().map(one).collect::<Result<Vec<Statement>, Failure>>()?;
    if read.iter().all(|(_, text)| text.is_err()) {
        return read.swap_remove(0).1.map(|_| Vec::new());
    }
    Ok(read)
}

/// A file among several: one that cannot be used is a failure of its own. Anything else, such as Ctrl-C while standard
/// input is read, ends the command.
fn one_of_several(path: &Path, printer: &Printer) -> Result<Statement, Failure> {
    match file(path, printer) {
        Err(failure) if failure.kind != Kind::Usage => Err(failure),
        read => Ok((named(path), read)),
    }
}

fn file(path: &Path, printer: &Printer) -> Result<String, Failure> {
    if is_stdin(path) {
        return stdin(printer);
    }
    read_capped(open(path)?, &path.display().to_string())
}

/// The non-blank lines of a file, or of standard input, as they are read; they are never all held in memory. A line
/// that cannot be used is a failure of its own; a read error is the last item.
pub(crate) fn lines(file: Option<File>) -> mpsc::Receiver<Statement> {
    let source: Box<dyn Read + Send> = match file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdin()),
    };
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        read_lines(BufReader::new(source), |line| sender.blocking_send(line).is_ok());
    });
    receiver
}

/// Opens a file for reading. On some systems a directory can be opened as well, and only fails when it is read.
pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    let opened = File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(file)
    });
    opened.map_err(|cause| unreadable(&path.display().to_string(), cause))
}

/// Passes non-blank lines to `take` until the end, or until it returns false.
pub(crate) fn read_lines(mut reader: impl BufRead, mut take: impl FnMut(Statement) -> bool) {
    for line in 1.. {
        let (item, is_last) = match next_line(&mut reader, line) {
            Ok(None) => return,
            Ok(Some(item)) => (item, false),
            Err(cause) => (Err(unreadable(&format!("line {line}"), cause)), true),
        };
        let is_blank = matches!(&item, Ok(text) if text.trim().is_empty());
        if !is_blank && !take((Source::Line { line }, item)) {
            return;
        }
        if is_last {
            return;
        }
    }
}

/// The next line; `None` at the end. A line that is too long is skipped, not kept.
fn next_line(reader: &mut impl BufRead, number: usize) -> io::Result<Option<Result<String, Failure>>> {
    let mut bytes = Vec::new();
    if reader.by_ref().take(MAX_BYTES + 1).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 > MAX_BYTES && bytes.last() != Some(&b'\n') {
        reader.skip_until(b'\n')?;
        return Ok(Some(Err(Failure::usage(format!("line {number} is longer than 1 MiB")))));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => {
            Err(Failure::usage(format!("line {number} holds binary data, not text")))
        }
        text => text.map_err(|_| Failure::usage(format!("line {number} is not UTF-8 text"))),
    };
    Ok(Some(text.map(|text| {
        let text = if number == 1 { without_bom(&text) } else { &text };
        text.trim_end_matches(['\r', '\n']).to_owned()
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_words_are_a_text_unless_they_end_like_a_document() {
        for name in ["no such file.md", "My Report.PDF"] {
            assert!(ends_like_a_file(name), "{name}");
        }
        for text in ["Paris is in France.", "One is in notes.md\nTwo.txt", "He wrote README.md."] {
            assert!(!ends_like_a_file(text), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_file_is_no_text() {
        for word in ["notes.md", "docs/*.md", "./x", "a/b", "report.PDF"] {
            assert!(looks_like_a_file(word), "{word}");
        }
        for word in ["x", "2+2=4.", "3.14", "https://example.org/a.html", "v1.2", "Yes.No.Perhaps"] {
            assert!(!looks_like_a_file(word), "{word}");
        }
    }

    #[test]
    fn lines_come_one_by_one_and_keep_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, b"one\r\n\n  \nfour\n\xff\nsix\na\0b").unwrap();
        let mut receiver = lines(Some(open(&path).unwrap()));
        let mut seen = Vec::new();
        while let Some((source, text)) = receiver.blocking_recv() {
            seen.push((source.label(), text.map_err(|failure| failure.message)));
        }
        let expected = [
            ("1", Ok("one")),
            ("4", Ok("four")),
            ("5", Err("line 5 is not UTF-8 text")),
            ("6", Ok("six")),
            ("7", Err("line 7 holds binary data, not text")),
        ];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(line, text)| (line.to_owned(), text.map(str::to_owned).map_err(str::to_owned)))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_line() {
        let mut seen = Vec::new();
        let mark_alone = "\u{feff}\r\ntwo\n".as_bytes();
        for text in ["\u{feff}one\n\u{feff}two\n".as_bytes(), mark_alone] {
            read_lines(BufReader::new(text), |(_, line)| {
                seen.push(line.unwrap());
                true
            });
        }
        assert_eq!(seen, ["one", "\u{feff}two", "two"]);
    }

    #[test]
    fn a_line_that_is_too_long_does_not_stop_the_next() {
        let mut text = vec![b'x'; usize::try_from(MAX_BYTES).unwrap() + 100_000];
        text.extend_from_slice(b"\nnext\n");
        let mut reader = BufReader::new(&text[..]);
        assert!(next_line(&mut reader, 1).unwrap().unwrap().is_err());
        assert_eq!(next_line(&mut reader, 2).unwrap().unwrap().unwrap(), "next");
        assert!(next_line(&mut reader, 3).unwrap().is_none());
    }

    #[test]
    fn a_read_error_is_not_mistaken_for_the_end() {
        struct Torn;
        impl Read for Torn {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::TimedOut.into())
            }
        }
        let mut read = Vec::new();
        read_lines(BufReader::new((&b"one\n"[..]).chain(Torn)), |(_, line)| {
            read.push(line);
            true
        });
        assert_eq!(read[0].as_deref().unwrap(), "one");
        assert!(read[1].is_err());
        assert_eq!(read.len(), 2);
    }
}
