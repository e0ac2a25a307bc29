//! The tables of [`super::facts`], expanded: every fact with its question, its answer and the sentences that state it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::facts::{CAPITALS, CASES, ELEMENTS, Kind, LANDMARKS, PLANETS, ROWS, Row, SPELLINGS, Topic};
use super::numbers;

/// The distances from a claimed year to other ones, on each side.
const YEAR_STEPS: [f64; 3] = [2.0, 4.0, 11.0];

/// One fact.
pub(super) struct Fact {
    pub(super) topic: Topic,
    pub(super) kind: Kind,
    pub(super) question: String,
    pub(super) answer: String,
    /// Other spellings of the answer.
    also: Vec<String>,
    pub(super) misconception: Option<String>,
    rivals: Vec<String>,
    /// The texts before and after the answer in sentences that state it, without an initial article.
    pub(super) forms: Vec<(String, String)>,
}

/// All facts.
pub(super) fn facts() -> &'static [Fact] {
    &KNOWLEDGE.facts
}

/// The fact that a question asks for.
pub(super) fn fact_for_question(question: &str) -> Option<&'static Fact> {
    KNOWLEDGE.by_question.get(&fold(question)).and_then(|index| KNOWLEDGE.facts.get(*index))
}

/// Normalizes a text for comparison: lowercase, single spaces, no initial article and no final full stop.
pub(super) fn fold(text: &str) -> String {
    let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let spaced = spaced.trim_end_matches('.');
    spaced.strip_prefix("the ").unwrap_or(spaced).to_owned()
}

struct Knowledge {
    facts: Vec<Fact>,
    by_question: HashMap<String, usize>,
}

static KNOWLEDGE: LazyLock<Knowledge> = LazyLock::new(|| {
    let facts: Vec<Fact> = capitals()
        .chain(elements())
        .chain(planets())
        .chain(landmarks())
        .chain(cases())
        .chain(ROWS.iter().map(single))
        .collect();
    let by_question = facts.iter().enumerate().map(|(index, fact)| (fold(&fact.question), index)).collect();
    Knowledge { facts, by_question }
});

impl Fact {
    fn new(topic: Topic, kind: Kind, question: String, answer: &str, forms: &[String]) -> Self {
        let also = spellings(answer).skip(1).map(str::to_owned).collect();
        let forms = forms.iter().flat_map(|form| expand(form, kind)).collect();
        let (misconception, rivals) = (None, Vec::new());
        Self { topic, kind, question, answer: answer.to_owned(), also, misconception, rivals, forms }
    }

    fn with(mut self, misconception: &str, rivals: Vec<String>) -> Self {
        self.misconception = (!misconception.is_empty()).then(|| misconception.to_owned());
        self.rivals = rivals;
        self
    }

    /// Whether two answers to this question are equivalent, even if spelled differently.
    pub(super) fn same(&self, one: &str, other: &str) -> bool {
        if let (Some(one), Some(other)) = (numbers::read(one), numbers::read(other)) {
            return numbers::same(one, other);
        }
        fold(self.spelled(one)) == fold(self.spelled(other))
    }

    /// The spelling in the tables of an answer that they contain; otherwise the text as it is.
    pub(super) fn spelled<'a>(&'a self, text: &'a str) -> &'a str {
        let folded = fold(text);
        if self.also.iter().any(|also| fold(also) == folded) {
            return &self.answer;
        }
        self.known_answers().find(|known| fold(known) == folded).unwrap_or(text)
    }

    fn known_answers(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.answer).chain(&self.misconception).chain(&self.rivals).map(String::as_str)
    }

    /// Whether the tables contain this answer, be it right or wrong.
    pub(super) fn knows(&self, text: &str) -> bool {
        self.known_answers().any(|known| self.same(known, text))
    }

    /// Other answers of the same kind, including the right one if it differs, in an order that does not reveal it: three
    /// names, or up to three numbers on each side.
    pub(super) fn rivals(&self, claimed: &str) -> Vec<String> {
        let as_number = |text: &str| numbers::read(text).unwrap_or_default();
        match self.kind {
            Kind::Year => {
                return numbers::rivals(as_number(&self.answer), as_number(claimed), YEAR_STEPS);
            }
            Kind::Number => {
                return numbers::rivals(as_number(&self.answer), as_number(claimed), numbers::STEPS);
            }
            Kind::Name | Kind::Symbol => {}
        }
        // "Pacific" and "Pacific Ocean" would be two options for one thing.
        let overlaps = |rival: &str| {
            let (rival, claimed) = (fold(rival), fold(claimed));
            self.kind == Kind::Name && (rival.contains(&claimed) || claimed.contains(&rival))
        };
        let mut rivals: Vec<String> = Vec::new();
        for known in self.known_answers() {
            let is_right = known == self.answer;
            let is_new = !self.same(known, claimed) && !rivals.iter().any(|rival| self.same(rival, known));
            if is_new && (is_right || !overlaps(known)) && rivals.len() < 3 {
                rivals.push(known.to_owned());
            }
        }
        rivals.sort();
        rivals
    }
}

