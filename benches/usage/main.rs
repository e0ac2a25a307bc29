//! What usage reports cost with a year of usage, and how long a start takes: `cargo bench --bench usage` prints a
//! table.
//!
//! Builds a ledger of 10 million attempts over a year as a server would, through the store in batches (a minute or two,
//! 4 GB in the directory for temporary files), and then requests reports, which use the daily sums: 60 keys of 20 apps
//! that use 6 models make 131,000 of them. Times are medians on one machine; only those with a bound are checked, and
//! `-- --check` exits with 1 when one is missed. At the end a million keys are added, and the release binary is started
//! on all of it.
//!
//! `QUICK=1` builds a million attempts, and a tenth of the keys.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    missing_docs,
    reason = "a bench fails by panicking and prints its table"
)]

mod start;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mk::api::Service;
use mk::api::console::Dimension::{App, Day, Key, Model};
use mk::api::console::{Dimension, UsageReport};
use mk::clock::Time;
use mk::money::NanoUsd;
use mk::storage::{AttemptRow, Store};
use mk::usage::{self, Days, Month, ReportRequest};

const YEAR_DAYS: u32 = 365;
const KEYS: usize = 60;
const APPS: usize = 20;
const MODELS: [&str; 6] = [
    "openai/gpt-5.4-mini",
    "anthropic/claude-haiku-4-5",
    "google/gemini-3.5-flash",
    "mistral/mistral-small-latest",
    "groq/openai/gpt-oss-120b",
    "local/qwen",
];
/// As many as a busy server records in one batch.
const BATCH: usize = 5_000;
const ROUNDS: usize = 9;
const BOUND: Duration = Duration::from_millis(200);
/// From the start of the program to its first response.
const START_BOUND: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let is_quick = std::env::var_os("QUICK").is_some();
    let (rows, keys) = if is_quick { (1_000_000, 100_000) } else { (10_000_000, 1_000_000) };
    let now = Time::parse("2026-11-20T12:00:00Z").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), now).unwrap();
    println!("{:<58} {:>12} {:>10}", "measured", "result", "bound");

    let started_at = Instant::now();
    fill(&store, rows, now);
    let took = started_at.elapsed();
    row("attempts in the ledger", &rows.to_string(), "");
    row("booking one, with its sums", &format!("{:.1} µs", took.as_secs_f64() * 1e6 / rows as f64), "");

    let app_id = id("app", 0);
    let month = Month::parse("2026-10").unwrap();
    let of = |days: Days, by: &[Dimension], app_id: Option<&str>| {
        let app_id = app_id.map(str::to_owned);
        let asked = ReportRequest { days, by: by.to_vec(), app_id, key_id: None, service: None, model: None };
        usage::report(&store, &asked).unwrap()
    };
    let year = Days::until_today(YEAR_DAYS, now);
    let mut is_kept = true;
    let mut held = |what: &str, report: &dyn Fn() -> UsageReport| {
        let took = median(&|| assert!(report().totals.attempts > 0));
        is_kept &= took <= BOUND;
        row(what, &ms(took), &ms(BOUND));
    };
    held("a month by day", &|| of(month.days(), &[Day], None));
    held("a month by app, key and model", &|| of(month.days(), &[App, Key, Model], None));
    held("a month by day, key and model", &|| of(month.days(), &[Day, Key, Model], None));
    held("the year by model", &|| of(year, &[Model], None));
    held("the year by day", &|| of(year, &[Day], None));
    held("the year of one app by day and model", &|| of(year, &[Day, Model], Some(&app_id)));

    row("billing", &ms(median(&|| drop(usage::billing(&store, now).unwrap()))), "");
    let before = Time::of_utc_day(year.first + 30);
    let forget = median(&|| assert_eq!(store.forget_attempts(before, 500).unwrap(), 500));
    row("deleting 500 attempts that are too old", &ms(forget), "");

    start::add_keys(&store, dir.path(), keys, now);
    drop(store);
    let started = start::median(dir.path());
    row(&format!("start of the server, {keys} keys, to its first answer"), &ms(started), &ms(START_BOUND));
    is_kept &= started <= START_BOUND;

    if std::env::args().any(|argument| argument == "--check") && !is_kept {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn row(what: &str, result: &str, bound: &str) {
    println!("{what:<58} {result:>12} {bound:>10}");
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

fn median(work: &dyn Fn()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started_at = Instant::now();
            work();
            started_at.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// An id as long as real ones.
fn id(prefix: &str, number: usize) -> String {
    format!("{prefix}_{number:032x}")
}

/// Records attempts evenly over the year until `now`: of verifications, which make ten each, and of completions.
fn fill(store: &Store, rows: usize, now: Time) {
    let start = Time::of_utc_day(Days::until_today(YEAR_DAYS, now).first).unix_ms();
    let span = now.unix_ms() - start;
    let mut batch = Vec::with_capacity(BATCH + 10);
    let (mut recorded, mut request) = (0, 0_usize);
    while recorded < rows {
        let at = Time::from_unix_ms(start + span / rows as i64 * recorded as i64);
        let attempts = one_request(request, at);
        recorded += attempts.len();
        batch.extend(attempts);
        request += 1;
        if batch.len() >= BATCH || recorded >= rows {
            store.add_attempts(&batch).unwrap();
            batch.clear();
        }
    }
}

fn one_request(number: usize, at: Time) -> Vec<AttemptRow> {
    // A pseudo-random number that is the same in every run.
    let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    let key = random % KEYS;
    let (service, attempts) =
        if key.is_multiple_of(3) { (Service::Verify, 10) } else { (Service::Inference, 1) };
    let mut asked = Vec::new();
    (0..attempts)
        .map(|attempt| {
            let model = MODELS[(random + attempt * attempt) % MODELS.len()];
            let (is_first, is_first_of_model) = (attempt == 0, !asked.contains(&model));
            asked.push(model);
            AttemptRow {
                at,
                request_id: id("req", number).into(),
                app_id: id("app", key % APPS).into(),
                key_id: id("key", key).into(),
                service,
                model: model.into(),
                outcome: if random.is_multiple_of(50) { "provider_timeout" } else { "ok" }.into(),
                prompt_tokens: 900,
                completion_tokens: 120,
                cached_tokens: 0,
                cache_write_tokens: 0,
                is_estimated: false,
                cost: (!model.starts_with("local/")).then_some(NanoUsd(450_000)),
                latency_ms: 900,
                is_first,
                is_first_of_model,
                labels: None,
                call: None,
            }
        })
        .collect()
}
