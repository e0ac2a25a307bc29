//! `mk verify` on a pseudo-terminal.

use unicode_width::UnicodeWidthStr;

use crate::support::mk::Mk;
use crate::support::pty::{self, Person, Shown};

const STATEMENT: &str = "The Eiffel Tower is in Paris. The capital of Australia is Sydney. \
                         The Nile is the longest river in the world. It is the most beautiful river.";

fn verify(variables: &[(&str, &str)], arguments: &[&str], columns: u16) -> Shown {
    let mut mk = Mk::new().args(["verify", "--sandbox"]).args(arguments.iter().copied());
    for (name, value) in variables {
        mk = mk.env(name, value);
    }
    pty::run(&mk, columns, 40)
}

#[test]
fn a_result_shows_symbols_words_and_dissent() {
    let shown = verify(&[], &[STATEMENT], 80).last;
    for words in
        ["✓", "TRUE", "✗", "FALSE", "~", "NO CONSENSUS", "3/3", "Q: ", "3 claims", "skipped (opinion)"]
    {
        assert!(shown.contains(words), "{words:?} is not in\n{shown}");
    }
    assert!(shown.to_uppercase().contains("SANDBOX"), "{shown}");
}

#[test]
fn results_fit_narrow_and_wide_terminals() {
    for columns in [40, 44, 80, 120] {
        let shown = verify(&[], &[STATEMENT], columns);
        // Lines that the terminal itself had to wrap are one line here.
        for line in shown.last.lines() {
            assert!(line.width() <= usize::from(columns), "{columns}: {line:?}");
        }
        assert!(shown.last.contains("NO CONSENSUS"), "{}", shown.last);
    }
}

#[test]
fn progress_is_shown_while_working_and_cleared_at_the_end() {
    let shown = verify(&[], &["The Eiffel Tower is in Paris [sandbox:slow]."], 80);
    assert!(shown.frames.iter().any(|frame| frame.contains("asking models")), "{:?}", shown.frames);
    assert!(!shown.last.contains("asking models"), "{}", shown.last);
}

#[test]
fn no_color_disables_colours_but_not_progress() {
    let shown = verify(&[("NO_COLOR", "1")], &["The Eiffel Tower is in Paris [sandbox:slow]."], 80);
    assert!(shown.frames.iter().any(|frame| frame.contains("asking models")));
    for colour in 30..=37 {
        assert!(!shown.raw.contains(&format!("\u{1b}[{colour}m")), "{:?}", shown.raw);
    }
}

#[test]
fn no_color_keeps_bold_in_help() {
    let help = Mk::new().args(["verify", "--help"]);
    let raw = pty::run(&help.env("NO_COLOR", "1"), 80, 24).raw;
    assert!(raw.contains("\u{1b}[1m"), "{raw:?}");
    assert!((30..=37).all(|colour| !raw.contains(&format!("\u{1b}[{colour}m"))), "{raw:?}");
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let mk = Mk::new().args(["verify", "--sandbox", STATEMENT]);
    let raw = pty::run(&mk.env("TERM", "dumb"), 80, 24).raw;
    assert!(raw.contains("NO CONSENSUS") && !raw.contains('\u{1b}'), "{raw:?}");
}

#[test]
fn only_ascii_is_printed_outside_utf_8_locales() {
    let shown = verify(&[("LANG", "C"), ("LC_ALL", "C")], &[STATEMENT], 80);
    assert!(shown.raw.is_ascii(), "{}", shown.raw);
    assert!(shown.last.contains("x  2  FALSE"), "{}", shown.last);
}

#[test]
fn partial_results_are_shown_before_a_timeout_error() {
    let stalls = "The capital of Australia is Sydney [sandbox:stall].";
    let text = format!("{stalls} The Eiffel Tower is in Paris.");
    let list = "✓  2  TRUE  3/3";
    for (view, columns, found) in
        [("list", 44, list), ("list", 80, list), ("table", 44, list), ("table", 80, " ✓   2   TRUE ")]
    {
        let shown = verify(&[], &["--view", view, "--timeout", "3s", &text], columns).last;
        let (before, error) = shown.split_once("error: no result within 3 s").unwrap();
        assert!(before.contains(found) && before.contains("Eiffel"), "{shown}");
        assert!(before.trim_end().ends_with("\nonly 1 of 2 claims was verified"), "{shown}");
        assert!(!before.contains("Sydney") && error.contains("hint: allow more"), "{shown}");
    }
    let nothing = verify(&[], &["--timeout", "3s", stalls], 80).last;
    assert!(nothing.contains("error: ") && !nothing.contains("only 0"), "{nothing}");
    let piped = Mk::new().args(["verify", "--sandbox", "--timeout", "3s", &text]).run();
    assert_eq!(piped.code(), 6, "{piped:?}");
    assert_eq!(piped.stdout, "2\tTRUE\tTTT\tThe Eiffel Tower is in Paris.\n");
}