/// A name and its alternative spellings.
fn spellings(name: &str) -> impl Iterator<Item = &str> {
    let others = SPELLINGS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, others)| others);
    std::iter::once(name).chain(others.iter().copied())
}

/// All spellings of a subject as alternatives in a form; an article is part of the spelling.
fn subject(name: &str) -> String {
    format!("({})", spellings(name).collect::<Vec<_>>().join("|").to_lowercase())
}

/// All wordings of a form, split at the answer.
fn expand(form: &str, kind: Kind) -> Vec<(String, String)> {
    let mut wordings = vec![String::new()];
    let mut rest = form;
    while let Some((before, group_on)) = rest.split_once('(') {
        let (group, after) = group_on.split_once(')').unwrap_or((group_on, ""));
        wordings = wordings
            .iter()
            .flat_map(|start| {
                group.split('|').map(move |alternative| format!("{start}{before}{alternative}"))
            })
            .collect();
        rest = after;
    }
    let mut split = Vec::new();
    for wording in &wordings {
        let whole = fold(&format!("{wording}{rest}"));
        let Some((before, behind)) = whole.split_once("{}") else {
            continue;
        };
        split.push((before.to_owned(), behind.to_owned()));
        // "The wall fell in 1989" is also said as "In 1989, the wall fell".
        if let Some(event) = before.strip_suffix(" in ").filter(|_| kind == Kind::Year && behind.is_empty()) {
            split.extend(["", "the "].map(|article| ("in ".to_owned(), format!(", {article}{event}"))));
        }
    }
    split
}

/// Some other entries of a table, as wrong answers for the one at `index`.
fn other_entries<const N: usize>(index: usize, entry: impl Fn(usize) -> &'static str) -> Vec<String> {
    // Irregular strides, so that an entry's rivals are not always its neighbours in the table.
    [1, 7, 13, 19, 23].map(|step| entry((index + step) % N).to_owned()).to_vec()
}

fn capitals() -> impl Iterator<Item = Fact> {
    CAPITALS.iter().enumerate().map(|(index, (country, capital, mistaken))| {
        let country_names = subject(country);
        let forms = [
            format!("the (capital|capital city) of {country_names} is {{}}"),
            format!("{{}} is the (capital|capital city) of {country_names}"),
            format!("{country_names}'s capital is {{}}"),
        ];
        let question = format!("What is the capital of {country}?");
        Fact::new(Topic::Geography, Kind::Name, question, capital, &forms)
            .with(mistaken, other_entries::<{ CAPITALS.len() }>(index, |at| CAPITALS[at].1))
    })
}

fn elements() -> impl Iterator<Item = Fact> {
    ELEMENTS.iter().enumerate().flat_map(|(index, (element, symbol, number, mistaken))| {
        let element_names = subject(element);
        let symbol_forms = [
            format!("{element_names} has the (chemical symbol|symbol) {{}}"),
            format!("the (chemical symbol|symbol) (of|for) {element_names} is {{}}"),
            format!("{{}} is the (chemical symbol|symbol) (of|for) {element_names}"),
            format!("{element_names}'s (chemical symbol|symbol) is {{}}"),
        ];
        let symbol_question = format!("What is the chemical symbol of {element}?");
        let number_forms = [
            format!("{element_names} has (the atomic number|atomic number|an atomic number of) {{}}"),
            format!("the atomic number of {element_names} is {{}}"),
        ];
        let number_question = format!("What is the atomic number of {element}?");
        [
            Fact::new(Topic::Chemistry, Kind::Symbol, symbol_question, symbol, &symbol_forms)
                .with(mistaken, other_entries::<{ ELEMENTS.len() }>(index, |at| ELEMENTS[at].1)),
            Fact::new(Topic::Chemistry, Kind::Number, number_question, &number.to_string(), &number_forms),
        ]
    })
}

