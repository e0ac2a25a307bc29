//! Results and progress: for people, for pipes, and for programs.

pub(in crate::cli) mod batch_display;
pub(super) mod display;
pub(in crate::cli) mod json;
pub(in crate::cli) mod page;
pub(in crate::cli) mod plain;
pub(super) mod receipt_file;
pub(in crate::cli) mod summary;
pub(super) mod table;
pub(in crate::cli) mod votes;
