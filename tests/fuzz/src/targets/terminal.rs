//! Untrusted text on its way to a terminal: nothing remains on which a terminal would act.

use crate::input::{is_harmless, pieces};
use mk::cli::terminal::sanitize::{json, line, lines};

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let safe = line(&text);
    assert!(is_harmless(&safe), "{safe:?}");
    assert_eq!(line(&safe), safe, "once is enough");
    if is_harmless(&text) && !text.contains(['\u{61c}', '\u{2028}', '\u{2029}']) {
        assert_eq!(safe, text, "harmless text is left alone");
    }

    let safe = lines(&text);
    assert!(safe.split(['\n', '\t']).all(is_harmless), "{safe:?}");
    let mut whole = String::new();
    // Split between characters: text arrives in pieces, but characters are never split.
    let mut rest = text.as_ref();
    for piece in pieces(text.as_bytes()) {
        let behind =
            rest.char_indices().map(|(at, _)| at).find(|at| *at >= piece.len()).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(behind);
        whole.push_str(&lines(head));
        rest = tail;
    }
    whole.push_str(&lines(rest));
    assert_eq!(whole, safe, "in pieces");

    for written in [serde_json::to_string(&text), serde_json::to_string_pretty(&[&text])] {
        let written = written.expect("a text is JSON");
        let safe = json(&written);
        assert!(safe.split('\n').all(is_harmless), "{safe:?}");
        let (read, meant) = (serde_json::from_str(&safe), serde_json::from_str(&written));
        assert_eq!(read.ok() as Option<serde_json::Value>, meant.ok(), "the value has changed");
    }
}
