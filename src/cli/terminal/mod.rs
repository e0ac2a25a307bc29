//! The terminal: what is known about it, and everything that is laid out for it.

pub(super) mod confirm;
pub(super) mod humanize;
pub(super) mod mark;
pub(super) mod pager;
pub(super) mod printer;
pub(super) mod progress;
pub mod sanitize;
pub(super) mod shell;
pub(super) mod tabular;
pub(super) mod term;
pub(super) mod wrap;
