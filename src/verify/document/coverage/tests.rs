//! What accounts for a sentence and what does not; when two claims are the same; where a passage stands.

use super::*;
use crate::verify::anchors::cases::AS_OF;

fn accounts<'a>(text: &str, finder: &Finder, said: &[(AccountKind, &str, &'a str)]) -> Vec<Account<'a>> {
    let account = |(kind, quote, says): &(AccountKind, &str, &'a str)| Account {
        quote: finder.find(quote, 0..text.len(), 0).unwrap(),
        says,
        asks: says,
        kind: *kind,
    };
    said.iter().map(account).collect()
}

/// Which sentences are not accounted for, and what is missing of them.
fn gaps(text: &str, said: &[(AccountKind, &str, &str)], before: &str) -> Vec<(usize, Vec<String>)> {
    let document = Document::new(text, Format::Text);
    let finder = Finder::new(&document);
    let accounts = accounts(text, &finder, said);
    let gaps = coverage(&document, &finder, 0..document.sentences().len(), &accounts, before, AS_OF);
    gaps.into_iter().map(|gap| (gap.sentence, [gap.values, gap.unasked, gap.names].concat())).collect()
}

#[test]
fn a_wide_quote_counts_for_what_its_claim_says() {
    use AccountKind::Claim;
    let text = "Gold is lighter than water. Anna Berg was born in 1879. It was in Ulm.";
    let gap = |at: usize| (at, Vec::<String>::new());
    assert_eq!(gaps(text, &[(Claim, text, "Anna Berg was born in Ulm in 1879.")], ""), [gap(0)]);
    let own = (Claim, "Gold is lighter than water", "Gold is lighter than water.");
    assert_eq!(gaps(text, &[own, (Claim, text, "Anna Berg was born in Ulm in 1879.")], ""), []);
    let text = "巴黎是法国的首都。金比水轻。";
    assert_eq!(gaps(text, &[(Claim, text, "巴黎是法国的首都。")], ""), [gap(1)]);
    assert_eq!(gaps(text, &[(Claim, text, "巴黎是法国的首都。"), (Claim, "金比水轻", "金比水轻。")], ""), []);
}

#[test]
fn a_skipped_part_counts_for_the_sentence_that_it_mostly_holds() {
    use AccountKind::Skipped;
    let text = "Gold is lighter than water.";
    for (part, is_gap) in [
        (".", true),
        ("than", true),
        ("Gold", true),
        ("lighter than water", false),
        ("Gold is lighter", false),
    ] {
        assert_eq!(!gaps(text, &[(Skipped, part, part)], "").is_empty(), is_gap, "{part}");
    }
    assert_eq!(gaps(text, &[(Skipped, "Gold", "Gold"), (Skipped, "water", "water")], ""), []);
}

#[test]
fn a_claim_does_not_account_for_a_sentence_of_other_words() {
    use AccountKind::Claim;
    // Nothing that code knows parts the two.
    let text = "Paris is the capital of France ~ the moon is much larger than the whole earth.";
    let paris = (Claim, "Paris is the capital of France", "Paris is the capital of France.");
    assert_eq!(gaps(text, &[paris], ""), [(0, vec![])]);
    let moon = (Claim, "the moon is much larger than the whole earth", "The moon is larger than the earth.");
    assert_eq!(gaps(text, &[paris, moon], ""), []);
}

#[test]
fn a_part_between_marks_of_which_nothing_is_said_is_missing() {
    use AccountKind::Claim;
    for (said, unsaid) in [
        ("Paris, the old town on the river Seine, is the capital of France", "gold is lighter than water"),
        ("パリはフランスの首都で", "月は地球より大きい"),
        ("巴黎是法国的首都", "月球比地球大"),
        ("파리는 프랑스의 수도이고", "달은 지구보다 크다"),
    ] {
        let text = format!("{said}, {unsaid}.");
        let found = gaps(&text, &[(Claim, said, said)], "");
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(gaps(&text, &[(Claim, said, said), (Claim, unsaid, unsaid)], ""), [], "{text}");
    }
    let text = "Paris, as we all know, is the capital of France.";
    assert_eq!(gaps(text, &[(Claim, text, "Paris is the capital of France.")], ""), []);
}

