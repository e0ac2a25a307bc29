//! Where statements come from: the command line, standard input, files, or the lines of a file.
//!
//! `mk verify TEXT` never touches standard input, so that it can stand in a `while read` loop.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio::sync::mpsc;

use super::args::VerifyArgs;
use crate::cli::exit::{Failure, Kind};
use crate::cli::printer::Printer;
use crate::cli::text::{MAX_BYTES, not_empty, read_capped, stdin, unreadable, without_bom};

/// Identifies one of several statements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Source {
    /// A file given by `--file`.
    File {
        /// As it was given.
        file: String,
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
            Self::Line { line } => format!("line {line}"),
        }
    }

    /// The first column of plain output.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::File { file } => file.clone(),
            Self::Line { line } => line.to_string(),
        }
    }
}

/// One of several statements, or why it cannot be one.
pub(crate) type Statement = (Source, Result<String, Failure>);

/// What to verify.
#[derive(Debug)]
pub(crate) enum Input {
    /// One statement.
    One(String),
    /// Several statements, already read.
    Files(Vec<Statement>),
    /// Each line of a file, or of standard input.
    Lines(Option<File>),
}

/// Fails at once if the arguments give nothing to verify: before a key is looked up or anything is read.
pub(crate) fn check_given(args: &VerifyArgs) -> Result<(), Failure> {
    match &args.text {
        Some(text) => not_empty(text.clone(), "the statement").map(drop),
        None if args.file.is_empty() && args.lines.is_none() => Err(nothing_given()),
        None => Ok(()),
    }
}

fn nothing_given() -> Failure {
    Failure::usage("nothing to verify was given").hint(
        "give the text: mk verify \"The Eiffel Tower is in Paris.\"; or `-` for standard input, -f FILE, --lines FILE",
    )
}

/// Whether the arguments name standard input.
pub(crate) fn reads_stdin(args: &VerifyArgs) -> bool {
    args.text.as_deref() == Some("-") || args.file.iter().chain(&args.lines).any(|path| is_stdin(path))
}

/// Whether a path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads what the arguments name.
pub(crate) fn resolve(args: &VerifyArgs, printer: &Printer) -> Result<Input, Failure> {
    if let Some(path) = &args.lines {
        return if is_stdin(path) { Ok(None) } else { open(path).map(Some) }.map(Input::Lines);
    }
    if let [path] = &*args.file {
        return file(path, printer).map(Input::One);
    }
    if !args.file.is_empty() {
        return files(&args.file, printer).map(Input::Files);
    }
    match args.text.as_deref() {
        Some("-") => stdin(printer).map(Input::One),
        Some(text) => Ok(Input::One(text.to_owned())),
        None => Err(nothing_given()),
    }
}

/// Several files. If none of them can be used, nothing is sent, and the first one's failure is that of the command.
fn files(paths: &[PathBuf], printer: &Printer) -> Result<Vec<Statement>, Failure> {
    let read: Result<Vec<Statement>, Failure> =
        paths.iter().map(|path| one_of_several(path, printer)).collect();
    let mut read = read?;
    if read.iter().all(|(_, text)| text.is_err()) {
        return read.swap_remove(0).1.map(|_| Vec::new());
    }
    Ok(read)
}

/// A file among several: one that cannot be used is a failure of its own. Anything else, such as Ctrl-C while standard
/// input is read, ends the command.
fn one_of_several(path: &Path, printer: &Printer) -> Result<Statement, Failure> {
    let source = Source::File { file: path.display().to_string() };
    match file(path, printer) {
        Err(failure) if failure.kind != Kind::Usage => Err(failure),
        read => Ok((source, read)),
    }
}

fn file(path: &Path, printer: &Printer) -> Result<String, Failure> {
    if is_stdin(path) {
        return stdin(printer);
    }
    read_capped(open(path)?, &path.display().to_string())
}

/// The non-blank lines of a file, or of standard input, as they are read; they are never all held in memory. A line that
/// cannot be used is a failure of its own; a read error is the last item.
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
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::usage(format!("line {number} is not UTF-8 text")));
    Ok(Some(text.map(|text| {
        let text = if number == 1 { without_bom(&text) } else { &text };
        text.trim_end_matches(['\r', '\n']).to_owned()
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_keep_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, b"one\r\n\n  \nfour\n\xff\nsix").unwrap();
        let mut receiver = lines(Some(open(&path).unwrap()));
        let mut seen = Vec::new();
        while let Some((source, text)) = receiver.blocking_recv() {
            seen.push((source.label(), text.map_err(|failure| failure.message)));
        }
        let expected =
            [("1", Ok("one")), ("4", Ok("four")), ("5", Err("line 5 is not UTF-8 text")), ("6", Ok("six"))];
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
