//! Quoting for commands that a person may copy into a shell.

/// The value quoted as a single word for a POSIX shell, if it needs to be.
pub(crate) fn word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/:@%+,".contains(c);
    if value.chars().all(is_plain) && !value.is_empty() {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
