//! Reads keys, and keeps those that were typed ahead.
//!
//! A prompt reads no further than it needs, so that what was typed behind the last line is left for whoever reads the
//! terminal next. While an answer is running everything is read, as Ctrl-C may come behind it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use super::keys::{Decoder, Key};
use super::readiness::{self, InputWatch};
use crate::cli::text::MAX_BYTES;

/// Keys from the terminal behind standard input.
#[derive(Debug)]
pub(super) struct Input {
    terminal: File,
    readiness: InputWatch,
    decoder: Decoder,
    type_ahead: TypeAhead,
}

impl Input {
    pub(super) fn open() -> io::Result<Self> {
        let terminal = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let readiness = InputWatch::new(terminal.try_clone()?)?;
        Ok(Self { terminal, readiness, decoder: Decoder::default(), type_ahead: TypeAhead::default() })
    }

    /// The next complete key that has arrived, without waiting.
    pub(super) fn next(&mut self) -> io::Result<Option<Key>> {
        while self.type_ahead.keys.is_empty() && self.is_ready()? {
            self.read(&mut [0])?;
        }
        Ok(self.type_ahead.pop())
    }

    /// Reads what has arrived, and returns whether Ctrl-C is in it. Whatever was typed before it waits for the next
    /// prompt.
    pub(super) fn has_interrupt(&mut self) -> io::Result<bool> {
        if self.is_ready()? {
            self.read(&mut [0; 4096])?;
        }
        Ok(self.type_ahead.take_interrupt())
    }

    /// Resolves when there may be something to read.
    pub(super) async fn readable(&self) {
        self.readiness.readable().await;
    }

    /// Whether a read would not block.
    pub(super) fn is_ready(&self) -> io::Result<bool> {
        readiness::is_ready(&self.terminal)
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<()> {
        match self.terminal.read(room) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                for &byte in &room[..count] {
                    self.decoder.take(byte, |key| self.type_ahead.push(key));
                }
                Ok(())
            }
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(cause) => Err(cause),
        }
    }
}

/// Keys that were typed ahead.
#[derive(Debug, Default)]
struct TypeAhead {
    keys: VecDeque<Key>,
    size: usize,
}

impl TypeAhead {
    /// Adds a key. Keys beyond the maximum length of a text are dropped, except for Ctrl-C.
    fn push(&mut self, key: Key) {
        let size = size(&key);
        if (self.size + size) as u64 <= MAX_BYTES || key == Key::Interrupt {
            self.size += size;
            self.keys.push_back(key);
        }
    }

    fn pop(&mut self) -> Option<Key> {
        let key = self.keys.pop_front()?;
        self.size -= size(&key);
        Some(key)
    }

    /// Removes the last Ctrl-C, if there is one. Whoever wants things to stop does not want the lines before it to be
    /// sent: they become a single text without a line end behind it.
    fn take_interrupt(&mut self) -> bool {
        let Some(at) = self.keys.iter().rposition(|key| *key == Key::Interrupt) else { return false };
        let behind = self.keys.split_off(at);
        self.keys.retain(|key| *key != Key::Interrupt);
        while self.keys.back() == Some(&Key::Enter) {
            self.keys.pop_back();
        }
        for key in self.keys.iter_mut().filter(|key| **key == Key::Enter) {
            *key = Key::NewLine;
        }
        self.keys.extend(behind.into_iter().skip(1));
        self.size = self.keys.iter().map(size).sum();
        true
    }
}

fn size(key: &Key) -> usize {
    if let Key::Paste(text) = key { text.len().max(1) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_ahead(text: &str) -> TypeAhead {
        let mut type_ahead = TypeAhead::default();
        let mut decoder = Decoder::default();
        text.bytes().for_each(|byte| decoder.take(byte, |key| type_ahead.push(key)));
        type_ahead
    }

    #[test]
    fn ctrl_c_submits_nothing_that_was_typed_before_it() {
        assert!(!type_ahead("one\rtwo").take_interrupt());
        let mut keys = type_ahead("one\rtwo\r\x03three\r");
        assert!(keys.take_interrupt() && !keys.take_interrupt());
        let left: Vec<Key> = std::iter::from_fn(|| keys.pop()).collect();
        let mut wanted: Vec<Key> = "one\ntwothree\n".chars().map(Key::Char).collect();
        (wanted[3], wanted[12]) = (Key::NewLine, Key::Enter);
        assert_eq!((left, keys.size), (wanted, 0));
    }

    #[test]
    fn type_ahead_is_bounded_but_ctrl_c_gets_through() {
        let most = usize::try_from(MAX_BYTES).unwrap();
        let mut keys = type_ahead(&"x".repeat(most + 10));
        assert_eq!(keys.keys.len(), most);
        keys.push(Key::Paste("y".to_owned()));
        keys.push(Key::Interrupt);
        assert!(keys.take_interrupt());
        assert_eq!(keys.keys.len(), most);
    }
}
