//! Compares what a terminal shows after incremental drawings with a single complete one.

use proptest::prelude::*;

use super::*;
use crate::cli::line_editor::layout::lay_out;

const WIDTH: u16 = 12;
const HEIGHT: u16 = 5;

/// A terminal with something above the prompt.
fn terminal() -> vt100::Parser {
    let mut terminal = vt100::Parser::new(HEIGHT, WIDTH, 100);
    terminal.process(b"above\r\n");
    terminal
}

fn laid(text: &str, at: usize) -> Layout {
    lay_out(text, at, usize::from(WIDTH), false)
}

fn draw(screen: &mut Screen, terminal: &mut vt100::Parser, text: &str, at: usize) {
    let out = screen.draw(&laid(text, at), usize::from(HEIGHT));
    terminal.process(out.as_bytes());
}

fn contents(terminal: &vt100::Parser) -> String {
    terminal.screen().contents()
}

#[test]
fn a_text_and_its_cursor_are_shown_below_what_was_there() {
    let (mut screen, mut terminal) = (Screen::default(), terminal());
    draw(&mut screen, &mut terminal, "", 0);
    assert_eq!((contents(&terminal).as_str(), terminal.screen().cursor_position()), ("above\n> ", (1, 2)));
    draw(&mut screen, &mut terminal, "0123456789ab", 12);
    assert_eq!(contents(&terminal), "above\n> 0123456789ab", "rows that the terminal itself broke");
    draw(&mut screen, &mut terminal, "0123456789ab", 3);
    assert_eq!(terminal.screen().cursor_position(), (1, 5));
    draw(&mut screen, &mut terminal, "012X3456789ab", 4);
    assert_eq!(contents(&terminal), "above\n> 012X3456789ab");
    draw(&mut screen, &mut terminal, "x", 1);
    assert_eq!(contents(&terminal), "above\n> x", "nothing is left of more rows");
}

#[test]
fn unchanged_rows_are_not_rewritten() {
    let mut screen = Screen::default();
    screen.draw(&laid("one\ntwo", 7), 5);
    assert_eq!(screen.draw(&laid("one\ntwo", 4), 5), "\u{1b}[3G");
    assert_eq!(screen.draw(&laid("one\ntwo", 0), 5), "\u{1b}[1A\u{1b}[3G");
    assert_eq!(screen.draw(&laid("one\ntwx", 7), 5), "\u{1b}[1B\r  twx\u{1b}[J\u{1b}[6G");
}

#[test]
fn further_output_begins_below_the_text() {
    let (mut screen, mut terminal) = (Screen::default(), terminal());
    draw(&mut screen, &mut terminal, "0123456789ab", 1);
    terminal.process(screen.finish(&laid("0123456789ab", 12), "^C").as_bytes());
    terminal.process(b"next");
    assert_eq!(contents(&terminal), "above\n> 0123456789ab^C\nnext");
}

#[test]
fn a_text_larger_than_the_screen_is_shown_in_part_and_in_full_at_the_end() {
    let (mut screen, mut terminal) = (Screen::default(), terminal());
    let text = "1\n2\n3\n4\n5\n6\n7";
    draw(&mut screen, &mut terminal, text, text.len());
    assert_eq!(contents(&terminal), "  3\n  4\n  5\n  6\n  7");
    draw(&mut screen, &mut terminal, text, 0);
    assert_eq!(contents(&terminal), "> 1\n  2\n  3\n  4\n  5");
    terminal.process(screen.finish(&laid(text, text.len()), "").as_bytes());
    assert_eq!(contents(&terminal), "  4\n  5\n  6\n  7");
    terminal.screen_mut().set_scrollback(3);
    assert_eq!(contents(&terminal), "> 1\n  2\n  3\n  4\n  5", "once");
}

proptest! {
    #[test]
    fn drawings_add_up(texts in proptest::collection::vec(("[a-c東é\n ]{0,40}", 0usize..60), 1..8)) {
        let (mut screen, mut one_by_one) = (Screen::default(), terminal());
        let mut last = Layout { rows: Vec::new(), row: 0, column: 0 };
        for (text, at) in &texts {
            last = laid(text, *at);
            one_by_one.process(screen.draw(&last, usize::from(HEIGHT)).as_bytes());
        }
        let shown = &last.rows[screen.first_visible..];
        let column = u16::try_from(last.column).unwrap();
        prop_assert_eq!(one_by_one.screen().cursor_position().1, column);
        let cells = one_by_one.screen().cursor_position().0;
        let above = usize::from(cells) - screen.row;
        for (at, row) in shown.iter().take(usize::from(HEIGHT)).enumerate() {
            let line = one_by_one.screen().rows(0, WIDTH).nth(above + at).unwrap();
            prop_assert_eq!(line.trim_end(), row.text.trim_end());
        }
        prop_assert!(above + shown.len().min(usize::from(HEIGHT)) <= usize::from(HEIGHT));
        let behind = one_by_one.screen().rows(0, WIDTH).skip(above + shown.len());
        prop_assert!(behind.into_iter().all(|line| line.is_empty()), "nothing is left below");
    }
}
