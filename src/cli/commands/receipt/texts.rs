//! The texts at hand, to tell which of them a receipt is about.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::PathBuf;

use crate::cli::args::text;
use crate::cli::commands::verify::input::source::read_lines;
use crate::cli::process::exit::Failure;
use crate::verify::receipt::Fingerprint;

/// Texts, by what receipts know of them.
pub(super) struct Texts {
    /// What each is called, by its SHA-256 and its length.
    names: HashMap<(String, usize), String>,
}

impl Texts {
    /// Those of files, with and without the line end that editors and `echo` put at the end. Each line of a file is a text
    /// too, as `--lines` reads it.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut texts = Self { names: HashMap::new() };
        for path in paths {
            let (name, text) = (path.display().to_string(), text::of_file("--text", path)?);
            texts.add(&text, &name);
            texts.add(text.trim_end_matches(['\r', '\n']), &name);
            read_lines(BufReader::new(text.as_bytes()), |(source, line)| {
                if let Ok(line) = line {
                    texts.add(&line, &format!("{} of {name}", source.name()));
                }
                true
            });
        }
        Ok(texts)
    }

    /// Of equal texts, the first is named.
    fn add(&mut self, text: &str, name: &str) {
        let Fingerprint { sha256, chars } = Fingerprint::of(text);
        self.names.entry((sha256, chars)).or_insert_with(|| name.to_owned());
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What the text with this fingerprint is called, if it is at hand.
    pub(super) fn name(&self, fingerprint: &Fingerprint) -> Option<&str> {
        self.names.get(&(fingerprint.sha256.clone(), fingerprint.chars)).map(String::as_str)
    }
}
