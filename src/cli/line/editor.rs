//! Applies keys to the text being edited.

use super::buffer::Buffer;
use super::history::History;
use super::keys::Key;

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The text or the cursor may have changed.
    Edited,
    /// There was nothing to do, or no room.
    Refused,
    /// The pasted text was too long.
    Oversized,
    /// The screen must be cleared.
    Clear,
    /// The text is discarded, and a new one begins.
    Discarded(String),
    /// The text is submitted.
    Sent(String),
    /// The person quits with Ctrl-C.
    Interrupted,
    /// The person quits with Ctrl-D.
    Ended,
}

/// The text being edited, and those submitted before.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    buffer: Buffer,
    history: History,
    /// The text last deleted, other than by single characters.
    killed: String,
}

impl Editor {
    /// The text being edited.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Applies a key.
    pub(crate) fn press(&mut self, key: Key) -> Step {
        let buffer = &mut self.buffer;
        match key {
            Key::Char(c) => return inserted(buffer.insert(c.encode_utf8(&mut [0; 4]))),
            Key::Paste(text) => return if buffer.insert(&text) { Step::Edited } else { Step::Oversized },
            Key::Oversized => return Step::Oversized,
            Key::NewLine => return inserted(buffer.insert("\n")),
            Key::Yank => return inserted(!self.killed.is_empty() && buffer.insert(&self.killed)),
            Key::Left => buffer.move_to(buffer.left()),
            Key::Right => buffer.move_to(buffer.right()),
            Key::WordLeft => buffer.move_to(buffer.word_left()),
            Key::WordRight => buffer.move_to(buffer.word_right()),
            Key::Home => buffer.move_to(buffer.line_start()),
            Key::End => buffer.move_to(buffer.line_end()),
            Key::Up => match buffer.up() {
                Some(at) => buffer.move_to(at),
                None => return self.earlier(),
            },
            Key::Down => match buffer.down() {
                Some(at) => buffer.move_to(at),
                None => return self.later(),
            },
            Key::Earlier => return self.earlier(),
            Key::Later => return self.later(),
            Key::Backspace => drop(buffer.delete(buffer.left())),
            Key::DeleteBlankLeft => return self.kill(Buffer::blank_left),
            Key::DeleteWordLeft => return self.kill(Buffer::word_left),
            Key::DeleteWordRight => return self.kill(Buffer::word_right),
            Key::DeleteToStart => return self.kill(Buffer::line_start),
            Key::DeleteToEnd => return self.kill(Buffer::line_end),
            Key::Clear => return Step::Clear,
            Key::Enter => return self.send(),
            Key::Interrupt if buffer.is_empty() => return Step::Interrupted,
            Key::Interrupt => {
                self.history.leave();
                return Step::Discarded(self.take());
            }
            Key::EndOrDelete if buffer.is_empty() => return Step::Ended,
            Key::Delete | Key::EndOrDelete => drop(buffer.delete(buffer.right())),
        }
        Step::Edited
    }

    fn send(&mut self) -> Step {
        let text = self.take();
        self.history.add(&text);
        Step::Sent(text)
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.buffer).into_text()
    }

    fn earlier(&mut self) -> Step {
        let text = self.history.earlier(self.buffer.text());
        self.show(text)
    }

    fn later(&mut self) -> Step {
        let text = self.history.later();
        self.show(text)
    }

    fn show(&mut self, text: Option<String>) -> Step {
        let Some(text) = text else { return Step::Refused };
        self.buffer = Buffer::holding(text);
        Step::Edited
    }

    fn kill(&mut self, to: impl Fn(&Buffer) -> usize) -> Step {
        let killed = self.buffer.delete(to(&self.buffer));
        if !killed.is_empty() {
            self.killed = killed;
        }
        Step::Edited
    }
}

