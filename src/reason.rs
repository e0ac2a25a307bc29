//! What the operating system says went wrong, in words for a person.
//!
//! Rust writes such an error as `No such file or directory (os error 2)`. The words say what is the matter; the number is
//! for whoever looks it up, and `-v` and the log keep it.

use std::io;

/// What stands before a number.
const BEGIN: &str = " (os error ";

/// An error's words without its number, to stand behind a colon.
pub fn of(error: &io::Error) -> String {
    without_numbers(error.to_string()).to_lowercase()
}

/// A message without the numbers of the system's errors in it.
pub fn without_numbers(mut message: String) -> String {
    while let Some(begin) = message.find(BEGIN) {
        let number = &message[begin + BEGIN.len()..];
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || number.as_bytes().get(digits) != Some(&b')') {
            break;
        }
        message.replace_range(begin..=begin + BEGIN.len() + digits, "");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_and_numbers_go() {
        let error = io::Error::from_raw_os_error(2);
        assert!(error.to_string().ends_with("(os error 2)"), "{error}");
        assert_eq!(of(&error), "no such file or directory");
        for (told, expected) in [
            ("a (os error 2): b (os error 13)", "a: b"),
            (
                "what no system says (os error x) (os error 2)",
                "what no system says (os error x) (os error 2)",
            ),
            ("cut (os error 2", "cut (os error 2"),
            ("os error 2", "os error 2"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(told.to_owned()), expected);
        }
    }
}
