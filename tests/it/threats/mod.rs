//! Tests for lines of the threat model (module head of `src/server/gate.rs`) that no other test covers.

mod browser;
mod framing;
mod lookups;
mod outward;
mod page;
mod process;
mod size;
mod unread;
