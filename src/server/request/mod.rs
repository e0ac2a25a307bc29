//! What is read of a request before its endpoint sees it: where it comes from, its body within bounds, its fields; and
//! its record, in which everything that works on it notes what became of it.

pub(super) mod body;
pub(super) mod header_names;
pub(super) mod incoming;
pub(super) mod local;
pub(super) mod log_fields;
pub(super) mod params;
pub(super) mod record;
