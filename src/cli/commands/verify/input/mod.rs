//! Statements: where they come from, in which form, and where in them something stands.

pub(super) mod markup;
pub(in crate::cli) mod place;
pub(in crate::cli) mod source;
