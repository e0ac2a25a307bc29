//! Messages of operating system errors, in words for a person.
//!
//! Rust formats such an error as `No such file or directory (os error 2)`. The words say what is wrong; the number is
//! for looking it up, and `-v` and the log keep it.

use std::io;

/// The text in front of an error number.
const PREFIX: &str = " (os error ";

/// An error's message without its number and in lower case, to follow a colon.
pub fn message(error: &io::Error) -> String {
    without_numbers(error.to_string()).to_lowercase()
}

/// A message without the numbers of operating system errors in it.
pub fn without_numbers(mut text: String) -> String {
    while let Some(begin) = text.find(PREFIX) {
        let number = &text[begin + PREFIX.len()..];
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || number.as_bytes().get(digits) != Some(&b')') {
            break;
        }
        text.replace_range(begin..=begin + PREFIX.len() + digits, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_and_error_numbers_are_removed() {
        let error = io::Error::from_raw_os_error(2);
        assert!(error.to_string().ends_with("(os error 2)"), "{error}");
        assert_eq!(message(&error), "no such file or directory");
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
