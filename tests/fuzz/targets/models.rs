//! Model output in verifications: claims and votes, in JSON or not.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use mk::verify::{read_answer, read_claims};
use mk_fuzz::is_harmless;

/// Fewer than the default, so that small inputs reach the limit.
const MOST_CLAIMS: usize = 3;

fn is_line(text: &str, most: usize) -> bool {
    is_harmless(text) && !text.is_empty() && text.trim() == text && text.chars().count() <= most
}

fn claims(text: &str) {
    let Ok(read) = read_claims(text, MOST_CLAIMS) else { return };
    assert!(read.claims.len() <= MOST_CLAIMS);
    let mut ids = HashSet::new();
    for claim in &read.claims {
        assert!(ids.insert(&claim.id), "two claims of one id");
        assert!(is_line(&claim.text, 2_000) && is_line(&claim.question, 2_000), "{claim:?}");
        let options = claim.options();
        // The claimed answer, one to five rivals, and the two options that every question has.
        assert!((4..=8).contains(&options.len()), "{claim:?}");
        assert!(options.iter().all(|option| is_line(option, 500)), "{claim:?}");
        let distinct: HashSet<String> = options.iter().map(|option| option.to_lowercase()).collect();
        assert_eq!(distinct.len(), options.len(), "{claim:?}");
    }
    assert!(read.skipped.iter().all(|part| is_line(&part.text, 2_000)), "{:?}", read.skipped);
}

fn vote(text: &str) {
    let order = [2, 0, 1, 3];
    let options = ["B", "1889", "A.D. 70", "Cannot be determined"].map(str::to_owned);
    for explain in [false, true] {
        let Ok(given) = read_answer(text, &options, &order, explain) else { continue };
        assert!(given.option < order.len());
        assert!(explain || given.reason.is_none(), "a reason that nobody asked for");
        assert!(given.reason.is_none_or(|reason| is_line(&reason, 500)));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    claims(&text);
    vote(&text);
    if text.starts_with('{') && serde_json::from_str::<serde_json::Value>(&text).is_ok() {
        let (bare, fenced) = (read_claims(&text, MOST_CLAIMS).ok(), format!("\n```json\n{text}\n```\n"));
        assert_eq!(read_claims(&fenced, MOST_CLAIMS).ok(), bare, "a fence changes the meaning");
        // Marks of reasoning inside a string may hide it from whoever looks for it in prose, but never change it.
        let in_prose = read_claims(&format!("Sure: {fenced}"), MOST_CLAIMS).ok();
        assert!(in_prose.is_none() || in_prose == bare, "prose changes the meaning: {in_prose:?}");
    }
});
