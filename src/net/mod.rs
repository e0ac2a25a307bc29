//! The engine beneath the product: sockets, TLS and framing, streams, threads and their permits.
//!
//! Who works on verification, keys or a command never opens a file here, and nothing here knows what a key, a model or
//! an answer is. `inbound` has what a listener needs, `outbound` what a call to somebody else's server needs; the rest
//! serves both.

pub(crate) mod inbound;
pub mod loopback;
pub(crate) mod outbound;
pub mod semaphore;
pub mod sse_decoder;
pub(crate) mod thread_pool;
pub mod workers;
