//! What results look like at 80 and at 44 columns.

use serde_json::json;

use super::super::votes::tests::claim;
use super::*;
use crate::cli::terminal::term::{ASCII, Paint};

fn result() -> VerifyResponse {
    let mut paris =
        claim("TRUE", "A", &[("openai/gpt-x", "A"), ("anthropic/claude-y", "A"), ("google/gemini-z", "A")]);
    paris.claim = "The Eiffel Tower is in Paris.".to_owned();
    let year =
        claim("FALSE", "B", &[("openai/gpt-x", "B"), ("anthropic/claude-y", "B"), ("google/gemini-z", "A")]);
    let mut visits = claim(
        "NO CONSENSUS",
        "",
        &[("openai/gpt-x", "A"), ("anthropic/claude-y", "D"), ("google/gemini-z", "E")],
    );
    visits.claim = "It is the most visited paid monument in the world.".to_owned();
    let mut levels = claim(
        "TRUE",
        "A",
        &[("openai/gpt-x", "A"), ("anthropic/claude-y", "A"), ("google/gemini-z", "!timeout")],
    );
    levels.claim =
        "Its three visitor levels have restaurants on the first and the second of them.".to_owned();
    serde_json::from_value(json!({
        "requestId": "ver_1",
        "original_fact": "…",
        "results": [paris, year, visits, levels],
        "timestamp": "2026-11-20T19:26:00.123Z",
        "tokenUsage": {
            "promptTokens": 3000, "completionTokens": 120, "totalTokens": 3120,
            "modelUsage": [
                { "model": "openai/gpt-x", "promptTokens": 3000, "completionTokens": 120,
                  "totalTokens": 3120, "cost_usd": 0.0031 },
            ],
        },
        "minRequired": 2,
        "audited": true,
        "complete": true,
        "skipped": [{ "text": "It is the most beautiful tower.", "reason": "opinion" }],
    }))
    .unwrap()
}

fn page(terminal: &Terminal) -> String {
    let page = Page { terminal, explain: false, places: None };
    let lines = page.result(&result(), Duration::from_millis(2400));
    assert!(lines.iter().all(|line| visible_cells(line) < terminal.width), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.ends_with(' ')), "{lines:#?}");
    lines.join("\n")
}

#[test]
fn at_80_columns() {
    let expected = "\
✓  1  TRUE  3/3                                                           T T T
      The Eiffel Tower is in Paris.
✗  2  FALSE  2/3                                                          F F T
      It was completed in 1925.
      Q: In which year was the Eiffel Tower completed?
      models say 1889: gpt-x, claude-y; as claimed: gemini-z
~  3  NO CONSENSUS  1 true, 1 false, 1 undecided                          T F U
      It is the most visited paid monument in the world.
      as claimed: gpt-x; none of these: claude-y; cannot tell: gemini-z
✓  4  TRUE  2/2 (1 no answer: gemini-z, timeout)                          T T -
      Its three visitor levels have restaurants on the first and the second of
      them.
!  skipped (opinion): It is the most beautiful tower.

4 claims: ✓ 2 true, ✗ 1 false, ~ 1 no consensus · 3 models · 2.4 s
3,120 tokens · $0.0031";
    assert_eq!(page(&Terminal::test(80, Paint::Plain)), expected);
}

#[test]
fn at_44_columns() {
    let expected = "\
✓  1  TRUE  3/3                       T T T
      The Eiffel Tower is in Paris.
✗  2  FALSE  2/3                      F F T
      It was completed in 1925.
      Q: In which year was the Eiffel
         Tower completed?
      models say 1889: gpt-x, claude-y;
        as claimed: gemini-z
~  3  NO CONSENSUS                    T F U
      1 true, 1 false, 1 undecided
      It is the most visited paid monument
      in the world.
      as claimed: gpt-x; none of these:
        claude-y; cannot tell: gemini-z
✓  4  TRUE  2/2                       T T -
      (1 no answer: gemini-z, timeout)
      Its three visitor levels have
      restaurants on the first and the
      second of them.
!  skipped (opinion): It is the most
   beautiful tower.

4 claims: ✓ 2 true, ✗ 1 false,
~ 1 no consensus · 3 models · 2.4 s
3,120 tokens · $0.0031";
    assert_eq!(page(&Terminal::test(44, Paint::Plain)), expected);
}

