//! What commands share of their arguments: flags that all of them take, and parsers of values.

pub(super) mod choice;
pub(super) mod globals;
pub(super) mod number;
pub(super) mod text;