#[test]
fn marks_in_brackets_need_not_be_said() {
    use AccountKind::Claim;
    let says = "The capital of Japan is Tokyo.";
    for (mark, is_said) in
        [("[sandbox:fail=beta]", true), ("[sic]", true), ("[gold cures cancer in adults]", false)]
    {
        let text = format!("The capital of Japan is Tokyo {mark}.");
        assert_eq!(
            gaps(&text, &[(Claim, says.trim_end_matches('.'), says)], "").is_empty(),
            is_said,
            "{mark}"
        );
    }
}

#[test]
fn a_number_counts_where_it_is_asked_for() {
    let document = |text| Document::new(text, Format::Text);
    for (text, asks, missing) in [
        ("Mount Everest in Asia is 9,100 m tall.", "Asia", Some("9,100 m")),
        ("Mount Everest in Asia is 9,100 m tall.", "9100 metres", None),
        ("Mount Everest in Asia is 9,100 m tall.", "9,100 euros", Some("9,100 m")),
        ("The Titanic sank in the Atlantic in 1913.", "The Atlantic", Some("1913")),
        ("Caesar died in Rome in 44 BC.", "44", None),
        ("Apollo 11 landed on the Moon.", "The Moon", None),
        ("Covid-19 came from China.", "China", None),
        ("The iPhone 15 has a steel frame.", "A steel frame", None),
        ("Python 3.12 is written in C.", "C", None),
        ("Chanel No. 5 smells of roses.", "Roses", None),
        ("It is type 1 of house number 46 in Bonn.", "Bonn", None),
        ("The two countries are France and the second largest, Spain.", "France and Spain", None),
        ("About 300 people live in Rome.", "Rome", Some("300")),
        ("We know that 2 + 2 = 4.", "4", None),
        ("We know that 10 - 6 = 4.", "4", None),
        ("Two plus two makes 4.", "4", None),
        ("1. Gold is heavy.", "heavy", None),
        ("1942. Gold is heavy.", "heavy", Some("1942")),
        ("Rome was founded 90 years ago.", "Rome", Some("90 years")),
        ("Rome was founded 90 years ago.", "1936", None),
        ("The bridge, opened in 2026, closed three days ago.", "2026", Some("three days")),
        ("Rome was founded about 90 years ago.", "about 1936", None),
        ("Rom wurde vor etwa 90 Jahren gegründet.", "etwa 1936", None),
        ("Il y a 9100 lacs en France.", "la France", Some("9100")),
        ("Der Turm steht 9100 Meter vor Paris.", "Paris", Some("9100 Meter")),
    ] {
        let (document, whole) = (document(text), 0..text.len());
        let finder = Finder::new(&document);
        let account = Account { quote: whole, says: text, asks, kind: AccountKind::Claim };
        let gaps = coverage(&document, &finder, 0..document.sentences().len(), &[account], "", AS_OF);
        let values: Vec<String> =
            gaps.into_iter().flat_map(|gap| [gap.values, gap.unasked].concat()).collect();
        assert_eq!(values, missing.into_iter().collect::<Vec<_>>(), "{text} {asks}");
    }
}

#[test]
fn the_claims_that_take_a_number_for_granted_are_named() {
    let presuming = |text: &str, claims: [(&'static str, &'static str); 2]| {
        let document = Document::new(text, Format::Text);
        let finder = Finder::new(&document);
        let kind = AccountKind::Claim;
        let accounts = claims.map(|(says, asks)| Account { quote: 0..text.len(), says, asks, kind });
        let gaps = coverage(&document, &finder, 0..document.sentences().len(), &accounts, "", AS_OF);
        gaps.into_iter().flat_map(|gap| gap.presuming).collect::<Vec<_>>()
    };
    let asia = ("Mount Everest in Asia is 9,100 m tall.", "Asia");
    let text = "Mount Everest in Asia is 9,100 m tall.";
    assert_eq!(presuming(text, [("Mount Everest is in Asia.", "Asia"), asia]), [1]);
    assert!(presuming(text, [asia, ("Mount Everest is 9,100 m tall.", "9,100 m")]).is_empty());
    // Too many to look for each in each claim.
    let many = "9,100 m and ".repeat(MAX_PRESUMED + 1) + "Mount Everest in Asia";
    assert_eq!(presuming(&many, [("Mount Everest is in Asia.", "Asia"), asia]), [0, 1]);
}

