//! What was said in a conversation, and how it is saved.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::api::chat::ChatMessage;
use crate::cli::process::exit::{Failure, Kind};
use crate::{os_error, private};

/// A question with its whole answer.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) question: String,
    pub(super) answer: String,
    /// The model that was asked.
    pub(super) model: String,
}

/// A conversation so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript {
    /// What the model is told before anything else.
    pub(super) system: Option<String>,
    pub(super) turns: Vec<Turn>,
}

impl Transcript {
    /// The messages before the next question.
    pub(super) fn messages(&self) -> Vec<ChatMessage> {
        let system = self.system.iter().map(|text| ChatMessage::new("system", text.as_str()));
        let said = self.turns.iter().flat_map(|turn| {
            let question = ChatMessage::new("user", turn.question.as_str());
            [question, ChatMessage::new("assistant", turn.answer.as_str())]
        });
        system.chain(said).collect()
    }

    /// Writes it to a new file that only its owner can read, and returns a sentence about that. `model` is the one that
    /// is asked now.
    pub(super) fn save(&self, file: &str, model: &str) -> Result<String, Failure> {
        if self.turns.is_empty() {
            return Err(Failure::usage("there is no answer yet").hint("ask something first"));
        }
        let path = resolved(file, std::env::home_dir());
        let is_json = path.extension().is_some_and(|found| found.eq_ignore_ascii_case("json"));
        let text = if is_json { self.json(model) } else { self.markdown() };
        let shown = path.display();
        let written = private::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        match written {
            Ok(()) => Ok(format!("saved {} to {shown}", counted(self.turns.len()))),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Err(Failure::new(Kind::NotFound, format!("{shown} already exists"))
                    .hint("choose another name: /save FILE"))
            }
            Err(cause) => {
                let why = os_error::message(&cause);
                Err(Failure::usage(format!("cannot write to {shown}: {why}")).caused_by(cause))
            }
        }
    }

    fn json(&self, model: &str) -> String {
        let document = json!({ "schema": "mk.conversation/1", "model": model, "messages": self.messages() });
        format!("{document:#}\n")
    }

    fn markdown(&self) -> String {
        let system = self.system.iter().map(|text| format!("# System\n\n{text}\n\n"));
        let said = self.turns.iter().map(|turn| {
            format!("# Question\n\n{}\n\n# {}\n\n{}\n\n", turn.question, turn.model, turn.answer.trim_end())
        });
        let text: String = system.chain(said).collect();
        format!("{}\n", text.trim_end())
    }
}

/// The file that a person means: `~/` is the home directory, as shells have it.
fn resolved(file: &str, home: Option<PathBuf>) -> PathBuf {
    match (file.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(file).to_owned(),
    }
}

fn counted(turns: usize) -> String {
    if turns == 1 {
        "1 question with its answer".to_owned()
    } else {
        format!("{turns} questions with their answers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> Transcript {
        let turn = Turn { question: "Why?".to_owned(), answer: "So.\n".to_owned(), model: "a/b".to_owned() };
        Transcript { system: Some("Be brief.".to_owned()), turns: vec![turn] }
    }

    #[test]
    fn a_conversation_is_saved_once_and_privately() {
        let dir = tempfile::tempdir().unwrap();
        let save = |name: &str| said().save(dir.path().join(name).to_str().unwrap(), "a/b");
        assert!(save("talk.md").unwrap().starts_with("saved 1 question with its answer to "));
        let text = std::fs::read_to_string(dir.path().join("talk.md")).unwrap();
        assert_eq!(text, "# System\n\nBe brief.\n\n# Question\n\nWhy?\n\n# a/b\n\nSo.\n");
        assert!(save("talk.md").unwrap_err().message.ends_with("talk.md already exists"));
        assert!(save("none/talk.md").unwrap_err().message.starts_with("cannot write to "));
        save("talk.json").unwrap();
        let json = std::fs::read(dir.path().join("talk.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            (&json["schema"], &json["messages"][2]["content"]),
            (&"mk.conversation/1".into(), &"So.\n".into())
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(dir.path().join("talk.md")).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let none = Transcript::default().save("x", "a/b").unwrap_err();
        assert_eq!(none.message, "there is no answer yet");
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let home = || Some(PathBuf::from("/home/robin"));
        assert_eq!(resolved("~/a b.md", home()), Path::new("/home/robin/a b.md"));
        assert_eq!(resolved("a~/b", home()), Path::new("a~/b"));
        assert_eq!(resolved("~/b", None), Path::new("~/b"));
    }
}
