//! Good and bad extractions of our own in twelve languages (`tests/data/anchors`), and what must hold of any.

use std::collections::BTreeMap;

use jiff::civil;
use proptest::prelude::*;
use serde_json::Value;

use super::{Anchored, Fault, Severity, check};
use crate::verify::document::{Account, AccountKind, Document, Finder, Format, coverage};

const TEXTS: [&str; 12] = [
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ar.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/de.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/en.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/es.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/fr.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/it.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ja.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ko.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/nl.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/pt.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/ru.jsonl")),
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/anchors/zh.jsonl")),
];

const AS_OF: civil::Date = civil::date(2026, 11, 26);

/// A text with claims: quote, claim, question, answer; those of bad ones behind what is wrong with them.
struct Case {
    text: String,
    good: Vec<Vec<String>>,
    bad: Vec<Vec<String>>,
}

fn cases() -> Vec<Case> {
    let rows = |value: &Value| -> Vec<Vec<String>> { serde_json::from_value(value.clone()).unwrap() };
    let lines = TEXTS.iter().flat_map(|text| text.lines());
    lines
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let text = case["text"].as_str().unwrap().to_owned();
            Case { text, good: rows(&case["good"]), bad: rows(&case["bad"]) }
        })
        .collect()
}

fn faults(document: &Document<'_>, finder: &Finder, row: &[String]) -> Vec<Fault> {
    let [quote, claim, question, claimed_answer] = row else { panic!("not a claim: {row:?}") };
    let section = 0..document.text().len();
    let quote = finder.find(quote, section.clone(), 0).unwrap_or_default();
    check(
        document,
        finder,
        &Anchored { section: &section, claim, quote: &quote, question, claimed_answer, as_of: AS_OF },
    )
}

fn claim_account(quote: std::ops::Range<usize>, says: &str) -> Account<'_> {
    Account { quote, says, kind: AccountKind::Claim }
}

#[test]
fn good_claims_pass() {
    let (mut all, mut sent_back, mut hard) = (0, Vec::new(), 0);
    for case in cases() {
        let document = Document::new(&case.text, Format::Text);
        let finder = Finder::new(&document);
        for row in &case.good {
            all += 1;
            let faults = faults(&document, &finder, row);
            hard += usize::from(faults.iter().any(|fault| fault.severity == Severity::Hard));
            sent_back.extend((!faults.is_empty()).then(|| format!("{} {faults:?}", row[1])));
        }
    }
    assert!(all >= 300, "{all}");
    assert!(
        hard == 0 && sent_back.len() * 100 <= all,
        "{hard} hard, {} of {all}: {sent_back:#?}",
        sent_back.len()
    );
}

#[test]
fn code_alone_stops_most_bad_claims() {
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut passed = Vec::new();
    for case in cases() {
        let document = Document::new(&case.text, Format::Text);
        let finder = Finder::new(&document);
        for row in &case.bad {
            let count = kinds.entry(row[0].clone()).or_default();
            count.1 += 1;
            if faults(&document, &finder, &row[1..]).is_empty() {
                passed.push(format!("{}: {}", row[0], row[2]));
            } else {
                count.0 += 1;
            }
        }
    }
    let (stopped, all) = kinds.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(all >= 150 && stopped * 100 >= all * 90, "{stopped} of {all}: {kinds:#?} {passed:#?}");
    for kind in ["corrected", "answer", "unit", "month", "date", "relative", "negation added"] {
        let (stopped, all) = kinds[kind];
        assert!(stopped * 100 >= all * 95, "{kind}: {stopped} of {all} {passed:#?}");
    }
}

/// Which claims are noticed to be missing, and how many sentences are asked about although nothing is.
#[test]
fn what_is_left_out_is_noticed() {
    let (mut complete, mut sentences, mut noticed, mut dropped) = (Vec::new(), 0, 0, 0);
    for case in cases() {
        let document = Document::new(&case.text, Format::Text);
        let finder = Finder::new(&document);
        let gaps = |good: &[&Vec<String>]| {
            let account = |row: &&Vec<String>| {
                let quote = finder.find(&row[0], 0..case.text.len(), 0)?;
                Some((quote, row[1].clone()))
            };
            let said: Vec<_> = good.iter().filter_map(account).collect();
            let claims: Vec<Account<'_>> =
                said.iter().map(|(quote, claim)| claim_account(quote.clone(), claim)).collect();
            coverage(&document, &finder, 0..document.sentences().len(), &claims, "")
        };
        sentences += document.sentences().len();
        let all: Vec<&Vec<String>> = case.good.iter().collect();
        let whole = gaps(&all);
        for without in 0..all.len() {
            let rest: Vec<&Vec<String>> =
                all.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, row)| *row).collect();
            dropped += 1;
            noticed += usize::from(gaps(&rest) != whole);
        }
        complete.extend(whole.into_iter().map(|gap| (gap, case.text.clone())));
    }
    assert!(complete.len() * 100 <= sentences, "{} of {sentences}: {complete:#?}", complete.len());
    assert!(noticed * 100 >= dropped * 80, "{noticed} of {dropped}");
}

