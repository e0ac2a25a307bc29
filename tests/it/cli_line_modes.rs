//! Terminal modes: changed during a conversation and restored however it ends.

use std::process::Command;

use crate::support::mk::Mk;
use crate::support::pty::{NEW_PROMPT, Person};

/// The escape sequence that disables bracketed paste.
const PASTE_OFF: &str = "\x1b[?2004l";

/// A shell that runs the script `around`, in which `mk` starts a conversation.
fn shell(around: &str) -> Command {
    let mk = Mk::new().args(["chat", "--sandbox"]);
    let binary = env!("CARGO_BIN_EXE_mk");
    let text = format!("mk() (echo \"process=$BASHPID;\"; exec '{binary}' chat --sandbox)\n{around}");
    let mut command = Command::new("bash");
    command
        .args(["-c", &text])
        .env_clear()
        .envs(mk.command().get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", std::env::var("PATH").unwrap());
    command
}

/// The modes after `before=` and `after=`, each in brackets.
fn modes(shown: &str) -> (&str, &str) {
    let of = |name: &str| {
        let rest = &shown[shown.find(name).unwrap_or_else(|| panic!("no {name}: {shown}")) + name.len()..];
        &rest[..rest.find(']').unwrap()]
    };
    (of("before=["), of("after=["))
}

/// Prints the modes before and after a conversation, and survives a Ctrl-C.
const SHOWING: &str = "trap : INT; echo \"before=[$(stty -a)]\"; mk; echo \"ended=$?\"; \
     echo \"after=[$(stty -a)]\"";

#[test]
fn terminal_modes_are_restored_at_every_exit() {
    for (keys, code) in [(&["\x04"][..], 0), (&["/exit\r"], 0), (&["two\x03", "\x04"], 0), (&["\x03"], 130)] {
        let mut person = Person::at(&shell(SHOWING));
        for (at, keys) in keys.iter().enumerate() {
            person.until_times(NEW_PROMPT, at + 1);
            person.types(keys);
        }
        let (_, shown) = person.end();
        assert!(shown.contains(&format!("ended={code}")), "{keys:?}: {shown}");
        let (before, after) = modes(&shown);
        assert_eq!(before, after, "{keys:?}");
        assert!(before.contains(" icanon") && shown.contains(PASTE_OFF), "{keys:?}: {shown:?}");
    }
}

#[test]
fn terminal_modes_are_restored_after_a_signal() {
    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let mut person = Person::at(&shell(SHOWING));
        person.until("process=");
        person.until("> ");
        let process = person.behind("process=", ";");
        assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
        let (_, shown) = person.end();
        assert!(shown.contains(&format!("ended={code}")), "{name}: {shown}");
        let (before, after) = modes(&shown);
        assert_eq!(before, after, "{name}");
        assert!(shown.contains(PASTE_OFF), "{name}: {shown:?}");
    }
}

#[test]
fn terminal_modes_are_restored_while_stopped_and_the_prompt_returns() {
    let mut person = Person::at(&shell(&format!(
        "set -m; {}",
        SHOWING.replace("echo \"after", "echo \"stopped=[$(stty -a)]\"; fg; echo \"after")
    )));
    person.until("> ");
    person.types("half a dr");
    person.until_on_screen("> half a dr");
    person.types("\x1a");
    person.until("stopped=[");
    person.until("> half a dr");
    person.types("aft");
    person.until_on_screen("> half a draft");
    person.types("\x03");
    person.until_times(NEW_PROMPT, 2);
    person.types("\x04");
    let (_, shown) = person.end();
    let (before, after) = modes(&shown);
    assert_eq!(before, after);
    assert!(shown.contains(&format!("stopped=[{before}")), "{shown}");
}

#[test]
fn a_dumb_terminal_gets_a_plain_prompt() {
    let mut person = Person::at(&shell("export TERM=dumb; mk"));
    person.until("> ");
    person.types("What is 6 times 7?\n");
    person.until("42");
    person.until("> ");
    person.types("\x04");
    let (status, shown) = person.end();
    assert_eq!(status, "code 0", "{shown}");
    assert!(!shown.contains('\x1b'), "{shown:?}");
}
