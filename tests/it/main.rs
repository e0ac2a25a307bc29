//! The integration tests, by capability, in one binary: the server through `server::serve`, the program through its
//! real binary, both against scripted fake providers on real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking"
)]

mod cli_keys;
mod cli_terminal;
mod cli_verify;
mod disconnect;
mod errors;
mod hostile;
mod judging;
mod keys;
mod layers;
mod limits;
mod shutdown;
mod stream;
mod support;