#[test]
fn advice_is_one_harmless_line() {
    let text = "It is 5 m high.";
    let document = Document::new(text, Format::Text);
    let finder = Finder::new(&document);
    let whole = 0..text.len();
    let claim = format!("It is\n\u{1b}[31m 7 \u{202e}\"km\" high, says {}.", "Name".repeat(100));
    let anchored = Anchored {
        section: &whole,
        claim: &claim,
        quote: &whole,
        question: "?",
        claimed_answer: "8 m",
        as_of: AS_OF,
    };
    let faults = check(&document, &finder, &anchored);
    assert!(faults.len() > 2, "{faults:?}");
    assert!(faults.is_sorted_by_key(|fault| std::cmp::Reverse(fault.severity)));
    for fault in faults {
        let advice = fault.advice();
        assert!(!advice.contains(char::is_control) && advice.chars().count() < 300, "{advice}");
    }
}

#[test]
fn a_quote_outside_of_its_section_is_missing() {
    let text = "It is 5 m high. It is old.";
    let document = Document::new(text, Format::Text);
    let finder = Finder::new(&document);
    let anchored = |quote: &std::ops::Range<usize>| {
        let anchored = Anchored {
            section: &(0..15),
            claim: "It is old.",
            quote,
            question: "?",
            claimed_answer: "old",
            as_of: AS_OF,
        };
        check(&document, &finder, &anchored).first().map(|fault| fault.kind)
    };
    for quote in [16..25, 3..3, 9..99] {
        assert_eq!(anchored(&quote), Some(super::FaultKind::QuoteMissing), "{quote:?}");
    }
}

/// Texts that other code takes long for, in two sizes: the larger may take no more than its share of time.
#[test]
fn reading_takes_time_of_a_texts_length() {
    let pieces = [
        "A.)", ". 1", "((", "1,", "a\u{301}", "³", "10^", "not ", "about ", "1-", "[", "*a", "| a ", "- a\n",
        "# a\n", "\"", "东", "5 ago ", "May ", "I ", "<a", "]( ", "`", "&a", "1 000 ", "twenty-", "一",
        "A. ", "![", "> ",
    ];
    for piece in pieces {
        let took = |count: usize| {
            let text = piece.repeat(count);
            let start = std::time::Instant::now();
            for format in [Format::Text, Format::Markdown] {
                let document = Document::new(&text, format);
                let finder = Finder::new(&document);
                document.sections(2_000);
                finder.find("no such quote", 0..text.len(), 0);
                let sentences = 0..document.sentences().len();
                let claim = claim_account(0..text.len(), &text[..text.len().min(90)]);
                coverage(&document, &finder, sentences, &[claim], "");
            }
            start.elapsed()
        };
        // 16 times the work; a square would be 256 times. A busy machine may stop one attempt, not each.
        let is_linear = |_| took(4_000) < took(250) * 96 + std::time::Duration::from_millis(150);
        assert!((0..5).any(is_linear), "{piece:?}");
    }
}

proptest! {
    #[test]
    fn no_claim_makes_it_panic(
        text in "([a-zA-Z0-9 .,!?%$€°\"|#*_()\\[\\]-]|\n|not |about |Mai |年|東|ア|한|ö|½|²|ﬁ|\\PC){0,80}",
        claim in "([a-zA-Z0-9 .,%-]|not |all |Mai |年|東|\\PC){0,40}",
        from in 0_usize..90,
        length in 0_usize..90,
        markdown in any::<bool>(),
    ) {
        let format = if markdown { Format::Markdown } else { Format::Text };
        let document = Document::new(&text, format);
        let finder = Finder::new(&document);
        for sentence in document.sentences() {
            prop_assert!(text.get(sentence.range.clone()).is_some_and(|sentence| !sentence.is_empty()));
        }
        prop_assert!(document.sentences().windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
        let sections = document.sections(20);
        prop_assert_eq!(sections.iter().map(|section| section.sentences.len()).sum::<usize>(), document.sentences().len());
        prop_assert!(sections.iter().all(|section| text.get(section.range.clone()).is_some()));
        let whole = 0..text.len();
        let quote = from..from + length;
        let found = finder.find(&claim, whole.clone(), 0).unwrap_or_default();
        prop_assert!(text.get(found.clone()).is_some());
        for quote in [quote, found, whole.clone()] {
            let anchored = Anchored { section: &whole, claim: &claim, quote: &quote, question: &text, claimed_answer: &claim, as_of: AS_OF };
            check(&document, &finder, &anchored);
        }
        for kind in [AccountKind::Claim, AccountKind::Skipped, AccountKind::Duplicate] {
            let accounts = [Account { quote: from..from + length, says: &claim, kind }, claim_account(0..length, &text)];
            coverage(&document, &finder, 0..document.sentences().len(), &accounts, &text);
        }
    }

    #[test]
    fn any_sentence_of_a_text_is_found_in_it(words in prop::collection::vec("[a-zé“”’–]{1,6}|[0-9]{1,4}|東京|½", 1..30), pick in 0_usize..30, markdown in any::<bool>()) {
        let text = words.join(" ");
        let format = if markdown { Format::Markdown } else { Format::Text };
        let document = Document::new(&text, format);
        let finder = Finder::new(&document);
        let word = &words[pick % words.len()];
        let before: String = words[..pick % words.len()].join(" ");
        let found = finder.find(word, before.len()..text.len(), 0);
        prop_assert!(found.is_some(), "{} in {}", word, text);
    }
}
