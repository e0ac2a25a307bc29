//! The HTTP server: an accept loop, warp's routes behind it, and everything else that concerns HTTP.
//!
//! ```text
//! accept ─ TLS? ─ connection ─ envelope ─ route ─ gate ─ body ─ domain ─ reply
//!                 (timeouts)   (request id, common headers, log, panics)
//! ```
//!
//! [`serve()`] is the entry point of production and of every test; it takes a listener that is bound already. What must
//! hold: a caller that is slow, silent or gone costs a bounded amount of time and memory; every response carries its
//! request id and rate limits; after `shutdown`, requests in flight get a grace period, then a proper end, and nothing
//! that was counted is lost.

mod background;
pub(crate) mod connection;
mod endpoints;
mod envelope;
pub mod fuzz_entry;
mod gate;
mod hyper_errors;
mod in_flight;
mod reply;
mod request;
pub(crate) mod routes;
mod serve;
mod state;

pub use crate::net::inbound::listener::listen;
pub use crate::net::inbound::tls::{Certificate, Tls, TlsError, TlsFiles};
pub(crate) use endpoints::openapi::error_codes;
pub use serve::serve;
pub use state::Options;
pub(crate) use state::ServerState;
