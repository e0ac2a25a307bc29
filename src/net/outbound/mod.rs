//! Calls to other servers: connections to one address, and what became of a request on them.

pub(crate) mod client;
pub(crate) mod connect_error;
mod error;
pub(crate) mod http1;
pub(crate) mod roots;
mod tcp;

pub(crate) use error::SendError;
