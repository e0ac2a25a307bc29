//! The decoder, by examples and properties.

use proptest::prelude::*;

use super::*;

fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut decoder = Decoder::default();
    let mut keys = Vec::new();
    for &byte in bytes {
        decoder.take(byte, |key| keys.push(key));
    }
    keys
}

#[test]
fn characters_arrive_whole_and_invalid_bytes_are_marked() {
    let of = |text: &str| text.chars().map(Key::Char).collect::<Vec<_>>();
    assert_eq!(keys("aé東😀\t".as_bytes()), of("aé東😀\t"));
    assert_eq!(keys(b"\xffa\xe6\x9db\xc3"), of("\u{fffd}a\u{fffd}b"));
    assert_eq!(keys("\u{85}a".as_bytes()), of("a"), "C1 controls are no characters");
}

#[test]
fn terminals_have_several_sequences_for_a_key() {
    let same: [(&[&[u8]], Key); 14] = [
        (&[b"\x1b[A", b"\x1bOA"], Key::Up),
        (&[b"\x1b[B", b"\x1bOB"], Key::Down),
        (&[b"\x1b[C", b"\x1bOC", b"\x06", b"\x1b[1;2C"], Key::Right),
        (&[b"\x1b[D", b"\x1bOD", b"\x02"], Key::Left),
        (&[b"\x1b[1;5C", b"\x1b[1;3C", b"\x1bf", b"\x1bOc"], Key::WordRight),
        (&[b"\x1b[1;5D", b"\x1b[1;3D", b"\x1bb", b"\x1bOd"], Key::WordLeft),
        (&[b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"\x1b[7~", b"\x01"], Key::Home),
        (&[b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"\x1b[8~", b"\x05"], Key::End),
        (&[b"\x1b[3~"], Key::Delete),
        (&[b"\x7f", b"\x08"], Key::Backspace),
        (&[b"\x1b\x7f", b"\x1b\x08"], Key::DeleteWordLeft),
        (&[b"\x1bd", b"\x1b[3;5~"], Key::DeleteWordRight),
        (&[b"\r", b"\n", b"\x1bOM"], Key::Enter),
        (&[b"\x1b\r", b"\x1b\n"], Key::NewLine),
    ];
    for (all, key) in same {
        for bytes in all {
            assert_eq!(keys(bytes), std::slice::from_ref(&key), "{bytes:?}");
        }
    }
    assert_eq!(
        keys(b"\x0b\x0c\x0e\x10\x15\x17\x19\x03\x04"),
        [
            Key::DeleteToEnd,
            Key::Clear,
            Key::HistoryForward,
            Key::HistoryBack,
            Key::DeleteToStart,
            Key::DeleteBlankLeft,
            Key::Yank,
            Key::Interrupt,
            Key::QuitOrDelete,
        ]
    );
}

#[test]
fn unknown_keys_leave_nothing() {
    for bytes in
        [&b"\x1b[15~"[..], b"\x1b[[A", b"\x1bOP", b"\x1b[?1;2c", b"\x1b[97;5u", b"\x1bx", b"\x00\x1c"]
    {
        assert_eq!(keys(&[bytes, b"a"].concat()), [Key::Char('a')], "{bytes:?}");
    }
    assert_eq!(keys("\u{1b}é".as_bytes()), [Key::Char('é')]);
}

#[test]
fn ctrl_c_is_recognised_within_any_sequence() {
    for begun in [&b"\x1b"[..], b"\x1b[", b"\x1b[1;", b"\x1bO", b"\x1b[[", b"\xe6", b"\xe6\x9d"] {
        assert_eq!(keys(&[begun, b"\x03"].concat()).last(), Some(&Key::Interrupt), "{begun:?}");
        assert_eq!(keys(&[begun, b"\x1b[A"].concat()).last(), Some(&Key::Up), "{begun:?}");
    }
}

#[test]
fn a_pasted_text_is_one_key() {
    let pasted = Key::Paste("one\ntwo".to_owned());
    assert_eq!(
        keys(b"a\x1b[200~one\rtwo\x1b[201~\r\x1b[201~"),
        [Key::Char('a'), pasted, Key::Enter],
        "an end without a beginning is nothing"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_survived_and_text_is_kept(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut found = keys(&bytes);
        found.retain(|key| matches!(key, Key::Char(c) if c.is_control() && *c != '\t'));
        prop_assert_eq!(found, []);
    }

    #[test]
    fn printable_text_comes_out_unchanged(text in "[a-zé東😀 ]{0,40}") {
        let found: String = keys(text.as_bytes())
            .into_iter()
            .map(|key| if let Key::Char(c) = key { c } else { '!' })
            .collect();
        prop_assert_eq!(found, text);
    }
}
