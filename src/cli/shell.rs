//! Commands that a person may copy into a shell.

/// A value as a POSIX shell takes it for one word.
pub(crate) fn word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/:@%+,".contains(c);
    if value.chars().all(is_plain) && !value.is_empty() {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