#[test]
fn a_duplicate_counts_for_what_is_said_elsewhere() {
    use AccountKind::{Claim, Duplicate};
    let text = "Gold is heavy. The price of gold was 2,000 dollars.";
    let (gold, price) = ((Claim, "Gold is heavy", "Gold is heavy."), "The price of gold was 2,000 dollars.");
    let missing = |values: &[&str]| {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        vec![(1, values)]
    };
    assert_eq!(gaps(text, &[gold, (Duplicate, price, price)], ""), missing(&["2,000 dollars"]));
    assert_eq!(
        gaps(text, &[gold, (Duplicate, price, price)], "The price of gold was 2000 dollars then."),
        []
    );
    let text = "Gold is heavy. Silver rusts fast.";
    let silver = (Duplicate, "Silver rusts fast.", "Silver rusts fast.");
    assert_eq!(gaps(text, &[gold, silver], "Iron is old."), missing(&[]));
    for (first, second) in [
        ("Gold is heavier than water.", "Gold is lighter than water."),
        ("Penguins can swim well.", "Penguins cannot swim well."),
        ("Smoking causes cancer in adults.", "Smoking cures cancer in adults."),
        ("It is 8,849 m tall.", "It is 8,849 m tall."),
        ("Jupiter is larger than Mars.", "Mars is larger than Jupiter."),
        ("Cats hunt dogs.", "Dogs hunt cats."),
    ] {
        let text = format!("{first} {second}");
        let document = Document::new(&text, Format::Text);
        let finder = Finder::new(&document);
        let account = |quote, says, kind| Account { quote, says, asks: says, kind };
        let accounts =
            [account(0..first.len(), first, Claim), account(first.len() + 1..text.len(), second, Duplicate)];
        let gaps = coverage(&document, &finder, 0..2, &accounts, "", AS_OF);
        assert_eq!(gaps.iter().map(|gap| gap.sentence).collect::<Vec<_>>(), [1], "{text}");
    }
}

#[test]
fn claims_differ_by_names_and_values() {
    let document = Document::new("Paris is the capital of France.", Format::Text);
    let finder = Finder::new(&document);
    for (one, other, expected) in [
        ("Paris is the capital of France.", "Paris is the capital of Germany.", Likeness::Different),
        ("Paris is the capital of France.", "The capital of France is Paris.", Likeness::Same),
        ("Jupiter is a planet.", "Mars is a planet.", Likeness::Different),
        ("The tower is 330 m tall.", "The tower is 331 m tall.", Likeness::Different),
        ("The tower was completed in 1889.", "The tower was finished in 1889.", Likeness::Near),
        ("Penguins can fly.", "Penguins cannot fly.", Likeness::Near),
        ("巴黎是法国的首都", "巴黎是德国的首都", Likeness::Different),
        ("برلين عاصمة ألمانيا", "برلين عاصمة فرنسا", Likeness::Different),
    ] {
        let found = likeness(&finder, one, other);
        assert_eq!(found == Likeness::Different, expected == Likeness::Different, "{one} {other} {found:?}");
        assert!(found == expected || expected == Likeness::Near, "{one} {other} {found:?}");
    }
}

#[test]
fn a_passage_that_is_not_copied_is_found_by_its_words() {
    let text = "Gold is heavy. Everest is 9,100 m tall. Silver is light.";
    let document = Document::new(text, Format::Text);
    let finder = Finder::new(&document);
    let nearest = |passage: &str| nearest(&document, &finder, 0..3, passage);
    assert_eq!(nearest("The height of Everest (9100 m)"), Some(1));
    assert_eq!(nearest("that silver is light"), Some(2));
    assert_eq!(nearest("Nothing of the kind stands there"), None);
}

#[test]
fn a_long_sentence_is_read_once_and_not_to_its_end() {
    let filler = "so ".repeat(Fit::MAX_TOKENS);
    let text = format!("Gold is heavy. {filler}gold is heavy.");
    let document = Document::new(&text, Format::Text);
    let finder = Finder::new(&document);
    let mut fit = Fit::new(&document, &finder, "Gold is heavy.");
    let end = text.len() - 2;
    assert!(fit.of(&(0..4)) > 0);
    assert_eq!(fit.of(&(end - 3..end)), 0, "what is said beyond its first words does not count");
    assert_eq!((fit.of(&(20..22)), fit.known.len()), (0, 2), "another place in the same sentence");
}
