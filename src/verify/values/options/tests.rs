//! Options that are the same, differ, overlap or have an order.

use proptest::prelude::*;

use super::*;

fn same_in(one: &str, other: &str, languages: Languages) -> bool {
    Choice::of(one, languages).is_same(&Choice::of(other, languages))
}

fn overlap(one: &str, other: &str) -> bool {
    Choice::new(one).overlaps(&Choice::new(other))
}

fn order(one: &str, other: &str) -> Option<Ordering> {
    Choice::new(one).order(&Choice::new(other))
}

#[test]
fn options_that_mean_the_same_are_found() {
    for (one, other) in [
        ("16", "sixteen"),
        ("16", "sechzehn"),
        ("26 July 2024", "July 26, 2024"),
        ("26 July 2024", "2024-07-26"),
        ("26. Juli 2024", "26 July 2024"),
        ("26 de julio de 2024", "26.07.2024"),
        ("2024年7月26日", "26 July 2024"),
        ("on 26 July 2024", "26 July 2024"),
        ("USA", "United States"),
        ("the USA", "Vereinigte Staaten"),
        ("Côte d'Ivoire", "Ivory Coast"),
        ("100 °C", "212 °F"),
        ("37 °C", "98.6 °F"),
        ("13 Mio.", "13,000,000"),
        ("13 million", "13 000 000"),
        ("1.5 km", "1500 m"),
        ("5 kilometres", "5 km"),
        ("50%", "50 percent"),
        ("50 %", "fifty per cent"),
        ("8849 m", "8,849 metres"),
        ("10:30 pm", "22:30"),
        ("5 p.m.", "17:00"),
        ("two hundred and five", "205"),
        ("zweihundertfünfzig", "250"),
        ("3億5千万", "350,000,000"),
        ("三百二十", "320"),
        ("about 500", "approximately 500"),
        ("at least 79", "79 or more"),
        ("€5", "5 euros"),
        ("US$5 million", "5 million US dollars"),
        ("24 hours", "1 day"),
        ("12 months", "one year"),
        ("5-10 km", "5 to 10 km"),
        ("1904–05", "1904–1905"),
        ("Louis XIV", "Louis 14"),
        ("½ litre", "0.5 l"),
        ("10^6", "1,000,000"),
        ("3 × 10⁸ m/s", "300,000,000 m/s"),
        ("двадцать пять", "25"),
        ("the 16 men", "16 men"),
        ("in 1889", "1889"),
        ("im Jahr 1889", "1889"),
        ("in the year 1889", "1889"),
        ("1889年", "1889"),
        ("at 10:30", "10:30"),
        ("from 5 to 10", "5–10"),
        ("between 5 and 10", "5 to 10"),
        ("EUR 5", "5 euros"),
        ("14th", "fourteenth"),
        ("5 PM", "5 pm"),
        ("“5 km”", "5 km"),
        ("Art. 5", "Art 5"),
        ("44 BC", "44 BCE"),
        ("44 v. Chr.", "44 BC"),
        ("33° S", "33° south"),
        ("minus 5 °C", "-5 °C"),
        ("5 °C below zero", "-5 °C"),
        ("noon", "12:00"),
        ("half", "50 %"),
        ("over half", "more than 50 percent"),
        ("zero", "0"),
        ("5 ft", "60 in"),
        ("10⁶", "a million"),
        ("a week", "7 days"),
        ("before 1990", "prior to 1990"),
        ("Bogotá", "BOGOTÁ"),
    ] {
        assert!(
            same(one, other) && same(other, one),
            "{one} and {other}: {:?} {:?}",
            Parsed::read(one, Languages::ANY).values,
            Parsed::read(other, Languages::ANY).values
        );
    }
    let german = Languages::of_code("de").unwrap();
    assert!(same_in("1.233", "1233", german) && !same("1.233", "1233"));
    let english = Languages::of_code("en").unwrap();
    assert!(same_in("1 billion", "1,000,000,000", english) && !same("1 billion", "1,000,000,000"));
}

