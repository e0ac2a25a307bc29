//! The arguments of `mk extract`.

use clap::Args;

use crate::cli::commands::verify::args::{InputArgs, Subject};
use crate::cli::target::backend::BackendArgs;

/// Examples of `mk extract`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk extract --sandbox \"Two plus two is four.\"          no key or network needed
  mk extract article.txt                                a file
  mk extract --json article.txt | jq '.claims[].question'
  git show | mk extract                                 standard input";

/// The text below the options in `mk extract --help`.
pub(crate) const NOTES: &str = "\
Shows what `mk verify` would ask about a text: its claims with their questions
and options, and the parts it would skip. The panel is not asked, so this costs
less than a verification and says nothing about what is true.

In a pipe, each claim is a line of tab-separated fields: number, CLAIM, position
in the text (in characters), claim, question. A part that would be skipped is a
SKIPPED line with - as its number and the reason instead of the position. With
several statements (--lines, several texts or files), the line number or file
name comes first. A statement without claims is a NOTHING line, and one that
failed an ERROR line.

Exit codes: 0 all of the text is accounted for; 13 a part is not: it is over a
limit, or could not be extracted faithfully; 12 no claims; 2 usage; 4 no key, or
refused; 5 server or provider failed; 6 cannot reach, or --timeout; 7 refused
for now; 8 incomplete. With several statements, the worst one counts.
Standard error names what failed, even with -q.";

/// The arguments of `mk extract`.
#[derive(Args, Debug)]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    #[command(flatten)]
    pub(crate) subject: Subject,

    /// Print one JSON document, at the end
    #[arg(long, conflicts_with = "jsonl", help_heading = "Output")]
    pub(crate) json: bool,

    /// Print a line of JSON per claim, and a summary per statement
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
}
