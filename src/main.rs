//! The `mk` program: passes its arguments to the command line and exits as that says. The allocator is chosen for the
//! program alone, not for the library; `Cargo.toml` says why it is this one.
//!
//! On Linux it takes the place of the C library's, for SQLite as well. So Rust's own way of allocating leads to it, and
//! the shorter one: as a global allocator it would be asked for aligned memory each time, which for more than a kilobyte
//! is a detour.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
use mimalloc as _;

#[cfg(not(target_os = "linux"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let end = mk::cli::run(std::env::args_os());
    ExitCode::from(end.into_code())
}