#[test]
fn options_that_differ_are_kept_apart() {
    for (one, other) in [
        ("03/04/2020", "3 April 2020"),
        ("03/04/2020", "4 March 2020"),
        ("1.233", "1233"),
        ("1 t", "1 ton"),
        ("1 gallon", "3.785 l"),
        ("1 pint", "0.568 l"),
        ("0 °C", "273.15 K"),
        ("1 month", "30 days"),
        ("1 kB", "1 KiB"),
        ("1 KiB", "1000 bytes"),
        ("5 %", "5 percentage points"),
        ("version 2.1", "version 2.10"),
        ("2.1", "2.10"),
        ("C-311/18", "C-311/19"),
        ("C-311/18", "311/18"),
        ("about 500", "500"),
        ("at least 79", "79"),
        ("more than 90", "at least 90"),
        ("5 mW", "5 MW"),
        ("Co", "CO"),
        ("England", "UK"),
        ("Korea", "South Korea"),
        ("Congo", "DR Congo"),
        ("Georgia", "United States"),
        ("$5", "US$5"),
        ("5 m", "5 km"),
        ("5", "5 m"),
        ("36 °C", "97 °F"),
        ("July 2024", "26 July 2024"),
        ("2024", "July 2024"),
        ("1914–1918", "1914"),
        ("Apollo 11", "Apollo 12"),
        ("16 men", "16 women"),
        ("5–10", "5 and 10"),
        ("-5 °C", "5 °C"),
        ("10⁵", "105"),
        ("10:30", "10:30 pm"),
        ("first", "1"),
        ("H2O", "HO2"),
        // Words that say when, where or in which direction.
        ("before 1980", "after 1980"),
        ("since 1990", "until 1990"),
        ("in 1990", "before 1990"),
        ("by 1990", "from 1990"),
        ("5 above", "5 below"),
        ("10 over", "10 under"),
        ("5 years before", "5 years after"),
        ("for 5 years", "in 5 years"),
        ("to 5 %", "by 5 %"),
        ("his 5", "her 5"),
        ("all 5", "5"),
        ("only 5", "5"),
        ("1990 or 1991", "1990 and 1991"),
        ("vor 1990", "nach 1990"),
        ("avant 1990", "après 1990"),
        ("до 1990", "после 1990"),
        ("5 vor 12", "5 nach 12"),
        ("a 5 %", "al 5 %"),
        // Letters, brackets, marks, signs and case.
        ("5 °N", "5 °S"),
        ("30° N", "30° S"),
        ("44 BC", "44"),
        ("minus 5", "5"),
        ("Article 5", "Article 5a"),
        ("Article 5", "Article 5(1)"),
        ("§ 5 a", "§ 5"),
        ("Section 230", "Section 230(c)"),
        ("5 mg", "5 Mg"),
        ("5 MHz", "5 mHz"),
        ("5 GB", "5 Gb"),
        ("5 A", "5 a"),
        ("5'", "5\""),
        ("5'", "5"),
        (".5", "5"),
        ("Mg", "mg"),
        ("5 men 3", "5 3 men"),
        ("14th", "14"),
        ("21–14", "14–21"),
        ("", "0"),
    ] {
        assert!(!same(one, other) && !same(other, one), "{one} and {other}");
    }
}

#[test]
fn bounds_and_ranges_overlap_with_what_lies_in_them() {
    for (one, other) in [
        ("at least 79", "95"),
        ("more than 90", "95"),
        ("more than 90", "at least 79"),
        ("5–10 km", "7 km"),
        ("5-10 km", "8000 m"),
        ("about 100", "98"),
        ("July 2024", "26 July 2024"),
        ("2024", "July 2024"),
        ("the 1990s", "1995"),
        ("19th century", "1850"),
        ("up to 20%", "15 %"),
        ("mindestens 79", "95"),
        ("between 5 and 10", "7"),
        ("zwischen 5 und 10", "7"),
        ("no more than 10", "7"),
        ("not less than 79", "95"),
        ("не менее 79", "95"),
        ("不少于79", "95"),
        ("90人以上", "95人"),
        ("since 2010", "2015"),
        ("until 1990", "1985"),
        ("before 1900", "1850"),
        ("after 1990", "July 2024"),
        ("after 1980", "after 1990"),
        ("vor 1990", "1980"),
        ("1990年以前", "1985年"),
        ("over half", "60 %"),
        ("USA", "America"),
        ("Holland", "the Netherlands"),
        ("England", "UK"),
    ] {
        assert!(overlap(one, other) && overlap(other, one), "{one} and {other}");
    }
    for (one, other) in [
        ("79", "95"),
        ("at least 79", "50"),
        ("more than 90", "90"),
        ("less than 90", "90"),
        ("5–10 km", "7"),
        ("2024", "2023"),
        ("July 2024", "26 June 2024"),
        ("the 1990s", "2000"),
        ("Paris", "Rome"),
        ("about 100", "120"),
        ("about 1450", "1400"),
        ("since 2010", "since 2015"),
        ("before 1980", "after 1980"),
        ("until July 2024", "26 August 2024"),
        ("26 July 2024", "26 July 2024"),
        ("21–14", "14–21"),
        ("1914 bis 1918", "1920"),
        ("America", "Canada"),
    ] {
        assert!(!overlap(one, other) && !overlap(other, one), "{one} and {other}");
    }
}