#[test]
fn at_100_columns_the_summary_is_one_line() {
    let page = page(&Terminal::test(100, Paint::Plain));
    let last = page.lines().last().unwrap();
    let expected =
        "4 claims: ✓ 2 true, ✗ 1 false, ~ 1 no consensus · 3 models · 2.4 s · 3,120 tokens · $0.0031";
    assert_eq!(last, expected);
}

#[test]
fn colour_is_on_symbols_only_and_moves_nothing() {
    let painted = page(&Terminal::test(80, Paint::Full));
    assert!(painted.starts_with("\u{1b}[36m✓\u{1b}[0m  1  TRUE"));
    assert!(painted.contains("\n\u{1b}[1;31m✗\u{1b}[0m  2  FALSE"));
    assert!(painted.contains("\n\u{1b}[33m~\u{1b}[0m  3  NO CONSENSUS"));
    let mut bare = painted;
    for code in ["\u{1b}[36m", "\u{1b}[1;31m", "\u{1b}[33m", "\u{1b}[0m"] {
        bare = bare.replace(code, "");
    }
    assert_eq!(bare, page(&Terminal::test(80, Paint::Plain)));
}

#[test]
fn ascii_where_the_locale_allows_nothing_else() {
    let terminal = Terminal { symbols: &ASCII, ..Terminal::test(80, Paint::Plain) };
    let page = page(&terminal);
    assert!(page.is_ascii(), "{page}");
    assert!(page.starts_with("+  1  TRUE  3/3 "));
}

#[test]
fn a_unanimous_correction_is_shown_without_names() {
    let agreed = claim("FALSE", "B", &[("p/a", "B"), ("p/b", "B")]);
    assert_eq!(details(&agreed).as_deref(), Some("models say 1889"));
    let all_true = claim("TRUE", "A", &[("p/a", "A"), ("p/b", "A")]);
    assert_eq!(details(&all_true), None);
}

#[test]
fn text_from_models_cannot_reach_the_terminal() {
    let mut hostile = result();
    hostile.results[1].claim = "\u{1b}[2Jgone\u{202e}".to_owned();
    hostile.results[1].original_options.insert("B".to_owned(), json!("\u{7}bell"));
    hostile.results[1].model_answers[0].model = "p/\u{1b}]0;title\u{7}".to_owned();
    hostile.results[3].model_errors[0].code = "\u{9b}31m".to_owned();
    hostile.skipped[0].text = "line\nbreak".to_owned();
    let terminal = Terminal::test(80, Paint::Plain);
    let lines = Page { terminal: &terminal, explain: false, places: None }.result(&hostile, Duration::ZERO);
    assert!(lines.iter().all(|line| !line.chars().any(char::is_control)), "{lines:#?}");
}

#[test]
fn reasons_are_shown_when_asked_for() {
    let mut explained = claim("TRUE", "A", &[("p/a", "A"), ("p/b", "E")]);
    explained.model_answers[0].reason = Some("It is well known.".to_owned());
    explained.model_answers[1].reason = Some("No source.".to_owned());
    let terminal = Terminal::test(80, Paint::Plain);
    let lines = Page { terminal: &terminal, explain: true, places: None }.claim(1, 1, &explained);
    assert!(lines.contains(&"      T a: It is well known.".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"      U b: No source.".to_owned()), "{lines:#?}");
}

#[test]
fn what_was_known_is_said_to_be() {
    let mut known = result();
    known.skipped.clear();
    known.results.truncate(2);
    known.results[0].cached = true;
    let shown = |result: &VerifyResponse, width: usize| {
        let terminal = Terminal::test(width, Paint::Plain);
        let page = Page { terminal: &terminal, explain: false, places: None };
        page.result(result, Duration::from_millis(30)).join("\n")
    };
    let some = shown(&known, 80);
    assert!(some.starts_with("✓  1  TRUE  3/3 (cached)    "), "{some}");
    assert!(!some.contains("2/3 (cached)") && some.contains(" · 1 of 2 cached · 3 models · "), "{some}");
    known.results[1].cached = true;
    known.cached = true;
    known.token_usage = serde_json::from_value(json!({
        "promptTokens": 0, "completionTokens": 0, "totalTokens": 0, "modelUsage": [],
    }))
    .unwrap();
    assert!(
        shown(&known, 80).ends_with("\n2 claims: ✓ 1 true, ✗ 1 false · cached · 30 ms"),
        "{}",
        shown(&known, 80)
    );
    known.results.clear();
    assert!(shown(&known, 44).ends_with("nothing to verify · cached · 30 ms"), "{}", shown(&known, 44));
}
