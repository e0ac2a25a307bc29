//! The number of a caller's request: it is in its `X-Request-Id` and in its text, so that the log, the ledger and the
//! provider's list can be compared request by request.

const MARK: &str = "soak-";

/// A request's id.
pub(crate) fn id(token: u64) -> String {
    format!("{MARK}{token}")
}

/// The number in an id.
pub(crate) fn of_id(id: &str) -> Option<u64> {
    id.strip_prefix(MARK)?.parse().ok()
}

/// The number in the text of a request.
pub(crate) fn find(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once(MARK)?;
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
