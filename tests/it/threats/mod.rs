//! The threat model (module head of `src/server/gate.rs`), where no other room has a test for one of its lines.

mod browser;
mod framing;
mod lookups;
mod outward;
mod page;
mod process;
mod size;
mod unread;
