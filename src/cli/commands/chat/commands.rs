//! The commands of a conversation: lines that begin with a slash.
//!
//! A slash and a word make a command, known or not, whatever follows, so that a slip is never sent to a model. What
//! people also begin with a slash has more than letters in its first word (`/etc/hosts`), or a blank before it.

use crate::config::closest;

/// What a typed text asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    /// The list of commands.
    Help,
    /// Another model; without a name, which one is asked.
    Model(Option<&'a str>),
    /// Other instructions; without a text, what they are.
    System(Option<&'a str>),
    /// The last question again.
    Retry,
    /// The conversation, to a file.
    Save(&'a str),
    /// The end.
    Exit,
}

/// A command as `/help` lists it: its name, what follows it, and what it does.
pub(super) struct Listed {
    name: &'static str,
    argument: &'static str,
    pub(super) does: &'static str,
}

const fn listed(name: &'static str, argument: &'static str, does: &'static str) -> Listed {
    Listed { name, argument, does }
}

/// All commands.
pub(super) const LIST: [Listed; 6] = [
    listed("/model", "[MODEL]", "switch to another model; alone: show the current one and the others"),
    listed("/system", "[TEXT]", "set the system prompt; alone: show it; -: remove it"),
    listed("/retry", "", "ask the last question again and discard its answer"),
    listed(
        "/save",
        "FILE",
        "save the conversation to a new file: JSON if its name ends in .json, else Markdown",
    ),
    listed("/help", "", "list these commands"),
    listed("/exit", "", "end the conversation, like Ctrl-D"),
];

impl Listed {
    /// How it is typed.
    pub(super) fn usage(&self) -> String {
        format!("{} {}", self.name, self.argument).trim_end().to_owned()
    }
}

/// Why a line is not the command that it looks like, and what to do instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) hint: String,
}

/// The command in a text; `None` if the text is a question.
pub(super) fn parse(text: &str) -> Option<Result<Command<'_>, Refusal>> {
    let name = first_word(text)?;
    let argument = Some(text[name.len()..].trim()).filter(|rest| !rest.is_empty());
    Some(match (name, argument) {
        ("/help", None) => Ok(Command::Help),
        ("/exit", None) => Ok(Command::Exit),
        ("/retry", None) => Ok(Command::Retry),
        ("/model", name) => Ok(Command::Model(name)),
        ("/system", text) => Ok(Command::System(text)),
        ("/save", Some(file)) => Ok(Command::Save(file)),
        _ => Err(refusal(name)),
    })
}

/// The slash and the letters that a text begins with, if nothing else is in its first word.
fn first_word(text: &str) -> Option<&str> {
    let word = text.split(char::is_whitespace).next()?;
    let letters = word.strip_prefix('/')?;
    let is_command = !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_alphabetic());
    is_command.then_some(word)
}

fn refusal(name: &str) -> Refusal {
    if let Some(known) = LIST.iter().find(|listed| listed.name == name) {
        let takes = if known.argument.is_empty() { "no argument" } else { known.argument };
        return Refusal { message: format!("{name} takes {takes}"), hint: format!("type {}", known.usage()) };
    }
    let meant = closest(name, LIST.iter().map(|listed| listed.name));
    let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    let hint = format!(
        "{meant}/help lists the commands; to ask a question that begins with a slash, put a \
        space before it"
    );
    Refusal { message: format!("there is no command {name}"), hint }
}

/// Where what is typed up to the cursor can be completed from, and by what: commands, and models behind `/model`.
pub(super) fn complete(typed: &str, models: &[String]) -> (usize, Vec<String>) {
    if let Some(model) = typed.strip_prefix("/model ") {
        let fitting = models.iter().filter(|name| name.starts_with(model)).cloned().collect();
        return (typed.len() - model.len(), fitting);
    }
    if !typed.starts_with('/') {
        return (0, Vec::new());
    }
    let behind = |listed: &Listed| if listed.argument.is_empty() { "" } else { " " };
    let fitting = LIST.iter().filter(|listed| listed.name.starts_with(typed));
    (0, fitting.map(|listed| format!("{}{}", listed.name, behind(listed))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_what_they_are_listed_with() {
        for (text, command) in [
            ("/help", Command::Help),
            ("/exit ", Command::Exit),
            ("/retry", Command::Retry),
            ("/model", Command::Model(None)),
            ("/model openai/gpt-5.4", Command::Model(Some("openai/gpt-5.4"))),
            ("/system  Be brief.\nAnd kind. ", Command::System(Some("Be brief.\nAnd kind."))),
            ("/save a file.md", Command::Save("a file.md")),
        ] {
            assert_eq!(parse(text), Some(Ok(command)), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_command_is_refused_with_or_without_an_argument() {
        let refused = |text: &str| match parse(text) {
            Some(Err(refusal)) => format!("{}; {}", refusal.message, refusal.hint),
            other => panic!("{text}: {other:?}"),
        };
        for text in ["/exot", "/exot now", "/exot\nnow"] {
            assert!(
                refused(text).starts_with("there is no command /exot; did you mean /exit? /help"),
                "{text}"
            );
        }
        assert!(refused("/Zzz").starts_with("there is no command /Zzz; /help lists"));
        assert_eq!(refused("/exit now"), "/exit takes no argument; type /exit");
        assert_eq!(refused("/save"), "/save takes FILE; type /save FILE");
    }

    #[test]
    fn paths_and_texts_are_questions() {
        for text in ["/", "/etc/hosts", "/etc/hosts is what?", "/2", "exit", "//", " /exit", "/don't"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn commands_and_models_are_completed() {
        let models = ["a/one".to_owned(), "a/two".to_owned(), "b/one".to_owned()];
        assert_eq!(complete("/m", &models), (0, vec!["/model ".to_owned()]));
        assert_eq!(complete("/e", &models), (0, vec!["/exit".to_owned()]));
        assert_eq!(complete("/model a/", &models), (7, models[..2].to_vec()));
        assert_eq!(complete("what is /m", &models), (0, Vec::new()));
    }
}
