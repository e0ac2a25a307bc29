//! A streamed answer, from the provider's bytes to the caller's.

pub(super) mod chunk_writer;
pub(super) mod completion_stream;
pub(super) mod lost_content;
