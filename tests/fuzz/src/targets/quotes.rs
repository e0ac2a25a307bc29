//! Quotes in statements: what is found stands there, at the bounds of characters, and a claim's check takes no harm from
//! any text.

use jiff::civil::date;
use mk::verify::anchors::{Anchored, check};
use mk::verify::document::{Account, AccountKind, Document, Finder, Format, coverage};
use mk::verify::words::Folded;

fn even(text: &str) -> String {
    Folded::new(text).text().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn run(bytes: &[u8]) {
    let input = String::from_utf8_lossy(bytes);
    // The last line is a quote of what stands before it.
    let (text, quote) = input.rsplit_once('\n').unwrap_or((&input, &input));
    for format in [Format::Text, Format::Markdown] {
        let document = Document::new(text, format);
        let finder = Finder::new(&document);
        let whole = 0..text.len();
        let mut places = Vec::new();
        for occurrence in 0..3 {
            let Some(place) = finder.find(quote, whole.clone(), occurrence) else { break };
            let found = text.get(place.clone()).expect("whole characters");
            // Markdown is found without its marks as well.
            assert!(
                format == Format::Markdown || even(found).contains(&even(quote)),
                "{found:?} is not {quote:?}"
            );
            assert!(
                places.last().is_none_or(|last: &std::ops::Range<usize>| last.start <= place.start),
                "out of order"
            );
            let span = document.char_span(&place);
            assert_eq!(span.end - span.start, found.chars().count());
            places.push(place);
        }
        let place = places.first().cloned().unwrap_or(whole.clone());
        let anchored = Anchored {
            section: &whole,
            claim: quote,
            quote: &place,
            question: text,
            claimed_answer: quote,
            as_of: date(2026, 11, 26),
        };
        for fault in check(&document, &finder, &anchored) {
            assert!(!fault.advice().contains(char::is_control), "{fault:?}");
        }
        let roles = [AccountKind::Claim, AccountKind::Skipped, AccountKind::Duplicate].into_iter().cycle();
        let accounts: Vec<Account<'_>> = places
            .into_iter()
            .zip(roles)
            .map(|(quote_at, kind)| Account { quote: quote_at, says: quote, asks: quote, kind })
            .collect();
        coverage(&document, &finder, 0..document.sentences().len(), &accounts, text, date(2026, 11, 26));
    }
}
