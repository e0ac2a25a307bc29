//! What `mk` makes of its arguments: texts, files, pipes, and mistakes that it says how to mend.

use std::process::Stdio;

use crate::support::mk::{CommandOutput, INFERENCE_KEY, Mk, VERIFY_KEY};
use crate::support::scripted::{COMPLETED, Scripted, stream};

/// Statements that the sandbox assesses as TRUE and FALSE.
const TRUE: &str = "The Eiffel Tower is in Paris.";
const FALSE: &str = "The capital of Australia is Sydney.";

fn sandbox(arguments: &[&str]) -> Mk {
    Mk::new().args(["verify", "--sandbox"]).args(arguments.iter().copied())
}

/// A user with these two files.
fn with_files(arguments: &[&str]) -> CommandOutput {
    let mk = sandbox(arguments);
    std::fs::write(mk.home().join("true.md"), TRUE).unwrap();
    std::fs::write(mk.home().join("false.md"), FALSE).unwrap();
    std::fs::create_dir(mk.home().join("docs")).unwrap();
    mk.run()
}

#[test]
fn an_argument_that_names_a_file_is_that_file_and_that_is_said() {
    let one = with_files(&["false.md"]);
    assert_eq!(one.code(), 10, "{one:?}");
    assert!(one.stdout.starts_with("1\tFALSE\t"), "{one:?}");
    assert!(one.stderr.starts_with("reading false.md\n"), "{one:?}");
    assert!(one.stderr.contains("\nfalse.md:1:1  FALSE         The capital of Australia"), "{one:?}");

    let several = with_files(&["true.md", "false.md"]);
    assert_eq!(several.code(), 10, "{several:?}");
    let lines: Vec<&str> = several.stdout.lines().collect();
    assert!(
        lines[0].starts_with("true.md\t1\tTRUE") && lines[1].starts_with("false.md\t1\tFALSE"),
        "{lines:?}"
    );
    assert!(several.stderr.starts_with("reading true.md, false.md\n"), "{several:?}");

    let text = with_files(&["--text", "false.md"]);
    assert!(text.code() == 12 && !text.stderr.contains("reading"), "{text:?}");
    let mixed = with_files(&[TRUE, "false.md", "-f", "true.md"]);
    let sources: Vec<&str> = mixed.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(sources, ["argument 1", "false.md", "true.md"], "{mixed:?}");
}

#[test]
fn what_can_be_no_text_is_refused_with_what_to_do() {
    for (arguments, message, hint) in [
        (&["missing.md"][..], "there is no file missing.md", "--text"),
        (&["docs/*.md"], "there is no file docs/*.md", "--text"),
        (&["docs"], "docs is a directory", "mk verify docs/*.md"),
        (
            &["The", "Nile", "is", "long."],
            "`The` is a single word, and there is no file of this name",
            "mk verify \"…\"",
        ),
        (&["true.md", "fasle.md"], "there is no file fasle.md", "--text"),
    ] {
        let ran = with_files(arguments);
        assert_eq!(ran.code(), 2, "{arguments:?}: {ran:?}");
        let hints: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("hint: ")).collect();
        assert!(ran.stderr.starts_with(&format!("error: {message}\n")), "{ran:?}");
        assert!(hints.iter().any(|told| told.contains(hint)), "{ran:?}");
    }
}

#[test]
fn what_is_piped_in_is_read_without_a_dash_where_nothing_else_is_given() {
    let piped = sandbox(&[]).stdin(FALSE).run();
    assert!(piped.code() == 10 && piped.stdout.starts_with("1\tFALSE\t"), "{piped:?}");
    let given = sandbox(&[TRUE]).stdin(FALSE).run();
    assert!(given.code() == 0 && given.stdout.starts_with("1\tTRUE\t"), "{given:?}");
    let mk = sandbox(&[]);
    std::fs::write(mk.home().join("false.txt"), FALSE).unwrap();
    let file = std::fs::File::open(mk.home().join("false.txt")).unwrap();
    assert_eq!(mk.command().stdin(file).output().unwrap().status.code(), Some(10));
    let nothing = mk.command().stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8(nothing.stderr).unwrap();
    assert!(
        nothing.status.code() == Some(2) && told.starts_with("error: there is nothing to verify\n"),
        "{told}"
    );
}

