//! The `mk` program: passes its arguments to the command line and exits as that says. The allocator is chosen for the
//! program alone, not for the library; `Cargo.toml` says why it is this one.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let end = mk::cli::run(std::env::args_os());
    ExitCode::from(end.into_code())
}
