//! Readers of JSON that strangers wrote: callers, providers and models; and a writer.
//!
//! What passes through nearly unchanged is not decoded: values stay the bytes they are, and only what is asked for is
//! looked at. What is decoded is decoded strictly, and every depth and size has a bound.

pub mod fields;
pub(crate) mod object;
pub(crate) mod raw;
pub mod reader;
pub(crate) mod strict;
pub(crate) mod write;
