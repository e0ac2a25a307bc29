//! What is done for every connection that is accepted, whatever is said on it: TLS, timeouts on every wait, framing,
//! and connections that hold little memory while they wait.

pub(crate) mod activity;
pub(crate) mod framing;
pub(crate) mod listener;
pub(crate) mod open_connections;
pub(crate) mod parking;
pub(crate) mod poll_on_wake;
pub(crate) mod socket;
pub(crate) mod stalled_streams;
pub(crate) mod tcp_keepalive;
pub(crate) mod tls;
pub(crate) mod unread_body;
pub(crate) mod write_timeout;
