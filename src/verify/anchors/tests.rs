//! What must hold of good and bad extractions ([`super::cases`]), and of any.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::cases::{AS_OF, Case, held_out, tuned_on};
use super::{Anchored, Fault, Severity, check};
use crate::verify::document::{Account, AccountKind, Document, Finder, Format, Gap, coverage};

const MANUAL: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/man/mk-verification.7.md"));

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

fn claim_account<'a>(quote: std::ops::Range<usize>, says: &'a str, asks: &'a str) -> Account<'a> {
    Account { quote, says, asks, kind: AccountKind::Claim }
}

/// What became of a set of extractions.
#[derive(Default)]
struct Figures {
    good: usize,
    hard: usize,
    /// Of the good ones, those with a fault.
    sent_back: Vec<String>,
    /// Of the bad ones of each kind, how many have a fault, and how many there are.
    kinds: BTreeMap<String, (usize, usize)>,
    /// Of the bad ones, those without a fault.
    passed: Vec<String>,
}

impl Figures {
    fn of(cases: &[Case]) -> Self {
        let mut figures = Self::default();
        for case in cases {
            let document = Document::new(&case.text, Format::Text);
            let finder = Finder::new(&document);
            for row in &case.good {
                figures.good += 1;
                let faults = faults(&document, &finder, row);
                figures.hard += usize::from(faults.iter().any(|fault| fault.severity == Severity::Hard));
                figures.sent_back.extend((!faults.is_empty()).then(|| format!("{} {faults:?}", row[1])));
            }
            for row in &case.bad {
                let count = figures.kinds.entry(row[0].clone()).or_default();
                count.1 += 1;
                if faults(&document, &finder, &row[1..]).is_empty() {
                    figures.passed.push(format!("{}: {}", row[0], row[2]));
                } else {
                    count.0 += 1;
                }
            }
        }
        figures
    }

    /// How many bad ones have a fault, and how many there are.
    fn stopped(&self) -> (usize, usize) {
        self.kinds.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }
}

#[test]
fn good_claims_pass() {
    let figures = Figures::of(&tuned_on());
    assert!(figures.good >= 300, "{}", figures.good);
    let sent_back = figures.sent_back.len();
    assert!(
        figures.hard == 0 && sent_back * 100 <= figures.good,
        "{} hard, {sent_back} of {}: {:#?}",
        figures.hard,
        figures.good,
        figures.sent_back
    );
}

#[test]
fn code_alone_stops_most_bad_claims() {
    let figures = Figures::of(&tuned_on());
    let ((stopped, all), kinds, passed) = (figures.stopped(), figures.kinds, figures.passed);
    assert!(all >= 150 && stopped * 100 >= all * 90, "{stopped} of {all}: {kinds:#?} {passed:#?}");
    for kind in ["corrected", "answer", "unit", "month", "date", "relative", "negation added"] {
        let (stopped, all) = kinds[kind];
        assert!(stopped * 100 >= all * 95, "{kind}: {stopped} of {all} {passed:#?}");
    }
}

#[test]
fn the_rules_hold_for_texts_that_they_were_not_tuned_on() {
    let figures = Figures::of(&held_out());
    let (stopped, all) = figures.stopped();
    assert!(figures.good >= 100 && all >= 60, "{} good, {all} bad", figures.good);
    let sent_back = figures.sent_back.len();
    assert!(
        figures.hard == 0 && sent_back * 100 <= figures.good * 2,
        "{sent_back} of {}: {:#?}",
        figures.good,
        figures.sent_back
    );
    assert!(stopped * 100 >= all * 60, "{stopped} of {all}: {:#?}", figures.passed);
}

#[test]
fn the_manual_tells_these_figures() {
    let (tuned, held_out) = (Figures::of(&tuned_on()), Figures::of(&held_out()));
    let mut rows = vec![
        "| extraction | of the set that the rules were tuned on | of a set held out |".to_owned(),
        "|---|---|---|".to_owned(),
        format!(
            "| good, sent back | {} of {} | {} of {} |",
            tuned.sent_back.len(),
            tuned.good,
            held_out.sent_back.len(),
            held_out.good
        ),
    ];
    let shown = |(stopped, all): (usize, usize)| match all {
        0 => "–".to_owned(),
        _ => format!("{stopped} of {all}"),
    };
    rows.push(format!("| bad, stopped | {} | {} |", shown(tuned.stopped()), shown(held_out.stopped())));
    let of = |figures: &Figures, kind: &String| figures.kinds.get(kind).copied().unwrap_or_default();
    let mut kinds: Vec<_> = tuned.kinds.keys().chain(held_out.kinds.keys()).collect();
    kinds.sort_by_key(|kind| (std::cmp::Reverse(of(&tuned, kind).1), *kind));
    kinds.dedup();
    for kind in kinds {
        rows.push(format!("| – {kind} | {} | {} |", shown(of(&tuned, kind)), shown(of(&held_out, kind))));
    }
    let table = rows.join("\n");
    assert!(MANUAL.contains(&table), "man/mk-verification.7.md should have this table:\n\n{table}\n");
}

