//! Applies keys to the text being edited.

use super::buffer::Buffer;
use super::history::History;
use super::keys::Key;

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
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
    Submitted(String),
    /// The person quits with Ctrl-C.
    Interrupted,
    /// The person quits with Ctrl-D.
    Quit,
}

/// The text being edited, and those submitted before.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    buffer: Buffer,
    history: History,
    /// The text last deleted, other than by single characters.
    last_deleted: String,
}

impl Editor {
    /// The text being edited.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Applies a key.
    pub(crate) fn press(&mut self, key: Key) -> Effect {
        let buffer = &mut self.buffer;
        match key {
            Key::Char(c) => return inserted(buffer.insert(c.encode_utf8(&mut [0; 4]))),
            Key::Paste(text) => return if buffer.insert(&text) { Effect::Edited } else { Effect::Oversized },
            Key::Oversized => return Effect::Oversized,
            Key::NewLine => return inserted(buffer.insert("\n")),
            Key::Yank => return inserted(!self.last_deleted.is_empty() && buffer.insert(&self.last_deleted)),
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
            Key::HistoryBack => return self.earlier(),
            Key::HistoryForward => return self.later(),
            Key::Backspace => drop(buffer.delete(buffer.left())),
            Key::DeleteBlankLeft => return self.kill(Buffer::blank_left),
            Key::DeleteWordLeft => return self.kill(Buffer::word_left),
            Key::DeleteWordRight => return self.kill(Buffer::word_right),
            Key::DeleteToStart => return self.kill(Buffer::line_start),
            Key::DeleteToEnd => return self.kill(Buffer::line_end),
            Key::Clear => return Effect::Clear,
            Key::Enter => return self.send(),
            Key::Interrupt if buffer.is_empty() => return Effect::Interrupted,
            Key::Interrupt => {
                self.history.reset();
                return Effect::Discarded(self.take());
            }
            Key::QuitOrDelete if buffer.is_empty() => return Effect::Quit,
            Key::Delete | Key::QuitOrDelete => drop(buffer.delete(buffer.right())),
        }
        Effect::Edited
    }

    fn send(&mut self) -> Effect {
        let text = self.take();
        self.history.add(&text);
        Effect::Submitted(text)
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.buffer).into_text()
    }

    fn earlier(&mut self) -> Effect {
        let text = self.history.earlier(self.buffer.text());
        self.replace_text(text)
    }

    fn later(&mut self) -> Effect {
        let text = self.history.later();
        self.replace_text(text)
    }

    fn replace_text(&mut self, text: Option<String>) -> Effect {
        let Some(text) = text else { return Effect::Refused };
        self.buffer = Buffer::with_cursor_at_end(text);
        Effect::Edited
    }

    fn kill(&mut self, to: impl Fn(&Buffer) -> usize) -> Effect {
        let last_deleted = self.buffer.delete(to(&self.buffer));
        if !last_deleted.is_empty() {
            self.last_deleted = last_deleted;
        }
        Effect::Edited
    }
}

fn inserted(is_done: bool) -> Effect {
    if is_done { Effect::Edited } else { Effect::Refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, keys: &[Key]) -> Effect {
        keys.iter().fold(Effect::Edited, |_, key| editor.press(key.clone()))
    }

    fn typed(editor: &mut Editor, text: &str) {
        for c in text.chars() {
            assert_eq!(editor.press(Key::Char(c)), Effect::Edited);
        }
    }

    fn sent(editor: &mut Editor) -> String {
        let Effect::Submitted(text) = editor.press(Key::Enter) else { panic!("not sent") };
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
    fn deleted_text_can_be_put_back() {
        let mut editor = Editor::default();
        assert_eq!(editor.press(Key::Yank), Effect::Refused);
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
        press(&mut editor, &[Key::Up, Key::HistoryBack]);
        assert_eq!(editor.buffer().text(), "first");
        assert_eq!(editor.press(Key::Up), Effect::Refused);
        press(&mut editor, &[Key::Down, Key::HistoryForward]);
        assert_eq!(editor.buffer().text(), "draft");
        assert_eq!(editor.press(Key::Down), Effect::Refused);
    }

    #[test]
    fn up_and_down_move_within_several_lines_first() {
        let mut editor = Editor::default();
        typed(&mut editor, "before");
        sent(&mut editor);
        assert_eq!(editor.press(Key::Paste("one\ntwo".to_owned())), Effect::Edited);
        press(&mut editor, &[Key::NewLine, Key::Up, Key::Up]);
        assert_eq!(editor.buffer().cursor(), 0);
        press(&mut editor, &[Key::Up]);
        assert_eq!(editor.buffer().text(), "before");
        press(&mut editor, &[Key::Down]);
        assert_eq!(sent(&mut editor), "one\ntwo\n");
    }

    #[test]
    fn ctrl_c_and_ctrl_d_depend_on_whether_there_is_text() {
        let mut editor = Editor::default();
        typed(&mut editor, "ab");
        press(&mut editor, &[Key::Left]);
        assert_eq!(editor.press(Key::QuitOrDelete), Effect::Edited);
        assert_eq!(editor.buffer().text(), "a");
        assert_eq!(editor.press(Key::Interrupt), Effect::Discarded("a".to_owned()));
        assert_eq!(
            (editor.press(Key::Interrupt), editor.press(Key::QuitOrDelete)),
            (Effect::Interrupted, Effect::Quit)
        );
    }

    #[test]
    fn a_text_has_a_maximum_size() {
        let mut editor = Editor::default();
        let long = "x".repeat(usize::try_from(crate::cli::text::MAX_BYTES).unwrap());
        assert_eq!(editor.press(Key::Paste(long)), Effect::Edited);
        assert_eq!(editor.press(Key::Char('y')), Effect::Refused);
        assert_eq!(editor.press(Key::Paste("y".to_owned())), Effect::Oversized);
        assert_eq!(editor.press(Key::Oversized), Effect::Oversized);
    }
}
