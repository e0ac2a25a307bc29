//! Texts that a person supplies: reading all of standard input, and what makes a text unusable.

use std::fs::File;
use std::io::{self, BufRead, Read, StdinLock};
use std::path::Path;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time;

use crate::cli::process::exit::Failure;
use crate::cli::process::runtime;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::shell;

/// The largest text that is read. Servers accept less, and say how much.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// How long standard input may be silent before a notice says that we wait for it.
const PROMPT_DELAY: Duration = Duration::from_secs(3);

/// All of standard input. On a terminal where nothing arrives, a notice says what is waited for.
pub(crate) fn stdin(printer: &Printer) -> Result<String, Failure> {
    read_stdin(printer, |input| read_capped(input, "standard input"))?
}

/// The result of `read` on standard input; a terminal is told what is waited for. Ctrl-C interrupts it as it interrupts
/// requests.
pub(crate) fn read_stdin<T: Send + 'static>(
    printer: &Printer,
    read: impl FnOnce(StdinLock<'static>) -> T + Send + 'static,
) -> Result<T, Failure> {
    let (begun, has_begun) = oneshot::channel();
    let (done, result) = oneshot::channel();
    runtime::run(printer, async {
        // A thread of its own that ends with the process, as a blocking read cannot be cancelled. The receivers may be
        // gone by the time it sends.
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            let _ = input.fill_buf().map(|_| begun.send(()));
            let outcome = read(input);
            // Ctrl-C ends whoever writes the text as well, and a text that was cut off by it must not be used.
            runtime::await_pending_signals();
            let _ = done.send(outcome);
        });
        if time::timeout(PROMPT_DELAY, has_begun).await.is_err() {
            let how = "; end it with Ctrl-D on a line of its own";
            let how = if printer.terminal.input_is_tty { how } else { "" };
            printer.notice(&format!("waiting for text on standard input{how}"));
        }
        result.await.map_err(|_| Failure::usage("cannot read standard input"))
    })
}

/// All of `source`, if it is text and not too large; messages call it `name`.
pub(crate) fn read_capped(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|cause| unreadable(name, cause))?;
    if bytes.starts_with(b"%PDF-") {
        return Err(pdf(name));
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!("{name} is larger than 1 MiB")).hint("split it into parts"));
    }
    if bytes.contains(&0) {
        return Err(binary(&bytes, name));
    }
    let text = String::from_utf8(bytes).map_err(|cause| not_text(cause.as_bytes(), name))?;
    not_empty(without_bom(&text).to_owned(), name)
}

/// The text of a file that a flag names.
pub(crate) fn of_file(flag: &str, path: &Path) -> Result<String, Failure> {
    let file = File::open(path).map_err(|cause| {
        Failure::usage(format!("{flag}: cannot read {}: {cause}", path.display())).caused_by(cause)
    })?;
    read_capped(file, &format!("{flag}: {}", path.display()))
}

/// The failure for a PDF.
pub(crate) fn pdf(name: &str) -> Failure {
    // Its name as a word, unless it is that of a flag or of standard input.
    let file = if Path::new(name).is_file() { shell::word(name) } else { "FILE.pdf".into() };
    Failure::usage(format!("{name} is a PDF, not text"))
        .hint(format!("convert it first: `pdftotext {file} -`"))
}

/// The failure for what has NUL bytes, as no text in UTF-8 has: what stands on both sides of one would become a word.
fn binary(bytes: &[u8], name: &str) -> Failure {
    let hint = match bytes {
        [b'P', b'K', 3, 4, ..] => "it is an archive or an office document; save it as plain text or Markdown",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            "it is UTF-16; convert it first: `iconv -f UTF-16 -t UTF-8 FILE`"
        }
        _ => "is it a text file? If so, convert it to UTF-8 first, for example with `iconv`",
    };
    Failure::usage(format!("{name} holds binary data, not text")).hint(hint)
}

/// The failure for what is not UTF-8, with what to do about it.
fn not_text(bytes: &[u8], name: &str) -> Failure {
    let hint = match bytes {
        [b'P', b'K', 3, 4, ..] => "it is an archive or an office document; save it as plain text or Markdown",
        _ => "convert it first, for example: `iconv -f WINDOWS-1252 -t UTF-8 FILE`",
    };
    Failure::usage(format!("{name} is not UTF-8 text")).hint(hint)
}

/// The text without the byte order mark (U+FEFF) that some editors put before it, and that is no part of it.
pub(crate) fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// `text`, unless it is blank.
pub(crate) fn not_empty(text: String, name: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("{name} is empty")));
    }
    Ok(text)
}

/// The failure for a `name` that cannot be read.
pub(crate) fn unreadable(name: &str, cause: io::Error) -> Failure {
    Failure::usage(format!("cannot read {name}: {cause}")).caused_by(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_and_non_text_input_is_refused() {
        assert!(read_capped(io::repeat(b'x'), "it").unwrap_err().message.contains("1 MiB"));
        assert!(read_capped(&b"\xff"[..], "it").unwrap_err().message.contains("UTF-8"));
        for (bytes, hint) in [
            (&b"%PDF-1.7\nx"[..], "pdftotext"),
            (b"PK\x03\x04\xff", "Markdown"),
            (b"PK\x03\x04\0x", "Markdown"),
            (b"\xff\xfea\0", "UTF-16"),
            (b"France\0is Paris", "is it a text file?"),
            (b"caf\xe9", "WINDOWS-1252"),
        ] {
            let failure = read_capped(bytes, "it").unwrap_err();
            assert!(failure.hints[0].contains(hint), "{failure:?}");
        }
        assert_eq!(read_capped(&b"a\0b"[..], "it").unwrap_err().message, "it holds binary data, not text");
        assert!(read_capped(&b" \n"[..], "it").unwrap_err().message.contains("empty"));
        assert!(read_capped("\u{feff}".as_bytes(), "it").unwrap_err().message.contains("empty"));
        assert_eq!(read_capped("\u{feff}it".as_bytes(), "it").unwrap(), "it");
    }
}