fn planets() -> impl Iterator<Item = Fact> {
    const ORDINALS: [(&str, &str); PLANETS.len()] = [
        ("first", "1st"),
        ("second", "2nd"),
        ("third", "3rd"),
        ("fourth", "4th"),
        ("fifth", "5th"),
        ("sixth", "6th"),
        ("seventh", "7th"),
        ("eighth", "8th"),
    ];
    PLANETS.iter().zip(ORDINALS).enumerate().map(|(index, (planet, (word, short)))| {
        let forms = [
            format!("{{}} is the ({word}|{short}) planet from the sun"),
            format!("the ({word}|{short}) planet from the sun is {{}}"),
        ];
        let question = format!("Which planet is the {word} from the Sun?");
        Fact::new(Topic::Astronomy, Kind::Name, question, planet, &forms)
            .with("", other_entries::<{ PLANETS.len() }>(index, |at| PLANETS[at]))
    })
}

fn landmarks() -> impl Iterator<Item = Fact> {
    LANDMARKS.iter().enumerate().map(|(index, (landmark, city))| {
        let forms = [format!("{} (is|stands|is located|is situated) in {{}}", subject(landmark))];
        let question = format!("In which city is {landmark}?");
        Fact::new(Topic::Geography, Kind::Name, question, city, &forms)
            .with("", other_entries::<{ LANDMARKS.len() }>(index, |at| LANDMARKS[at].1))
    })
}

fn cases() -> impl Iterator<Item = Fact> {
    CASES.iter().map(|(case, year)| {
        let forms = [format!("{} was (decided|handed down) in {{}}", case.to_lowercase())];
        Fact::new(Topic::Law, Kind::Year, format!("In which year was {case} decided?"), year, &forms)
    })
}

fn single(row: &Row) -> Fact {
    let forms: Vec<String> = row.forms.iter().map(|form| (*form).to_owned()).collect();
    let rivals = row.rivals.iter().map(|rival| (*rival).to_owned()).collect();
    let mut fact = Fact::new(row.topic, row.kind, row.question.to_owned(), row.answer, &forms)
        .with(row.misconception, rivals);
    fact.also.extend(row.also.iter().map(|also| (*also).to_owned()));
    fact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_question_forms_and_rivals() {
        assert_eq!(KNOWLEDGE.by_question.len(), facts().len(), "two facts share a question");
        for fact in facts() {
            assert!(!fact.forms.is_empty(), "{}", fact.question);
            for claimed in std::iter::once(&fact.answer).chain(&fact.misconception) {
                let rivals = fact.rivals(claimed);
                let expected = if matches!(fact.kind, Kind::Year | Kind::Number) { 3..=6 } else { 3..=3 };
                assert!(expected.contains(&rivals.len()), "{}: {rivals:?}", fact.question);
                assert!(!rivals.iter().any(|rival| fact.same(rival, claimed)), "{}", fact.question);
                let has_right = rivals.iter().any(|rival| fact.same(rival, &fact.answer));
                assert_eq!(has_right, !fact.same(claimed, &fact.answer), "{}: {rivals:?}", fact.question);
            }
        }
    }

    #[test]
    fn forms_expand_to_all_wordings() {
        let wordings = expand("the (a|b) was built (here|) in {}", Kind::Year);
        let as_text: Vec<String> =
            wordings.iter().map(|(before, behind)| format!("{before}_{behind}")).collect();
        assert!(as_text.contains(&"a was built here in _".to_owned()), "{as_text:?}");
        assert!(as_text.contains(&"b was built in _".to_owned()), "{as_text:?}");
        assert!(as_text.contains(&"in _, the a was built".to_owned()), "{as_text:?}");
    }

    #[test]
    fn different_spellings_are_the_same_answer() {
        let fact = fact_for_question("what is the capital of the united states?").unwrap();
        assert!(fact.same("Washington DC", "Washington, D.C."));
        assert_eq!(fact.spelled("new york city"), "New York City");
        assert!(!fact.same("Boston", "Washington"));
    }
}
