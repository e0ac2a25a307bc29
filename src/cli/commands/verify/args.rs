//! The arguments of `mk verify`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use crate::api::verify::{Domain, Format, MIN_REQUIRED, TOTAL_MODELS};
use crate::cli::args::number::within;
use crate::cli::target::backend::BackendArgs;
use crate::config::{FailOn, View};
use crate::keys::expiry;

/// Examples of `mk verify`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk verify --sandbox \"Two plus two is four.\"   no server, key or network needed
  mk verify \"The Eiffel Tower is in Paris.\"     against your server
  mk verify article.txt --explain               a file, with each model's reason
  mk verify docs/*.md                           several files, with totals
  git show | mk verify --json | jq .results     standard input, for programs
  mk verify --lines facts.txt | grep FALSE      one statement per line";

/// The text below the options in `mk verify --help`.
pub(crate) const NOTES: &str = "\
mk asks several models a neutral question about each claim of the text. No model
sees the claim or the other answers. TRUE and FALSE mean that enough models
agree. Agreement is evidence, not proof.

Votes, one per model in panel order: T the claimed answer, F another answer,
U cannot be determined, - no answer.

In a pipe, each claim is a line of tab-separated fields: number, verdict, votes,
text. A skipped part has - as its number, and SKIPPED as its verdict, or
UNCHECKED if it should have been checked. With several statements (--lines,
several texts or files), the line number or file name comes first. A statement
without claims is a NOTHING line, and one that failed an ERROR line.

Exit codes: 0 every claim TRUE; 10 a claim is FALSE; 11 none FALSE, but one
without consensus; 13 neither, but a part was not checked (over a limit, not
extracted or unfaithful), or was skipped with `--fail-on skipped`; 12 nothing to
verify; 2 usage; 4 no key, or refused; 5 server or provider failed; 6 cannot
reach, or --timeout; 7 refused for now; 8 incomplete.
With several statements, the worst one counts. --fail-on chooses which of 10, 11
and 13 count. Standard error names what failed, even with -q.";

/// The arguments of `mk verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    #[command(flatten)]
    pub(crate) how: How,

    /// Ask each model for its reason, shown in the list and in JSON
    #[arg(long, help_heading = "How")]
    pub(crate) explain: bool,

    /// Ask the models again, ignoring the server's verdict cache
    #[arg(long, help_heading = "How")]
    pub(crate) fresh: bool,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// What is read.
#[derive(Args, Debug)]
pub(crate) struct InputArgs {
    /// Texts or files; an argument that names an existing file is read as that file. `-` is standard input, which is
    /// also read if it is a pipe or a file and nothing else is given
    #[arg(value_name = "TEXT|FILE", conflicts_with = "lines", value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<OsString>,

    /// Take every argument as text, even if it names a file
    #[arg(long)]
    pub(crate) text: bool,

    /// Read the text from a file; can be repeated
    #[arg(short, long, value_name = "FILE", conflicts_with = "lines")]
    pub(crate) file: Vec<PathBuf>,

    /// Take each line of a file as a separate statement; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) lines: Option<PathBuf>,

    /// Format of the texts: text or markdown. Headings, code and link targets of Markdown are not checked [default: by
    /// the file's name, else by its content]
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) format: Option<FormatArg>,

    /// How many lines or files to send at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = within(1..=64_u16), allow_negative_numbers = true)]
    pub(crate) jobs: Option<u16>,

    /// How long to wait for the rate limit, per statement [default: 5m with several statements, else 0]
    #[arg(long, value_name = "TIME", value_parser = expiry::parse_span)]
    pub(crate) max_wait: Option<Duration>,
}

/// What kind of statements they are, and how long each may take.
#[derive(Args, Debug)]
#[command(next_help_heading = "How")]
pub(crate) struct Subject {
    /// Kind of statement: general, or legal (jurisdiction and date matter, citations are checked) [default: general]
    #[arg(long, value_enum, value_name = "DOMAIN", hide_possible_values = true)]
    pub(crate) domain: Option<DomainArg>,

    /// Judge the facts as of this date [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) as_of: Option<String>,

    /// How long a statement may take, such as 90s or 3m [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
}

/// How it is verified.
#[derive(Args, Debug)]
#[command(next_help_heading = "How")]
pub(crate) struct How {
    #[command(flatten)]
    pub(crate) subject: Subject,

    /// How many models must agree: 2 or 3 [default: 2]
    #[arg(long, value_name = "N", value_parser = within(MIN_REQUIRED), allow_negative_numbers = true)]
    pub(crate) min_required: Option<u32>,

    /// How many models are asked [default: 3]
    #[arg(long, value_name = "N", value_parser = within(TOTAL_MODELS), allow_negative_numbers = true)]
    pub(crate) total_models: Option<u32>,

    /// Have the models answer from this text instead of from their knowledge
    #[arg(long, value_name = "FILE")]
    pub(crate) context: Option<PathBuf>,
}

/// What comes out.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Print one JSON document, at the end
    #[arg(long, conflicts_with_all = ["jsonl", "view"])]
    pub(crate) json: bool,

    /// Print a line of JSON per claim as it arrives, then a summary
    #[arg(long, conflicts_with = "view")]
    pub(crate) jsonl: bool,

    /// How to show results: list or table (a list if the terminal is too narrow) [default: list on a
    /// terminal, tab-separated lines elsewhere]
    #[arg(long, value_enum, value_name = "VIEW", hide_possible_values = true)]
    pub(crate) view: Option<View>,

    /// Write the signed receipt to a new file; `mk receipt verify` checks it. With several statements, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,

    /// What makes the run fail: false (10), no-consensus (11), unchecked or skipped parts (13); or never
    /// [default: false,no-consensus,unchecked]
    #[arg(long, value_enum, ignore_case = true, value_name = "VERDICTS", value_delimiter = ',')]
    #[arg(hide_possible_values = true)]
    pub(crate) fail_on: Option<Vec<FailOn>>,
}

/// The kinds of statements, as flag values.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DomainArg {
    /// Anything
    General,
    /// Law: jurisdiction and date matter, citations are checked by themselves
    Legal,
}

/// How a text is written, as a flag's value.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatArg {
    /// Plain text
    Text,
    /// Markdown
    Markdown,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Text => Self::Text,
            FormatArg::Markdown => Self::Markdown,
        }
    }
}

impl From<DomainArg> for Domain {
    fn from(arg: DomainArg) -> Self {
        match arg {
            DomainArg::General => Self::General,
            DomainArg::Legal => Self::Legal,
        }
    }
}