#[test]
fn a_table_has_one_row_per_claim() {
    let shown = verify(&[], &["--view", "table", STATEMENT], 100).last;
    assert!(shown.contains("TRUE") && shown.contains("NO CONSENSUS"), "{shown}");
    let summary = shown.trim_end().lines().last().unwrap();
    assert!(summary.starts_with("3 claims: ✓ 1 true, ✗ 1 false, ~ 1 no consensus · 3 models"), "{shown}");
    let user = Mk::new();
    assert_eq!(user.clone().args(["apps", "create", "website"]).run().code(), 0);
    let apps = pty::run(&user.args(["apps", "list"]), 80, 24).last;
    assert!(apps.contains("default") && apps.contains("website"), "{apps}");
}

#[test]
fn a_resize_leaves_no_debris_and_uses_the_new_width() {
    let text =
        "The Eiffel Tower is in Paris [sandbox:slow]. The capital of Australia is Canberra [sandbox:slow].";
    let mk = Mk::new().after("echo above && echo $$ > process").args(["verify", "--sandbox", text]);
    // The emulator of these tests cuts lines for which it gets too narrow, as xterm does.
    let mk = mk.env("XTERM_VERSION", "x");
    let mut person = Person::at(&mk.command());
    person.until_on_screen("asking models");
    let process = std::fs::read_to_string(mk.home().join("process")).unwrap();
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill").args([name, process.trim()]).status().unwrap();
        assert!(sent.success());
    };
    // Stopped meanwhile, so that no drawing for the old width is on its way.
    signal("-STOP");
    person.until_quiet();
    person.resize(44, 24);
    signal("-CONT");
    person.until_screen("rows for the new width", |screen| screen.contains('…'));
    let screen = person.screen();
    assert!(screen.starts_with("above\n"), "{screen}");
    assert_eq!(screen.matches("Verifying claims").count(), 1, "{screen}");
    assert_eq!(screen.lines().count(), 5, "banner, header and two rows: {screen}");
    assert!(screen.lines().all(|line| line.width() <= 44), "{screen}");
    person.resize(70, 24);
    person
        .until_screen("rows for the wider one", |screen| !screen.contains('…') || screen.contains("TRUE  "));
    let (_, shown) = person.end();
    assert!(shown.contains("2 claims: "), "{shown}");
}

#[test]
fn several_statements_make_one_table_with_what_failed_and_totals_below() {
    let mk = Mk::new().args(["verify", "--sandbox", "--lines", "facts.txt", "--view", "table"]);
    let lines = "The Eiffel Tower is in Paris.\nThe capital of Australia is Sydney.\nWhat a lovely day!\n";
    std::fs::write(mk.home().join("facts.txt"), lines).unwrap();
    let shown = pty::run(&mk, 100, 40).last;
    assert_eq!(shown.matches("verdict").count(), 1, "one header: {shown}");
    let rows: Vec<&str> =
        shown.lines().filter(|line| line.contains("TRUE") || line.contains("FALSE")).collect();
    assert!(rows[0].contains(" 1 ") && rows[0].contains("TTT") && rows[1].contains(" 2 "), "{shown}");
    assert!(shown.contains("Canberra") && shown.contains("nothing to verify"), "{shown}");
    assert!(!shown.contains("line 2  FALSE"), "all of it is on the screen, and not said twice: {shown}");
    let totals = "3 statements: 2 verified, 1 with nothing to verify · 2 of 3 sentences checked, 1 skipped";
    assert!(shown.contains(totals) && shown.contains("\n2 claims: ✓ 1 true, ✗ 1 false"), "{shown}");

    let narrow = pty::run(&mk, 44, 60).last;
    assert!(!narrow.contains("verdict") && narrow.contains("3 statements: 2 verified"), "{narrow}");
}