#[test]
fn other_formats_are_told_with_what_to_do() {
    for (bytes, message, hint) in [
        (&b"%PDF-1.7\n\xe2\xe3"[..], "note is a PDF, not text", "convert it first: `pdftotext note -`"),
        (b"PK\x03\x04\xff", "note is not UTF-8 text", "plain text"),
        (b"\xff\xfeT\0", "note holds binary data, not text", "iconv -f UTF-16"),
        (b"France\0is Paris", "note holds binary data, not text", "is it a text file?"),
        (b"caf\xe9", "note is not UTF-8 text", "iconv -f WINDOWS-1252"),
    ] {
        let mk = sandbox(&["note"]);
        std::fs::write(mk.home().join("note"), bytes).unwrap();
        let ran = mk.run();
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("error: {message}\nhint: ")) && ran.stderr.contains(hint),
            "{ran:?}"
        );
    }
    let long = sandbox(&["-"]).stdin("x ".repeat(110_000)).run();
    assert!(long.code() == 2 && long.stderr.contains("mk verify part1.md part2.md"), "{long:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_key_is_found_before_anything_is_sent() {
    let server = Scripted::answering(stream(COMPLETED)).await;
    for (variable, key, arguments) in [
        ("MK_API_KEY", VERIFY_KEY, &["verify", "The Eiffel Tower is in Paris."][..]),
        ("MK_INFERENCE_KEY", INFERENCE_KEY, &["chat", "x"]),
        ("MK_INFERENCE_KEY", INFERENCE_KEY, &["models"]),
    ] {
        let mistyped = [key.replacen("000", "0O0", 1), key[..key.len() - 1].to_owned()];
        for wrong in mistyped {
            let mk = Mk::new().args(arguments.iter().copied()).env("MK_SERVER", &server.base);
            let ran = mk.env(variable, &wrong).run_beside().await;
            assert_eq!(ran.code(), 4, "{ran:?}");
            assert!(ran.stderr.contains(&format!("key of {variable} is mistyped")), "{ran:?}");
            assert!(
                ran.stderr.contains("hint: copy the whole key again") && !ran.stderr.contains(&wrong),
                "{ran:?}"
            );
        }
    }
    assert!(server.requests().is_empty());
}

#[test]
fn values_without_a_unit_or_a_host_are_completed() {
    for (arguments, meant) in [
        (&["verify", "--sandbox", "--timeout", "5", "x"][..], "hint: did you mean `5s`?"),
        (&["serve", "--sandbox", "--check", "--listen", "8081"], "hint: did you mean `127.0.0.1:8081`?"),
        (&["serve", "--sandbox", "--check", "--listen", ":8081"], "hint: did you mean `127.0.0.1:8081`?"),
        (&["server"], "hint: did you mean `serve`?"),
        (&["help", "verfy"], "hint: did you mean `mk help verify`?"),
        (&["help", "keys", "craete"], "hint: did you mean `create`?"),
    ] {
        let ran = Mk::new().args(arguments.iter().copied()).run();
        assert!(ran.code() == 2 && ran.stderr.contains(meant), "{ran:?}");
    }
    let format = sandbox(&["--format", "x"]).run();
    assert!(format.code() == 2 && !format.stderr.contains("as a value"), "{format:?}");
}

#[test]
fn an_unknown_model_is_named_with_the_one_that_may_be_meant() {
    let ran = Mk::new().args(["chat", "--sandbox", "-m", "sandbox/alfa", "hi"]).run();
    assert_eq!(ran.code(), 9, "{ran:?}");
    assert!(ran.stderr.contains("error: -m: there is no model `sandbox/alfa`\n"), "{ran:?}");
    assert!(ran.stderr.contains("hint: did you mean `sandbox/alpha`?"), "{ran:?}");
    assert!(ran.stderr.contains("`mk models --sandbox` lists"), "{ran:?}");
}
