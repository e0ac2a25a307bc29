//! `mk receipt verify`: checks receipts, one a line of a file, and counts their votes again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::key;
use super::report::{self, Checked, CheckedClaim, Entry, Sameness, Signature};
use super::texts::Texts;
use crate::api::verify::{Assessment, MIN_REQUIRED, VerifyResponse};
use crate::cli::args::globals::Session;
use crate::cli::args::number::within;
use crate::cli::args::text::{of_file, read_stdin, unreadable};
use crate::cli::commands::verify::gate::Gate;
use crate::cli::commands::verify::input::place::Places;
use crate::cli::commands::verify::input::source::Source;
use crate::cli::commands::verify::verdict;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::target::database::DatabaseArgs;
use crate::cli::terminal::humanize::counted;
use crate::config::FailOn;
use crate::verify::receipt::{self, Fingerprint, MAX_BYTES, Payload, PublicKey};

/// The text below the options in `mk receipt verify --help`.
pub(super) const NOTES: &str = "\
Each claim is a line: number, recounted verdict, votes in panel order (T the
claimed answer, F another, U cannot tell, - none), and the claim. A difference
from the report is shown below it; in a pipe, in the fourth tab-separated field,
which is `agrees` otherwise. Parts of the text that were not checked are
UNCHECKED or SKIPPED lines, with - as their number.

Exit codes: 0 all agree; 1 a signature, a text or a verdict does not. With
--min-required, if all agree, that of the verdicts under the new rule: 10 a
claim is FALSE; 11 none FALSE, but one without consensus; 13 neither, but a part
was not checked; 12 nothing to verify. Standard error names what was found, even
with -q. With several receipts, lines begin with the receipt's line number.";

/// The arguments of `mk receipt verify`.
#[derive(Args, Debug)]
pub(super) struct VerifyArgs {
    /// File with the receipts, one per line; `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Public key of the server that signed them, from `mk receipt key` [default: that of --server, else of
    /// this machine's server]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Recount as if this many models had to agree: 2 or 3
    #[arg(long, value_name = "N", value_parser = within(MIN_REQUIRED), allow_negative_numbers = true)]
    min_required: Option<u32>,

    /// Check that this is the text that was verified; can be repeated. With several receipts, each may be about one of
    /// its lines
    #[arg(long, value_name = "FILE")]
    text: Vec<PathBuf>,

