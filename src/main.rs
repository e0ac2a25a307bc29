//! The program: hands its arguments to the command line and ends as that says.

use std::process::ExitCode;

fn main() -> ExitCode {
    let end = mk::cli::run(std::env::args_os());
    ExitCode::from(end.into_code())
}
