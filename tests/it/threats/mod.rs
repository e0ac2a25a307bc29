//! Tests for lines of the threat model (`src/server/gate/threats.md`) that no other test covers.

mod browser;
mod framing;
mod lookups;
mod outward;
mod page;
mod process;
mod size;
mod unread;
