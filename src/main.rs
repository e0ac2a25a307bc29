//! The program: hands its arguments to the command line and ends as that says. Its allocator is the program's alone, not the
//! library's; why it is this one says `Cargo.toml`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let end = mk::cli::run(std::env::args_os());
    ExitCode::from(end.into_code())
}
