//! The prompt of a conversation: line editing, history, pasting and typing ahead.

use std::time::Duration;

use crate::support::chat::{Gateway, gateway};
use crate::support::mk::Mk;
use crate::support::provider::{
    ModelRequest, Reply, StreamStep, done, finish_chunk, role_chunk, stream, text_chunk,
};
use crate::support::pty::{INTERRUPTED, NEW_PROMPT, Person};

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const LEFT: &str = "\x1b[D";

/// The last message sent to the model.
fn question(ask: &ModelRequest) -> String {
    ask.body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// A provider that answers questions with `slow` slowly and never finishes those with `endless`.
async fn talkative() -> Gateway {
    gateway(|ask: &ModelRequest| {
        let start = vec![role_chunk(), text_chunk("Well"), StreamStep::APART];
        let wait = match question(ask) {
            text if text.contains("endless") => {
                return Reply::Stream([start, vec![StreamStep::Stall]].concat());
            }
            text if text.contains("slow") => StreamStep::Pause(Duration::from_secs(1)),
            _ => return stream(&["So it is."]),
        };
        let end = vec![wait, text_chunk(", it is so."), finish_chunk("stop"), done()];
        Reply::Stream([start, end].concat())
    })
    .await
}

/// Runs a conversation on this many columns; returns how it ended, its output, and the questions sent.
async fn converse(
    columns: u16,
    act: impl FnOnce(&mut Person) + Send + 'static,
) -> (String, String, Vec<String>) {
    let gateway = talkative().await;
    let mk = Mk::new()
        .args(["chat", "-m", "fake/m"])
        .env("MK_SERVER", &gateway.server.base)
        .env("MK_INFERENCE_KEY", &gateway.key);
    let ended = tokio::task::spawn_blocking(move || {
        let mut person = Person::at_columns(&mk.command(), columns);
        person.until("> ");
        act(&mut person);
        person.end()
    });
    let (status, shown) = ended.await.unwrap();
    (status, shown, gateway.provider.requests().iter().map(question).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_can_be_edited_in_the_middle() {
    let (status, shown, asked) = converse(80, |person| {
        person.types(&format!("whot?{LEFT}{LEFT}\x7fa\x05!\x01So \r"));
        person.until("tokens");
        person.types("one two three\x17\x1bb\x19\r");
        person.until_on_screen("> one threetwo\nSo it is.");
        person.types("gone\x15/exxit\x1b[1;5D\x1b[1;5C\x1b[D\x1b[D\x1b[D\x1b[3~\x05\r");
    })
    .await;
    assert_eq!(status, "code 0", "{shown}");
    assert_eq!(asked, ["So what?!", "one threetwo"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_questions_can_be_recalled_without_losing_the_draft() {
    let (_, shown, asked) = converse(80, |person| {
        for question in ["first?\r", "second?\r"] {
            person.types(question);
            person.until_on_screen(&format!("{}\nSo it is.", question.trim_end()));
        }
        person.types(&format!("draft{UP}"));
        person.until_on_screen("tokens");
        person.types(&format!("{UP}{UP}"));
        person.until_on_screen("> first?\nSo it is.");
        person.types(" again\r");
        person.until_on_screen("> first? again");
        person.types(&format!("dra{UP}{UP}{DOWN}\x0e\x10{DOWN}ft\r"));
        person.until_on_screen("> draft");
        person.types("\x04");
    })
    .await;
    assert_eq!(asked, ["first?", "second?", "first? again", "draft"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn input_typed_during_an_answer_is_kept_for_the_next_prompts() {
    let (status, shown, asked) = converse(80, |person| {
        person.types("a slow one\r");
        person.until("Well");
        person.types("ahead one\rahead two\rand a dr");
        person.until_on_screen("> and a dr");
        person.types("aft\r");
        person.until_on_screen("> and a draft");
        person.types("/exit\r");
    })
    .await;
    assert_eq!(status, "code 0", "{shown}");
    assert_eq!(asked, ["a slow one", "ahead one", "ahead two", "and a draft"], "{shown}");
    assert!(shown.contains("Well, it is so."), "the answer is not interrupted by typed text: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_typed_before_the_first_prompt_are_kept() {
    let gateway = talkative().await;
    let mk =
        Mk::new().args(["chat"]).env("MK_SERVER", &gateway.server.base).env("MK_INFERENCE_KEY", &gateway.key);
    let ended = tokio::task::spawn_blocking(move || {
        let mut person = Person::at(&mk.command());
        person.types("one\ntwo\n/exit\n");
        person.end()
    });
    let (status, shown) = ended.await.unwrap();
    assert_eq!(status, "code 0", "{shown}");
    let asked: Vec<String> = gateway.provider.requests().iter().map(question).collect();
    assert_eq!(asked, ["one", "two"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pasted_lines_are_one_question() {
    let (_, shown, asked) = converse(80, |person| {
        person.types("See: \x1b[200~one\rtwo\n\tthree\x1b[201~");
        person.until_on_screen("> See: one\ntwo\n        three");
        person.types("?\r");
        person.until("tokens");
        // Pasting also works during an answer.
        person.types("slow\r");
        person.until("Well");
        person.types("\x1b[200~a\rb\x1b[201~\rc\x1b\rd\r");
        person.until_on_screen("> c\nd\nSo it is.");
        person.types("\x04");
    })
    .await;
    assert_eq!(asked, ["See: one\ntwo\n\tthree?", "slow", "a\nb", "c\nd"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_the_answer_then_clears_the_line_then_exits() {
    let (status, shown, asked) = converse(80, |person| {
        person.types("an endless one\r");
        person.until("Well");
        person.types("\x03");
        person.until("/retry asks it again");
        person.until_times(NEW_PROMPT, 2);
        // What is typed in one go with Ctrl-C is gone with it.
        person.types("never sent\x03");
        person.until_times(NEW_PROMPT, 3);
        person.types("short\r");
        person.until_on_screen("> short\nSo it is.");
        person.until_times(NEW_PROMPT, 4);
        person.types("no\x03");
        person.until_times(NEW_PROMPT, 5);
        person.types("\x03");
    })
    .await;
    assert_eq!(status, INTERRUPTED, "{shown}");
    assert_eq!(asked, ["an endless one", "short"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lines_and_wide_characters_fit_44_columns() {
    let (_, shown, asked) = converse(44, |person| {
        person.types("0123456789012345678901234567890123456789東京都の人口は?\x01\x06\x06XY");
        person.until_on_screen("> 01XY23456789012345678901234567890123456789\n東京都の人口は?");
        person.types("\x05\x7f\x7f\x1b[D\x7f!");
        person.until_on_screen("3456789\n東京都の!口");
        person.types("\x15\x0b");
        person.until_on_screen("conversation\n>");
        person.types("e\u{301}😀x\x1b[D\x7f\x1b[Dy\r");
        person.until_on_screen("> ye\u{301}x\nSo it is.");
        person.types("\x04");
    })
    .await;
    assert_eq!(asked, ["ye\u{301}x"], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_works_without_colour_or_unicode() {
    let gateway = talkative().await;
    let mk = Mk::new()
        .args(["chat", "-m", "fake/m"])
        .env("MK_SERVER", &gateway.server.base)
        .env("MK_INFERENCE_KEY", &gateway.key)
        .env("NO_COLOR", "1")
        .env("MK_ASCII", "1");
    let ended = tokio::task::spawn_blocking(move || {
        let mut person = Person::at(&mk.command());
        person.until("> ");
        person.types(&format!("hb{LEFT}uh\x7f\r"));
        person.until("So it is.");
        person.types("\x04");
        person.end()
    });
    let (_, shown) = ended.await.unwrap();
    assert!(shown.is_ascii() && !shown.contains("\x1b[0m"), "{shown:?}");
    assert_eq!(question(&gateway.provider.requests().pop().unwrap()), "hub");
}