#[test]
fn options_of_one_kind_have_an_order() {
    use Ordering::{Greater, Less};
    for (one, other, expected) in [
        ("5 km", "6000 m", Some(Less)),
        ("1,889", "330", Some(Greater)),
        ("26 July 2024", "July 25, 2024", Some(Greater)),
        ("1889", "July 1889", Some(Less)),
        ("5 million", "sixteen", Some(Greater)),
        ("10:30", "9:30 pm", Some(Less)),
        ("1.233", "5", None),
        ("5 km", "5 kg", None),
        ("Paris", "5", None),
    ] {
        assert_eq!(order(one, other), expected, "{one} and {other}");
    }
}

proptest! {
    #[test]
    fn no_options_make_it_panic(one in "[0-9a-z .,:/%°-]{0,24}|\\PC{0,24}", other in "[0-9IVX一十万月年 .,-]{0,24}|\\PC{0,24}") {
        prop_assert!(same(&one, &one));
        prop_assert_eq!(same(&one, &other), same(&other, &one));
        prop_assert_eq!(overlap(&one, &other), overlap(&other, &one));
        prop_assert_eq!(order(&one, &other), order(&other, &one).map(Ordering::reverse));
    }

    #[test]
    fn a_number_is_the_same_however_it_is_grouped(number in 10_000_i64..1_000_000_000_000) {
        let digits = number.to_string();
        for mark in [",", " ", "'", "\u{202f}"] {
            let mut grouped = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at) % 3 == 0 {
                    grouped.push_str(mark);
                }
                grouped.push(digit);
            }
            prop_assert!(same(&grouped, &digits), "{}", grouped);
        }
    }
}

/// Every word of the tables that carries nothing by itself, and some that say where or when, but for articles.
#[test]
fn no_two_options_that_differ_in_a_word_are_the_same() {
    let small = include_str!("../data/stop_words.tsv").lines().filter(|line| !line.starts_with('#'));
    let roles = include_str!("../data/option_words.tsv").lines().filter(|line| !line.starts_with('#'));
    let silent: Vec<&str> = roles.flat_map(|line| line.split('\t').nth(1).unwrap().split('|')).collect();
    let words: Vec<&str> = small
        .flat_map(|line| line.split('\t').nth(1).unwrap().split('|'))
        .chain([
            "north", "south", "N", "S", "BC", "AD", "Nord", "nord", "(a)", "a)", "b", "'", "\"", "bis", "+",
        ])
        .filter(|word| !silent.contains(word))
        .collect();
    let hedge = |option: &str| Parsed::read(option, Languages::ANY).values[0].hedge;
    for pattern in ["{} 5", "5 {}", "{} 5 km", "5 km {}", "{} 1990", "1990 {}", "Article 5 {}"] {
        let bare = pattern.replace("{}", "");
        let mut before: Option<String> = None;
        for word in &words {
            let option = pattern.replace("{}", word);
            let is_value = Parsed::read(&option, Languages::ANY).values.len() != 1;
            // Quotation marks around an option are none of it.
            if is_value
                || option.starts_with(['\'', '"'])
                || hedge(&option) != super::super::lexicon::Hedge::None
            {
                continue;
            }
            assert!(!same(&option, &bare), "{option} and {bare}");
            if let Some(before) = before.filter(|before| before.to_lowercase() != option.to_lowercase()) {
                assert!(!same(&option, &before), "{option} and {before}");
            }
            before = Some(option);
        }
    }
}
