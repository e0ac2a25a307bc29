//! `mk receipt`: checks receipts of verifications, and shows the key by which that is done.

mod check;
mod key;
mod report;
mod texts;

pub(in crate::cli) use key::signing_key_announced;

use clap::{Args, Subcommand};

use crate::cli::args::globals::Session;
use crate::cli::process::exit::Outcome;

/// Examples of `mk receipt`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk verify article.md --receipt article.jws
  mk receipt verify article.jws --text article.md
  mk receipt verify article.jws --min-required 3
  mk receipt key > key.pem                   give this to whoever checks
  mk receipt verify article.jws --key key.pem";

/// The text below the options in `mk receipt --help`.
pub(crate) const NOTES: &str = "\
A receipt holds everything needed to recount a verification: the claims, which
model was asked what, and every answer word for word; of the text, only its
SHA-256. The server signs it (Ed25519), so any change is detected.";

/// The arguments of `mk receipt`.
#[derive(Args, Debug)]
pub(crate) struct ReceiptArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Check the signature of receipts and recount their votes
    #[command(after_help = check::NOTES)]
    Verify(check::VerifyArgs),
    /// Show the public key of this machine's server, or of the one named by --server or a profile
    Key(key::KeyArgs),
}

/// Runs the command.
pub(crate) fn run(args: &ReceiptArgs, session: &mut Session) -> Outcome {
    match &args.command {
        Command::Verify(args) => check::run(args, session),
        Command::Key(args) => key::run(args, session),
    }
}
