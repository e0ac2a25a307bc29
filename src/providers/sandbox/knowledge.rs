//! Everything that the simulated models know: `data/facts.tsv`, expanded to facts, each with its question, its answer
//! and the sentences that state it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::reading::numbers;

/// The table; its head says how it is read.
const TABLE: &str = include_str!("data/facts.tsv");

/// The distances from a claimed year to other ones, on each side.
const YEAR_STEPS: [f64; 3] = [2.0, 4.0, 11.0];

/// The topic of a fact; models differ in the topics on which they abstain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Geography,
    Chemistry,
    Astronomy,
    Science,
    History,
    Culture,
    Law,
    Disputed,
}

impl Topic {
    fn read(name: &str) -> Option<Self> {
        Some(match name {
            "Geography" => Self::Geography,
            "Chemistry" => Self::Chemistry,
            "Astronomy" => Self::Astronomy,
            "Science" => Self::Science,
            "History" => Self::History,
            "Culture" => Self::Culture,
            "Law" => Self::Law,
            "Disputed" => Self::Disputed,
            _ => return None,
        })
    }
}

/// The kind of an answer, so that a sentence with another meaning is not taken for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Year,
    Number,
    Symbol,
}

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
    let generated = [capitals(), elements(), planets(), landmarks(), cases()].into_iter().flatten();
    let rows = ["year", "number", "name"].into_iter().flat_map(|kind| {
        let rows = rows(kind).into_iter();
        rows.filter_map(move |row| single(kind, &row))
    });
    let facts: Vec<Fact> = generated.chain(rows).collect();
    let by_question = facts.iter().enumerate().map(|(index, fact)| (fold(&fact.question), index)).collect();
    Knowledge { facts, by_question }
});

/// Names with their other spellings.
static SPELLINGS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let rows = rows("spelling").into_iter();
    rows.filter_map(|row| Some((*row.first()?, list(row.get(1)?)))).collect()
});

/// The fields behind a kind of row, of all its rows.
fn rows(kind: &str) -> Vec<Vec<&'static str>> {
    let rows = TABLE.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix('\t'));
    rows.map(|row| row.split('\t').collect()).collect()
}

/// The entries of a field.
fn list(field: &'static str) -> Vec<&'static str> {
    field.split('|').filter(|entry| !entry.is_empty()).collect()
}

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

    /// Other answers of the same kind, including the right one if it differs, in an order that does not reveal it:
    /// three names, or up to three numbers on each side.
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
    std::iter::once(name).chain(SPELLINGS.get(name).into_iter().flatten().copied())
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

/// A field of some other rows of a table, as wrong answers for the row at `index`.
fn other_entries(rows: &[Vec<&str>], index: usize, field: usize) -> Vec<String> {
    // Irregular strides, so that an entry's rivals are not always its neighbours in the table.
    let entry =
        |step: usize| rows.get((index + step) % rows.len())?.get(field).map(|entry| (*entry).to_owned());
    [1, 7, 13, 19, 23].into_iter().filter_map(entry).collect()
}

/// The facts of each row of a kind, of which there are `N` fields.
fn each<const N: usize>(
    kind: &str,
    facts: impl Fn([&'static str; N], &[Vec<&'static str>], usize) -> Vec<Fact>,
) -> Vec<Fact> {
    let rows = rows(kind);
    let fields = rows.iter().enumerate().filter_map(|(index, row)| Some((index, row[..].try_into().ok()?)));
    fields.flat_map(|(index, fields)| facts(fields, &rows, index)).collect()
}

fn capitals() -> Vec<Fact> {
    each("capital", |[country, capital, mistaken], rows, index| {
        let country_names = subject(country);
        let forms = [
            format!("the (capital|capital city) of {country_names} is {{}}"),
            format!("{{}} is the (capital|capital city) of {country_names}"),
            format!("{country_names}'s capital is {{}}"),
        ];
        let question = format!("What is the capital of {country}?");
        let fact = Fact::new(Topic::Geography, Kind::Name, question, capital, &forms);
        vec![fact.with(mistaken, other_entries(rows, index, 1))]
    })
}

fn elements() -> Vec<Fact> {
    each("element", |[element, symbol, number, mistaken], rows, index| {
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
        vec![
            Fact::new(Topic::Chemistry, Kind::Symbol, symbol_question, symbol, &symbol_forms)
                .with(mistaken, other_entries(rows, index, 1)),
            Fact::new(Topic::Chemistry, Kind::Number, number_question, number, &number_forms),
        ]
    })
}

fn planets() -> Vec<Fact> {
    each("planet", |[planet, word, short], rows, index| {
        let forms = [
            format!("{{}} is the ({word}|{short}) planet from the sun"),
            format!("the ({word}|{short}) planet from the sun is {{}}"),
        ];
        let question = format!("Which planet is the {word} from the Sun?");
        let fact = Fact::new(Topic::Astronomy, Kind::Name, question, planet, &forms);
        vec![fact.with("", other_entries(rows, index, 0))]
    })
}

fn landmarks() -> Vec<Fact> {
    each("landmark", |[landmark, city], rows, index| {
        let forms = [format!("{} (is|stands|is located|is situated) in {{}}", subject(landmark))];
        let question = format!("In which city is {landmark}?");
        let fact = Fact::new(Topic::Geography, Kind::Name, question, city, &forms);
        vec![fact.with("", other_entries(rows, index, 1))]
    })
}

fn cases() -> Vec<Fact> {
    each("case", |[case, year], _, _| {
        let forms = [format!("{} was (decided|handed down) in {{}}", case.to_lowercase())];
        vec![Fact::new(Topic::Law, Kind::Year, format!("In which year was {case} decided?"), year, &forms)]
    })
}

/// The fact of a row that stands for itself.
fn single(kind: &str, row: &[&'static str]) -> Option<Fact> {
    let [topic, question, answer, more @ ..] = row else { return None };
    let (kind, also, misconception, rivals, forms) = match (kind, more) {
        ("year", forms) => (Kind::Year, "", "", "", forms),
        ("number", [misconception, forms @ ..]) => (Kind::Number, "", *misconception, "", forms),
        ("name", [also, misconception, rivals, forms @ ..]) => {
            (Kind::Name, *also, *misconception, *rivals, forms)
        }
        _ => return None,
    };
    let owned = |entries: Vec<&str>| entries.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let fact = Fact::new(Topic::read(topic)?, kind, (*question).to_owned(), answer, &owned(forms.to_vec()));
    let mut fact = fact.with(misconception, owned(list(rivals)));
    fact.also.extend(owned(list(also)));
    Some(fact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_question_forms_and_rivals() {
        assert_eq!(KNOWLEDGE.by_question.len(), facts().len(), "two facts share a question");
        let rows = TABLE.lines().filter(|line| !line.starts_with('#') && !line.starts_with("spelling"));
        let of_elements = TABLE.lines().filter(|line| line.starts_with("element")).count();
        assert_eq!(facts().len(), rows.count() + of_elements, "each row is read, those of elements twice");
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
