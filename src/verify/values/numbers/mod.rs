//! Numbers as people write them, with what stands around them.

pub(super) mod amounts;
pub(super) mod bounds;
pub(super) mod literal;
pub(super) mod number;
pub(super) mod numerals;
pub(super) mod signs;
pub(super) mod units;
