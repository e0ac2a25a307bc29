//! `--resume FILE`: every answer is kept as it comes, so that an evaluation goes on without paying twice.
//!
//! The file is JSON Lines: a header that pins the dataset and the settings that verdicts depend on, then an answer a
//! line, which are all of the same panel, only ever appended: a verification, or what models answered to its questions
//! without options, where the last line holds. What failed is not in it, and is asked again. An interrupted write
//! leaves a
//! torn last line, which is cut off; anything else that is no answer is an error, as it may be a file of somebody else.
//! Only one evaluation at a time uses a file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open::Opened;
use super::panel::Panels;
use crate::api::verify::{Domain, VerifyResponse};
use crate::cli::commands::verify::output::json::milliseconds;
use crate::cli::process::exit::{Failure, Kind};
use crate::private;

const SCHEMA: &str = "mk.eval.answers/1";

/// The longest line that makes sense: a result, of which the client takes 16 MiB.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The first line: answers are for nothing else.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    schema: String,
    /// The SHA-256 of the dataset.
    dataset: String,
    settings: Map<String, Value>,
}

/// A verification that was answered before.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Answer<R, O> {
    Verified {
        /// The number of the statement in the dataset, from 0.
        statement: usize,
        /// Which repetition, from 0.
        run: u32,
        elapsed_ms: u64,
        /// As [`VerifyResponse::models`], which a result itself does not tell.
        #[serde(default)]
        models: Vec<String>,
        result: R,
    },
    /// Of the first repetition.
    Open { statement: usize, open: O },
}

/// The answers of a file, to which new ones are appended.
pub(super) struct Answers {
    path: PathBuf,
    file: File,
    known: HashMap<(usize, u32), (VerifyResponse, Duration)>,
    opened: HashMap<usize, Opened>,
    /// Of the panels that they are from.
    panels: Panels,
}