fn inserted(is_done: bool) -> Step {
    if is_done { Step::Edited } else { Step::Refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, keys: &[Key]) -> Step {
        keys.iter().fold(Step::Edited, |_, key| editor.press(key.clone()))
    }

    fn typed(editor: &mut Editor, text: &str) {
        for c in text.chars() {
            assert_eq!(editor.press(Key::Char(c)), Step::Edited);
        }
    }

    fn sent(editor: &mut Editor) -> String {
        let Step::Sent(text) = editor.press(Key::Enter) else { panic!("not sent") };
        text
    }

    #[test]
    fn a_text_is_edited_in_its_middle() {
        let mut editor = Editor::default();
        typed(&mut editor, "helo");
        press(&mut editor, &[Key::Left]);
        typed(&mut editor, "l");
        press(&mut editor, &[Key::Home]);
        typed(&mut editor, "¡");
        press(&mut editor, &[Key::End]);
        typed(&mut editor, "?!");
        press(&mut editor, &[Key::Backspace, Key::Home, Key::Delete]);
        assert_eq!(sent(&mut editor), "hello?");
        assert_eq!(sent(&mut editor), "", "the next one begins empty");
    }

    #[test]
    fn what_was_deleted_can_be_put_back() {
        let mut editor = Editor::default();
        assert_eq!(editor.press(Key::Yank), Step::Refused);
        typed(&mut editor, "one two three");
        press(&mut editor, &[Key::DeleteBlankLeft, Key::WordLeft, Key::Yank]);
        assert_eq!(editor.buffer().text(), "one threetwo ");
        press(&mut editor, &[Key::DeleteToEnd, Key::DeleteToStart]);
        assert!(editor.buffer().is_empty());
        press(&mut editor, &[Key::Yank]);
        assert_eq!(sent(&mut editor), "one three");
        typed(&mut editor, "foo-bar baz");
        press(&mut editor, &[Key::DeleteWordLeft, Key::DeleteWordLeft, Key::Home, Key::DeleteWordRight]);
        assert_eq!(sent(&mut editor), "-");
    }

    #[test]
    fn sent_texts_are_recalled_and_a_draft_is_kept() {
        let mut editor = Editor::default();
        for text in ["first", "second"] {
            typed(&mut editor, text);
            sent(&mut editor);
        }
        typed(&mut editor, "draft");
        press(&mut editor, &[Key::Up, Key::Earlier]);
        assert_eq!(editor.buffer().text(), "first");
        assert_eq!(editor.press(Key::Up), Step::Refused);
        press(&mut editor, &[Key::Down, Key::Later]);
        assert_eq!(editor.buffer().text(), "draft");
        assert_eq!(editor.press(Key::Down), Step::Refused);
    }

    #[test]
    fn in_a_text_of_several_lines_up_and_down_stay_in_it_first() {
        let mut editor = Editor::default();
        typed(&mut editor, "before");
        sent(&mut editor);
        assert_eq!(editor.press(Key::Paste("one\ntwo".to_owned())), Step::Edited);
        press(&mut editor, &[Key::NewLine, Key::Up, Key::Up]);
        assert_eq!(editor.buffer().at(), 0);
        press(&mut editor, &[Key::Up]);
        assert_eq!(editor.buffer().text(), "before");
        press(&mut editor, &[Key::Down]);
        assert_eq!(sent(&mut editor), "one\ntwo\n");
    }

    #[test]
    fn ctrl_c_and_ctrl_d_ask_whether_there_is_a_text() {
        let mut editor = Editor::default();
        typed(&mut editor, "ab");
        press(&mut editor, &[Key::Left]);
        assert_eq!(editor.press(Key::EndOrDelete), Step::Edited);
        assert_eq!(editor.buffer().text(), "a");
        assert_eq!(editor.press(Key::Interrupt), Step::Discarded("a".to_owned()));
        assert_eq!(
            (editor.press(Key::Interrupt), editor.press(Key::EndOrDelete)),
            (Step::Interrupted, Step::Ended)
        );
    }

    #[test]
    fn a_text_has_a_largest_size() {
        let mut editor = Editor::default();
        let long = "x".repeat(usize::try_from(crate::cli::text::MAX_BYTES).unwrap());
        assert_eq!(editor.press(Key::Paste(long)), Step::Edited);
        assert_eq!(editor.press(Key::Char('y')), Step::Refused);
        assert_eq!(editor.press(Key::Paste("y".to_owned())), Step::Oversized);
        assert_eq!(editor.press(Key::Oversized), Step::Oversized);
    }
}