/// What of the texts of a set their claims do not account for, all of them and without each.
#[derive(Default)]
struct Left {
    sentences: usize,
    gaps: Vec<(Gap, String)>,
    dropped: usize,
    noticed: usize,
}

impl Left {
    fn of(cases: Vec<Case>) -> Self {
        let mut left = Self::default();
        for case in cases {
            let document = Document::new(&case.text, Format::Text);
            let finder = Finder::new(&document);
            let quote = |row: &Vec<String>| finder.find(&row[0], 0..case.text.len(), 0);
            let accounts: Vec<Account<'_>> = case
                .good
                .iter()
                .filter_map(|row| Some(claim_account(quote(row)?, &row[1], &row[3])))
                .collect();
            let sentences = document.sentences().len();
            let gaps =
                |accounts: &[Account<'_>]| coverage(&document, &finder, 0..sentences, accounts, "", AS_OF);
            let whole = gaps(&accounts);
            for without in 0..accounts.len() {
                let mut rest = accounts.clone();
                rest.remove(without);
                left.noticed += usize::from(gaps(&rest) != whole);
            }
            left.dropped += accounts.len();
            left.sentences += sentences;
            left.gaps.extend(whole.into_iter().map(|gap| (gap, case.text.clone())));
        }
        left
    }
}

/// Which claims are noticed to be missing, and how many sentences are asked about although nothing is.
#[test]
fn what_is_left_out_is_noticed() {
    for (cases, most) in [(tuned_on(), 1), (held_out(), 2)] {
        let Left { sentences, gaps, dropped, noticed } = Left::of(cases);
        assert!(gaps.len() * 100 <= sentences * most, "{} of {sentences}: {gaps:#?}", gaps.len());
        assert!(noticed * 100 >= dropped * 80, "{noticed} of {dropped}");
    }
}

/// A claim about a text that is its quote, with an answer.
fn kinds(text: &str, claim: &str, answer: &str) -> Vec<(Severity, super::FaultKind)> {
    let document = Document::new(text, Format::Text);
    let finder = Finder::new(&document);
    let whole = 0..text.len();
    let question = format!("Which of these is right: {claim}");
    let anchored = Anchored {
        section: &whole,
        claim,
        quote: &whole,
        question: &question,
        claimed_answer: answer,
        as_of: AS_OF,
    };
    check(&document, &finder, &anchored).iter().map(|fault| (fault.severity, fault.kind)).collect()
}

#[test]
fn a_changed_sign_unit_order_or_scale_is_a_hard_fault() {
    for (text, claim, answer) in [
        ("The boiling point of neon is 246 °C.", "The boiling point of neon is -246 °C.", "-246 °C"),
        ("It was −5 °C in Oslo.", "It was 5 °C in Oslo.", "5 °C"),
        ("It was 5 °C in Oslo.", "It was −5 °C in Oslo.", "−5 °C"),
        ("It was minus 5 degrees in Oslo.", "It was 5 degrees in Oslo.", "5 degrees"),
        ("Die Temperatur lag bei -5 °C.", "Die Temperatur lag bei 5 °C.", "5 °C"),
        ("The balance is -300 euros.", "The balance is 300 euros.", "300 euros"),
        ("The balance is -$300 now.", "The balance is $300 now.", "$300"),
        ("Growth was -2.5 % in 2020.", "Growth was 2.5 % in 2020.", "2.5 %"),
        ("It was 5 °C below zero.", "It was 5 °C above zero.", "5 °C"),
        ("Caesar died in 44 BC.", "Caesar died in 44.", "44"),
        ("Caesar died in 44 BC.", "Caesar died in AD 44.", "AD 44"),
        ("César est mort en 44 av. J.-C. à Rome.", "César est mort en 44 à Rome.", "44"),
        ("Cäsar starb 44 v. Chr. in Rom.", "Cäsar starb 44 in Rom.", "44"),
        ("Alexander died on 10 June 323 BC.", "Alexander died on 10 June 323.", "10 June 323"),
        ("The plane flew at 5 °N.", "The plane flew at 5 °S.", "5 °S"),
        ("It lies at 33 degrees south.", "It lies at 33 degrees north.", "33 degrees north"),
        ("The trial lasted a week.", "The trial lasted a year.", "a year"),
        ("It takes one week.", "It takes one month.", "one month"),
        ("It weighs a kilogram.", "It weighs a tonne.", "a tonne"),
        ("It was built in the 1980s.", "It was built in 1980.", "1980"),
        ("Thousands of people died.", "Millions of people died.", "Millions"),
        ("It is 3/4 full.", "It is 4/3 full.", "4/3"),
        ("The score was 21-14.", "The score was 14-21.", "14-21"),
        ("It has 5 GB.", "It has 5 Gb.", "5 Gb"),
        ("It uses 5 mW.", "It uses 5 MW.", "5 MW"),
        ("It costs 5 cents.", "It costs 5 dollars.", "5 dollars"),
    ] {
        let kinds = kinds(text, claim, answer);
        assert!(kinds.iter().any(|(severity, _)| *severity == Severity::Hard), "{text} {claim}: {kinds:?}");
    }
}

#[test]
fn an_opposite_is_a_fault() {
    use super::FaultKind::{Hedge, Opposite};
    for (text, claim, answer, kind) in [
        ("It was built before 1990 in Rome.", "It was built after 1990 in Rome.", "after 1990", Hedge),
        ("It rose by 5 % in 2020.", "It fell by 5 % in 2020.", "5 %", Opposite),
        ("It rose by 5 % in 2020.", "It rose to 5 % in 2020.", "5 %", Opposite),
        ("Die Zahl stieg um 5 % im Jahr 2020.", "Die Zahl stieg auf 5 % im Jahr 2020.", "5 %", Opposite),
        ("He died 5 years before the war.", "He died 5 years after the war.", "5 years", Opposite),
        ("The church is 5 km north of Rome.", "The church is 5 km south of Rome.", "5 km", Opposite),
        ("人口増加は5%だった。", "人口減少は5%だった。", "5%", Opposite),
    ] {
        let kinds = kinds(text, claim, answer);
        assert!(kinds.iter().any(|(_, found)| *found == kind), "{text} {claim}: {kinds:?}");
    }
}

/// What is written in another way, or said of the same in other words, is right.
#[test]
fn signs_and_directions_in_other_words_are_none() {
    for (text, claim, answer) in [
        ("It was 5 degrees below zero in Oslo.", "It was -5 degrees in Oslo.", "-5 degrees"),
        ("It was minus 5 °C in Oslo.", "It was −5 °C in Oslo.", "−5 °C"),
        ("Caesar died in 44 BC.", "Caesar died in 44 BCE.", "44 BCE"),
        ("It lasted from 100–44 BC in Rome.", "It began in 100 BC in Rome.", "100 BC"),
        ("It lies at 33° S.", "It lies at 33 degrees south.", "33 degrees south"),
        ("A million people came.", "1 million people came.", "1 million"),
        ("The war lasted until 1945.", "The war ended in 1945.", "1945"),
        ("It lasted a week and opened daily.", "It was open once a day for a week.", "once a day"),
        ("Pages 5-10 are missing.", "Pages 5 to 10 are missing.", "5 to 10"),
        ("It rose from 5 % to 10 %.", "It rose to 10 %.", "10 %"),
        ("Thousands came, and millions watched.", "Millions watched.", "Millions"),
        ("It began in 1914 and ended in 1918.", "It ended in 1918.", "1918"),
    ] {
        let kinds = kinds(text, claim, answer);
        let is_grave = |(severity, kind): &(Severity, super::FaultKind)| {
            *severity == Severity::Hard
                || matches!(kind, super::FaultKind::Opposite | super::FaultKind::Hedge)
        };
        assert!(!kinds.iter().any(is_grave), "{text} {claim}: {kinds:?}");
    }
}

#[test]
fn a_value_that_neither_question_nor_answer_has_is_a_hard_fault() {
    let text = "Mount Everest in the Himalayas is 9,100 m tall and was climbed on 29 May 1953.";
    let document = Document::new(text, Format::Text);
    let finder = Finder::new(&document);
    let whole = 0..text.len();
    let is_unasked = |claim: &str, question: &str, claimed_answer: &str| {
        let anchored =
            Anchored { section: &whole, claim, quote: &whole, question, claimed_answer, as_of: AS_OF };
        let faults = check(&document, &finder, &anchored);
        faults.iter().any(|fault| (fault.severity, fault.kind) == (Severity::Hard, super::FaultKind::Unasked))
    };
    let tall = "Mount Everest in the Himalayas is 9,100 m tall.";
    assert!(is_unasked(tall, "In which mountain range is Mount Everest?", "Himalayas"));
    assert!(is_unasked(tall, "Is Mount Everest a tall mountain?", "Yes"));
    assert!(!is_unasked(tall, "How tall is Mount Everest?", "9100 metres"));
    assert!(!is_unasked(tall, "Which mountain is 9,100 m tall?", "Mount Everest"));
    let climbed = "Mount Everest was climbed on 29 May 1953.";
    assert!(is_unasked(climbed, "In which year was Mount Everest climbed?", "1953"));
    assert!(!is_unasked(climbed, "When was Mount Everest climbed?", "29 May 1953"));
    assert!(!is_unasked(climbed, "On which day of May 1953 was Mount Everest climbed?", "29"));
}

/// Also where it stands first, and where it begins like the text's own.
#[test]
fn another_name_is_a_fault() {
    use super::FaultKind::Name;
    for (text, claim, answer, is_fault) in [
        ("France has 67 million people.", "Germany has 67 million people.", "67 million", true),
        ("Niger has 27 million people.", "Nigeria has 27 million people.", "27 million", true),
        (
            "We know Niger has 27 million people.",
            "We know Nigeria has 27 million people.",
            "27 million",
            true,
        ),
        ("The Nigerian people are 27 million.", "Nigeria has 27 million people.", "27 million", false),
        ("It was constructed in 1887.", "Construction ended in 1887.", "1887", false),
    ] {
        let found = kinds(text, claim, answer).iter().any(|(_, kind)| *kind == Name);
        assert_eq!(found, is_fault, "{text} {claim}");
    }
}

#[test]
fn a_question_or_an_answer_of_its_own_is_a_fault() {
    use super::FaultKind::{AnswerNotInClaim, Question, Unasked};
    for (claim, question, answer, kind) in [
        ("Everest is 8,849 feet tall.", "How many metres tall is Everest?", "8,849", Some(Question)),
        ("Everest is 8,849 feet tall.", "How many feet tall is Everest?", "8,849", None),
        ("Everest is 8,849 feet tall.", "How tall is Everest?", "8,849 feet", None),
        ("Sydney is big.", "Which city hosted the Olympic Games of 2000?", "Sydney", Some(Question)),
        ("Venus is the largest planet.", "Which planet is not the largest?", "Venus", Some(Question)),
        ("Venus is not large.", "Which planet is not large?", "Venus", None),
        ("The two are Rome and Bonn.", "Which are the two?", "Rome and Bonn", None),
        ("Sydney is the capital.", "Which is the capital?", "Canberra, the capital", Some(AnswerNotInClaim)),
        (
            "The Wall fell in Bonn in 1989.",
            "When did the Wall fall?",
            "1989 in Berlin",
            Some(AnswerNotInClaim),
        ),
        ("Paris is the capital of Germany.", "Which city is a capital?", "Paris", Some(Unasked)),
        ("Paris is the capital of Germany.", "Which city is Germany's capital?", "Paris", None),
        ("Gold is lighter than water.", "What do people drink?", "Gold", Some(Unasked)),
        ("Gold is lighter than water.", "What is lighter than water?", "Gold", None),
        ("Billet H7 kostet 5 Euro.", "Was kostet H7?", "5 Euro", None),
        ("Sydney is big.", "Which city in Peru is big?", "Sydney", Some(Question)),
        ("The Moon is made of cheese.", "Which symbol is it?", "✅", Some(AnswerNotInClaim)),
        ("The Moon is made of cheese.", "What is the Moon?", "it", Some(AnswerNotInClaim)),
    ] {
        let document = Document::new(claim, Format::Text);
        let finder = Finder::new(&document);
        let whole = 0..claim.len();
        let anchored = Anchored {
            section: &whole,
            claim,
            quote: &whole,
            question,
            claimed_answer: answer,
            as_of: AS_OF,
        };
        let kinds: Vec<_> =
            check(&document, &finder, &anchored).into_iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds.is_empty(), kind.is_none(), "{question} {answer}: {kinds:?}");
        assert!(kind.is_none_or(|kind| kinds.contains(&kind)), "{question} {answer}: {kinds:?}");
    }
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
                let said = &text[..text.len().min(90)];
                let claim = claim_account(0..text.len(), said, said);
                coverage(&document, &finder, sentences, &[claim], "", AS_OF);
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
        for kind in [AccountKind::Claim, AccountKind::Skipped, AccountKind::Duplicate, AccountKind::Repeated] {
            let accounts = [Account { quote: from..from + length, says: &claim, asks: &text, kind }, claim_account(0..length, &text, &claim)];
            coverage(&document, &finder, 0..document.sentences().len(), &accounts, &text, AS_OF);
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