impl Answers {
    /// Opens a file of answers, or begins one.
    ///
    /// # Errors
    /// If it cannot be read or written, is in use, or holds something else.
    pub(super) fn open(path: &Path, dataset: &str, settings: &Map<String, Value>) -> Result<Self, Failure> {
        let failed = |cause: std::io::Error| {
            Failure::usage(format!("--resume: cannot use {}: {cause}", path.display())).caused_by(cause)
        };
        // Whoever opens a pipe may wait for ever.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(Failure::usage(format!("--resume: {} is not a regular file", path.display())));
        }
        private::open_or_create(path).map_err(failed)?;
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        // Some network file systems have no locks, which is no reason to refuse.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let message = format!("--resume: another evaluation is using {}", path.display());
            return Err(Failure::usage(message).hint("wait for it to end, or name another file"));
        }
        let header =
            Header { schema: SCHEMA.to_owned(), dataset: dataset.to_owned(), settings: settings.clone() };
        let (known, opened, panels) = (HashMap::new(), HashMap::new(), Panels::default());
        let mut answers = Self { path: path.to_owned(), file, known, opened, panels };
        answers.read(&header)?;
        Ok(answers)
    }

    fn read(&mut self, header: &Header) -> Result<(), Failure> {
        let own = line(header)?;
        let path = self.path.display().to_string();
        let no_answer =
            |number: u32| Failure::usage(format!("--resume: line {number} of {path} is not an answer"));
        let mut reader = BufReader::new(self.file.try_clone().map_err(|cause| self.failed(cause))?);
        let mut end: u64 = 0;
        for number in 1.. {
            let mut bytes = Vec::new();
            let mut capped = Read::take(&mut reader, MAX_LINE_BYTES);
            let length = capped.read_until(b'\n', &mut bytes).map_err(|cause| self.failed(cause))?;
            let is_whole = bytes.last() == Some(&b'\n');
            if !is_whole && capped.limit() == 0 {
                return Err(no_answer(number).hint("name a file that does not exist yet; it will be created"));
            }
            if number == 1 && (length == 0 || !is_whole && own.starts_with(&bytes)) {
                self.file.set_len(0).map_err(|cause| self.failed(cause))?;
                return self.write(&own);
            }
            if length == 0 {
                return Ok(());
            }
            if number == 1 {
                self.check(header, &bytes)?;
            } else if is_whole {
                let answer: Answer<Box<VerifyResponse>, Opened> =
                    serde_json::from_slice(&bytes).map_err(|cause| {
                        no_answer(number).caused_by(cause).hint("name another file, or delete that line")
                    })?;
                match answer {
                    Answer::Verified { statement, run, elapsed_ms, models, mut result } => {
                        result.results.iter_mut().for_each(|claim| claim.seat(&models));
                        result.models = models;
                        self.panels.add(&result).map_err(|other| self.of_other_panel(&other))?;
                        self.known.insert((statement, run), (*result, Duration::from_millis(elapsed_ms)));
                    }
                    Answer::Open { statement, open } => {
                        self.opened.insert(statement, open);
                    }
                }
            } else {
                return self.file.set_len(end).map_err(|cause| self.failed(cause));
            }
            end += length as u64;
        }
        Ok(())
    }

    /// Whether the answers are for the same statements and settings.
    fn check(&self, header: &Header, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.display();
        let found: Header = serde_json::from_slice(bytes)
            .ok()
            .filter(|found: &Header| found.schema == SCHEMA)
            .ok_or_else(|| {
                Failure::usage(format!("--resume: {path} does not hold answers of `mk eval`"))
                    .hint("name a file that does not exist yet; it will be created")
            })?;
        let name = |name: &&String| found.settings.get(*name) != header.settings.get(*name);
        let other = header.settings.keys().chain(found.settings.keys()).find(name);
        let differs = match other {
            _ if found.dataset != header.dataset => "is for another dataset".to_owned(),
            Some(name) => {
                let of = |settings: &Map<String, Value>| match settings.get(name) {
                    None | Some(Value::Null) => "left out".to_owned(),
                    Some(value) => value.to_string(),
                };
                let (then, now) = (of(&found.settings), of(&header.settings));
                format!("was made with {name} {then}, and not {now}")
            }
            None => return Ok(()),
        };
        Err(Failure::usage(format!("--resume: {path} {differs}")).hint("name another file for these answers"))
    }

    /// The answer on a statement, if there is one.
    pub(super) fn take(&mut self, statement: usize, run: u32) -> Option<(VerifyResponse, Duration)> {
        self.known.remove(&(statement, run))
    }

    /// Whether these models are asked about statements of a domain for the other answers as well.
    ///
    /// # Errors
    /// If they are not: figures over two panels would be those of none.
    pub(super) fn check_panel(&self, domain: Domain, models: &[String]) -> Result<(), Failure> {
        self.panels.check(domain.as_str(), models).map_err(|other| self.of_other_panel(&other))
    }

    fn of_other_panel(&self, differs: &str) -> Failure {
        Failure::usage(format!("--resume: {} was made with {differs}", self.path.display()))
            .hint("name another file for this panel's answers")
    }

    /// Keeps an answer.
    ///
    /// # Errors
    /// If it is of another panel than those before, or cannot be written; whoever pays for answers wants to know.
    pub(super) fn keep(
        &mut self,
        statement: usize,
        run: u32,
        (result, elapsed): &(VerifyResponse, Duration),
    ) -> Result<(), Failure> {
        self.panels.add(result).map_err(|other| self.of_other_panel(&other))?;
        let (elapsed_ms, models) = (milliseconds(*elapsed), result.models.clone());
        self.append(&Answer::<_, ()>::Verified { statement, run, elapsed_ms, models, result })
    }

    /// What models answered to the questions of a statement without options.
    pub(super) fn take_open(&mut self, statement: usize) -> Option<Opened> {
        self.opened.remove(&statement)
    }

    /// Keeps that.
    ///
    /// # Errors
    /// As [`Answers::keep`].
    pub(super) fn keep_open(&mut self, statement: usize, open: &Opened) -> Result<(), Failure> {
        self.append(&Answer::<(), _>::Open { statement, open })
    }

    fn append<R: Serialize, O: Serialize>(&mut self, answer: &Answer<R, O>) -> Result<(), Failure> {
        let line = line(answer)?;
        self.write(&line)
    }

    fn write(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.file.write_all(line).map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: std::io::Error) -> Failure {
        let message = format!("--resume: cannot use {}: {cause}", self.path.display());
        Failure::new(Kind::Other, message).caused_by(cause)
    }
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut bytes = serde_json::to_vec(value)
        .map_err(|cause| Failure::new(Kind::Other, "an answer cannot be written as JSON").caused_by(cause))?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::commands::eval::reports::document::fields;

    fn result(id: &str) -> (VerifyResponse, Duration) {
        let result = json!({
            "requestId": id, "original_fact": "x", "results": [], "timestamp": "t",
            "tokenUsage": { "promptTokens": 1, "completionTokens": 0, "totalTokens": 1 },
        });
        (serde_json::from_value(result).unwrap(), Duration::from_millis(5))
    }

    fn open(path: &Path, dataset: &str, domain: &str) -> Result<Answers, Failure> {
        Answers::open(path, dataset, &fields(json!({ "domain": domain })))
    }

    #[test]
    fn answers_are_kept_and_known_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.jsonl");
        let mut first = open(&path, "d", "legal").unwrap();
        first.keep(3, 0, &result("three")).unwrap();
        first.keep(3, 1, &result("three again")).unwrap();
        assert!(open(&path, "d", "legal").is_err(), "one evaluation at a time");
        drop(first);
        let mut again = open(&path, "d", "legal").unwrap();
        assert_eq!((again.known.len(), again.take(2, 0)), (2, None));
        assert_eq!(again.take(3, 1), Some(result("three again")));
        assert_eq!(again.take(3, 0), Some(result("three")));
    }

    #[test]
    fn of_answers_without_options_the_last_line_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.jsonl");
        let mut first = open(&path, "d", "legal").unwrap();
        first.keep(3, 0, &result("three")).unwrap();
        let (some, all) = (Opened::default(), Opened { tokens: 9, ..Opened::default() });
        first.keep_open(3, &some).unwrap();
        first.keep_open(3, &all).unwrap();
        drop(first);
        let mut again = open(&path, "d", "legal").unwrap();
        assert_eq!((again.take(3, 0), again.take_open(3)), (Some(result("three")), Some(all)));
        assert_eq!(again.take_open(2), None);
    }

    #[test]
    fn a_torn_last_line_is_cut_off_wherever_it_is_torn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.jsonl");
        let mut first = open(&path, "d", "legal").unwrap();
        first.keep(0, 0, &result("one")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        first.keep(1, 0, &result("two")).unwrap();
        drop(first);
        let all = std::fs::read(&path).unwrap();
        for length in 0..all.len() {
            std::fs::write(&path, &all[..length]).unwrap();
            let mut torn = open(&path, "d", "legal").unwrap();
            assert_eq!(torn.known.len(), usize::from(length >= whole.len()), "{length}");
            torn.keep(0, 0, &result("one")).unwrap();
            torn.keep(1, 0, &result("two")).unwrap();
            drop(torn);
            assert_eq!(open(&path, "d", "legal").unwrap().known.len(), 2, "{length}");
        }
    }

    #[test]
    fn a_file_for_something_else_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.jsonl");
        drop(open(&path, "d", "legal").unwrap());
        let refused = |dataset, domain| open(&path, dataset, domain).err().unwrap().message;
        assert!(refused("e", "legal").contains("is for another dataset"));
        assert!(refused("d", "general").contains("was made with domain \"legal\", and not \"general\""));
        assert!(open(dir.path(), "d", "legal").err().unwrap().message.contains("not a regular file"));
        for other in ["notes of mine", "notes of mine\n", "{}\n", "{\"schema\": \"mk.eval/1\"}\n"] {
            std::fs::write(&path, other).unwrap();
            assert!(refused("d", "legal").contains("does not hold answers"), "{other}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
        let header = line(&Header {
            schema: SCHEMA.to_owned(),
            dataset: "d".to_owned(),
            settings: fields(json!({ "domain": "legal" })),
        });
        let broken = [&header.unwrap()[..], b"{}\n"].concat();
        std::fs::write(&path, broken).unwrap();
        assert!(refused("d", "legal").contains("line 2 of"));
    }
}
