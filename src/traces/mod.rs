//! Traces: what became of each request, as spans that a collector takes over OTLP (HTTP and JSON).
//!
//! A [`Span`] is something that takes time: a request, a call to a model, a vote. It is made by the [`Tracer`] or as a
//! child of another, collects attributes, and is queued when it is dropped; a task sends the queue in batches (`sender`).
//! Which span is the parent of what begins deep inside is known from the future that is polled (`scope`), as the log
//! knows its request.
//!
//! Written by hand: the encoding is a page of JSON, the sender is the client that calls providers anyway, and the crates
//! for it would bring another HTTP client, protocol buffers and a second way to describe what happens.
//!
//! What must hold: without a collector nothing is made, and a span is a null pointer; nobody waits for a collector,
//! however slow or broken it is: what does not fit into the queue is dropped and counted; a span holds no text of a
//! caller or a model unless the operator says so ([`Settings::capture`]); a caller's `traceparent` is data, and a
//! malformed one is none.

mod context;
mod otlp;
mod scope;
mod sender;
mod settings;
mod span;
mod tracer;

pub use context::TraceContext;
pub use scope::{InSpan, current};
pub use settings::{Sampler, Settings};
pub use span::{Kind, Parent, Span, Value};
pub use tracer::{Counts, Tracer};
