//! How long code takes to hold claims against a long text: reading it once, finding each quote, checking each claim.
//!
//! Text and claims are those by which the rules are tested (`tests/data/anchors/en.jsonl`), over and over. Of several
//! rounds the fastest counts: what else the machine does is not the code's. A quarter of the text with a quarter of the
//! claims shows that the time is that of the length.

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::civil;
use mk::verify::anchors::{Anchored, check};
use mk::verify::document::{Document, Finder, Format};
use serde_json::Value;

use crate::table::{Figure, Table};

/// Each line a text with its claims.
const CASES: &str = include_str!("../../tests/data/anchors/en.jsonl");
/// The longest text that is verified, in characters.
const CHARS: usize = 200_000;
/// As many claims as such a text may well have.
const CLAIMS: usize = 2_000;
/// How long a section is about, in characters.
const SECTION_CHARS: usize = 2_000;
/// Of which year the texts speak.
const AS_OF: civil::Date = civil::date(2026, 11, 26);

/// A text with claims about its parts.
struct Load {
    text: String,
    claims: Vec<Drafted>,
}

/// A claim as an extractor drafts it, and the part of the text that it is about.
#[derive(Clone)]
struct Drafted {
    part: Range<usize>,
    quote: String,
    claim: String,
    question: String,
    answer: String,
}

/// Measures all figures.
pub(crate) fn measure(table: &mut Table, is_quick: bool) -> anyhow::Result<()> {
    let rounds = if is_quick { 3 } else { 25 };
    let [reading, quotes, checks] = fastest(&Load::new(CHARS, CLAIMS)?, rounds)?;
    let whole = reading + quotes + checks;
    table.hold("anchoring 200,000 characters against 2,000 claims", Figure::ms(whole), 20.0);
    table.tell("of it reading the text", Figure::ms(reading));
    table.tell("of it finding quotes", Figure::ms(quotes));
    table.tell("of it checking claims", Figure::ms(checks));
    let quarter: Duration = fastest(&Load::new(CHARS / 4, CLAIMS / 4)?, rounds)?.into_iter().sum();
    let growth = whole.as_secs_f64() / quarter.as_secs_f64();
    table.hold("its growth from a quarter of both", Figure::of(Some(growth), "x"), 8.0);
    Ok(())
}

impl Load {
    fn new(chars: usize, claims: usize) -> anyhow::Result<Self> {
        let cases: Vec<Value> = CASES.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let (mut text, mut all) = (String::new(), Vec::new());
        for case in cases.iter().cycle() {
            let said = case["text"].as_str().context("a case has no text")?;
            let start = text.len();
            text.push_str(said);
            let part = start..text.len();
            let rows: Vec<[String; 4]> = serde_json::from_value(case["good"].clone())?;
            all.extend(rows.into_iter().map(|[quote, claim, question, answer]| Drafted {
                part: part.clone(),
                quote,
                claim,
                question,
                answer,
            }));
            if text.len() >= chars {
                break;
            }
            text.push_str("\n\n");
        }
        let picked = (0..claims).map(|nth| all[nth * all.len() / claims].clone());
        Ok(Self { claims: picked.collect(), text })
    }
}

/// The times of reading, finding and checking in the fastest round.
fn fastest(load: &Load, rounds: usize) -> anyhow::Result<[Duration; 3]> {
    let all = (0..rounds).map(|_| round(load)).collect::<anyhow::Result<Vec<_>>>()?;
    all.into_iter().min_by_key(|times| times.iter().sum::<Duration>()).context("no round")
}

fn round(load: &Load) -> anyhow::Result<[Duration; 3]> {
    let started = Instant::now();
    let document = Document::new(&load.text, Format::Text);
    black_box(document.sections(SECTION_CHARS));
    let finder = Finder::new(&document);
    let reading = started.elapsed();
    let started = Instant::now();
    let place = |drafted: &Drafted| finder.find(&drafted.quote, drafted.part.clone(), 0);
    let places: Option<Vec<Range<usize>>> = load.claims.iter().map(place).collect();
    let places = places.context("a quote is not found")?;
    let quotes = started.elapsed();
    let started = Instant::now();
    let faults = |(drafted, quote): (&Drafted, &Range<usize>)| {
        let anchored = Anchored {
            section: &drafted.part,
            claim: &drafted.claim,
            quote,
            question: &drafted.question,
            claimed_answer: &drafted.answer,
            as_of: AS_OF,
        };
        check(&document, &finder, &anchored).len()
    };
    let faults: usize = load.claims.iter().zip(&places).map(faults).sum();
    anyhow::ensure!(faults * 100 <= load.claims.len(), "{faults} faults of good claims");
    Ok([reading, quotes, started.elapsed()])
}