    /// Check that this is the text that the models answered from
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// What receipts are compared with.
struct Given {
    key: Option<PublicKey>,
    texts: Texts,
    context: Option<Fingerprint>,
    min_required: Option<u32>,
}

/// Runs `mk receipt verify`.
pub(super) fn run(args: &VerifyArgs, session: &mut Session) -> Outcome {
    let (name, file) = read(&args.file, session)?;
    let lines: Vec<&str> = file.strip_suffix('\n').unwrap_or(&file).split('\n').collect();
    let context = args.context.as_deref().map(|path| of_file("--context", path)).transpose()?;
    let given = Given {
        texts: Texts::read(&args.text)?,
        context: context.as_deref().map(Fingerprint::of),
        min_required: args.min_required,
        key: key::for_check(args.key.as_deref(), &args.database, session)?,
    };
    let all: Vec<Entry> = lines.iter().map(|line| check_line(line, &given)).collect();
    // One bad line among others must not hide them; a file of bad lines is something else.
    if all.iter().all(Result::is_err)
        && let Some(Err(cause)) = all.first()
    {
        let line = if lines.len() > 1 { ", line 1" } else { "" };
        return Err(Failure::new(Kind::Other, format!("{name}{line}: {cause}"))
            .hint("use a file written by `mk verify --receipt FILE`, unchanged"));
    }
    let mut gate = Gate::default();
    let mut exit = 0;
    for (at, entry) in all.iter().enumerate() {
        let code = match (entry, given.min_required) {
            (Ok(checked), Some(_)) if checked.agrees() => {
                let counted = checked.counted();
                let faults = verdict::faults(&counted, &FailOn::DEFAULT);
                let code = verdict::exit_code(&faults);
                let source = (all.len() > 1).then_some(Source::Line { line: at + 1 });
                gate.add(source.as_ref(), faults, &Places::new(None, ""));
                code
            }
            (Ok(checked), None) if checked.agrees() => 0,
            _ => Kind::Other.code(),
        };
        exit = worse(exit, code);
    }
    report::print(&session.printer, &name, &all, given.key.as_ref(), args.json, exit)?;
    if exit != Kind::Other.code() {
        let claims = all.iter().flatten().map(|checked| checked.claims.len()).sum::<usize>();
        gate.tell(&session.printer, !args.json, &format!("{} recounted", counted(claims, "claim")), exit);
    }
    Ok(exit)
}

/// Disagreement is worse than any verdict.
fn worse(one: u8, other: u8) -> u8 {
    if one == Kind::Other.code() || other == Kind::Other.code() {
        return Kind::Other.code();
    }
    verdict::worse(one, other)
}

impl Checked {
    /// The verification with its verdicts as counted again.
    fn counted(&self) -> VerifyResponse {
        let Payload { skipped, complete, audited, coverage, .. } = &self.payload;
        VerifyResponse {
            results: self.claims.iter().filter_map(|claim| claim.counted.clone().ok()).collect(),
            skipped: skipped.clone(),
            complete: *complete,
            audited: *audited,
            coverage: *coverage,
            ..VerifyResponse::default()
        }
    }
}

/// Opens one receipt, and checks it.
fn check_line(line: &str, given: &Given) -> Entry {
    let opened = receipt::open(line).map_err(|cause| cause.to_string())?;
    let signature = match given.key.as_ref() {
        None => Signature::Unchecked,
        Some(key) if opened.is_signed_by(key) => Signature::Valid,
        Some(key) if key.id() != opened.key_id => Signature::OfAnotherKey,
        Some(_) => Signature::Invalid,
    };
    Ok(Box::new(check(opened.key_id, opened.payload, signature, given)))
}

fn check(key_id: String, payload: Payload, signature: Signature, given: &Given) -> Checked {
    let asked = payload.request.min_required;
    let claims = payload.claims.iter().map(|record| {
        let again = payload.recount(record, asked);
        let agrees = again.as_ref().is_ok_and(|again| *again == record.result);
        let mut counted = match given.min_required.filter(|_| agrees) {
            Some(other) => payload.recount(record, other),
            None => again,
        };
        if let Ok(counted) = &mut counted {
            let panel: Vec<String> = record.votes.iter().map(|vote| vote.model.clone()).collect();
            counted.seat(&panel);
        }
        CheckedClaim { counted, agrees }
    });
    let claims = claims.collect();
    let text_name = given.texts.name(&payload.statement).map(str::to_owned);
    let text = match &text_name {
        _ if given.texts.is_empty() => Sameness::Unchecked,
        Some(_) => Sameness::Same,
        None => Sameness::Different,
    };
    let context = Sameness::of(given.context.as_ref(), payload.context.as_ref());
    let min_required = given.min_required.unwrap_or(asked);
    Checked { key_id, payload, signature, text, text_name, context, min_required, claims }
}

/// The file and what sentences call it.
fn read(path: &Path, session: &Session) -> Result<(String, String), Failure> {
    let (name, bytes) = if path == Path::new("-") {
        let name = "standard input".to_owned();
        let bytes = read_stdin(&session.printer, capped)?;
        (name, bytes)
    } else {
        let name = path.display().to_string();
        (name, File::open(path).and_then(capped))
    };
    let bytes = bytes.map_err(|cause| unreadable(&name, cause))?;
    if bytes.len() > MAX_BYTES {
        return Err(Failure::usage(format!("{name} is larger than {} MiB", MAX_BYTES >> 20)));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Failure::new(Kind::Other, format!("{name} is not an mk receipt")))?;
    Ok((name, text))
}

fn capped(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl CheckedClaim {
    /// The verdict as it was counted again.
    pub(super) fn assessment(&self) -> Option<Assessment> {
        self.counted.as_ref().ok().map(|counted| counted.assessment)
    }
}
