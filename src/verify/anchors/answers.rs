//! The claimed answer: what the claim says, and what stands near its quote.

use super::check::{Case, Part};
use super::fault::{Fault, FaultKind, Severity};
use super::names::{Words, content, holds, is_told, name_tokens};
use super::numbers::{meet, near, near_places, shown, unsupported};
use crate::verify::options::is_yes_or_no;
use crate::verify::values::{Choice, Found, Hedge, Meaning, Number, Unit, Value};
use crate::verify::words::{Script, Token, is_same_stem};

/// The most words near a quote among which an answer is looked for.
const MAX_WORDS: usize = 2_000;

pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    faults.extend(unasked(case));
    faults.extend(asked_otherwise(case));
    faults.extend(foreign_name(case));
    let before = faults.len();
    let mut has_values = false;
    // "In which year BC" is answered without "BC".
    let is_sign = |meaning: Meaning| matches!(meaning, Meaning::Sign(_));
    let asks_for_sign = case.question.reading.senses().iter().any(|sense| is_sign(sense.meaning));
    for found in case.answer.reading.values().iter().filter(|found| !found.weak) {
        has_values = true;
        let found = if asks_for_sign { either_sign(found) } else { found.clone() };
        value(case, &found, faults);
    }
    if has_values {
        hedge(case, faults);
    }
    words(case, faults, has_values);
    if faults.len() > before && is_yes_or_no(&Choice::new(case.answer.text())) {
        faults.truncate(before);
    }
}

/// A value of the claim that is neither in its question nor in its answer: nobody is asked about it.
fn unasked(case: &Case<'_>) -> Option<Fault> {
    let parts = [&case.question, &case.answer];
    let given = || parts.iter().flat_map(|part| part.reading.values()).flat_map(|found| &found.readings);
    let has_number = |number: i64| {
        given().any(|value| match *value {
            Value::Number(other) => other.whole() == Some(number),
            Value::Date(date) => {
                date.year.map(i64::from) == Some(number) || date.day.map(i64::from) == Some(number)
            }
            Value::Time(_) => false,
        })
    };
    let has_month =
        |month: u8| given().any(|value| matches!(value, Value::Date(date) if date.month == month));
    let is_given = |value: &Value| match *value {
        Value::Number(number) => {
            given().any(|other| *other == *value || *other == Value::Number(number.negated()))
                || number.whole().is_some_and(has_number)
        }
        Value::Date(date) => {
            has_month(date.month)
                && date.year.is_none_or(|year| has_number(i64::from(year)))
                && date.day.is_none_or(|day| has_number(i64::from(day)))
        }
        Value::Time(time) => given().any(|other| *other == *value) || has_number(i64::from(time.0 / 3600)),
    };
    let has_words = |found: &Found| {
        let tokens = case.claim.reading.tokens();
        let all = || parts.iter().flat_map(|part| part.reading.tokens().all());
        tokens.all()[tokens.within(&found.range)]
            .iter()
            .all(|token| all().any(|other| other.hash == token.hash))
    };
    let mut claimed = case.claim.reading.values().iter().filter(|found| !found.weak);
    let left_out = claimed.find(|found| !found.readings.iter().any(is_given) && !has_words(found))?;
    Some(Fault::new(Severity::Hard, FaultKind::Unasked, shown(&case.claim, left_out)))
}

/// A value of the question that neither claim nor text has, or a unit that it asks for and that the claim's number is not
/// in.
fn asked_otherwise(case: &Case<'_>) -> Option<Fault> {
    let question = &case.question;
    let claimed = case.claim.reading.values();
    // "Which of the two" counts what the options are.
    let is_small = |number: Number| number.whole().is_some_and(|one| one.abs() <= 12);
    let is_count = |found: &Found| found.numbers().next().is_some() && found.numbers().all(is_small);
    let is_year_of = |found: &Found, date: &Found| {
        let months = |found: &Found| {
            let dates = found.readings.iter().filter_map(|value| match value {
                Value::Date(date) => Some((date.month, date.year)),
                _ => None,
            });
            dates.collect::<Vec<_>>()
        };
        months(found).iter().any(|one| months(date).contains(one))
    };
    let is_said = |found: &Found| claimed.iter().any(|one| meet(one, found) || is_year_of(found, one));
    let mut values = question.reading.values().iter().filter(|found| !found.weak);
    // One that stands elsewhere in the text may tell what is meant.
    let is_foreign = |found: &&Found| {
        !is_said(found) && unsupported(case, found).is_some() && !(is_count(found) && found.unit.is_none())
    };
    if let Some(found) = values.find(is_foreign) {
        return Some(Fault::new(Severity::Hard, FaultKind::Question, shown(question, found)));
    }
    let answer = case.answer.reading.values().iter().find(|found| !found.weak && found.unit.is_none())?;
    let unit = claimed.iter().find(|one| meet(one, answer))?.unit?;
    let whole = 0..question.reading.tokens().all().len();
    let asked = question.reading.senses_within(&whole);
    let asked: Vec<(Unit, usize)> = asked
        .filter_map(|sense| match sense.meaning {
            Meaning::Unit(asked) => Some((asked, sense.at as usize)),
            _ => None,
        })
        .collect();
    let (_, at) = asked.first()?;
    let is_asked = asked.iter().any(|(asked, _)| asked.may_be(unit));
    let word = question.text().get(question.reading.tokens().all()[*at].range()).unwrap_or_default();
    (!is_asked).then(|| Fault::new(Severity::Soft, FaultKind::Question, word))
}

/// A name of the question that neither claim nor text has. In German, any noun may look like one.
fn foreign_name(case: &Case<'_>) -> Option<Fault> {
    if is_german(case) {
        return None;
    }
    let question = &case.question;
    let tokens = question.reading.tokens().all();
    let names = name_tokens(question.text(), &question.reading, 0..tokens.len());
    let is_known = |at: &usize| {
        is_told(question, *at, case.finder.stems())
            || holds(&case.claim, (question, &tokens[*at]))
            || is_told(question, *at, &Words::stems(&case.claim))
    };
    let foreign = names.into_iter().find(|at| !is_known(at))?;
    Some(Fault::new(Severity::Soft, FaultKind::Question, &question.text()[tokens[foreign].range()]))
}

/// A value of the answer has to be one of the claim, and near the quote.
fn value(case: &Case<'_>, found: &Found, faults: &mut Vec<Fault>) {
    let Some(claimed) = case.claim.reading.values().iter().find(|claimed| meet(claimed, found)) else {
        // A number may stand in the claim as a word that is not read by itself: "one", "zero".
        if !stands_as_word(case, found) {
            faults.push(Fault::new(Severity::Hard, FaultKind::AnswerNotInClaim, shown(&case.answer, found)));
        }
        return;
    };
    if let (Some(unit), Some(claimed)) = (found.unit, claimed.unit)
        && !unit.may_be(claimed)
    {
        faults.push(Fault::new(Severity::Hard, FaultKind::AnswerNotInClaim, shown(&case.answer, found)));
        return;
    }
    let is_finer = found.readings.iter().all(|value| matches!(value, Value::Date(date) if !claimed.readings.iter().any(|claimed| matches!(claimed, Value::Date(claimed) if claimed.supports(*date)))));
    if is_finer && matches!(claimed.readings.first(), Some(Value::Date(_))) {
        faults.push(Fault::new(Severity::Hard, FaultKind::AnswerNotInClaim, shown(&case.answer, found)));
        return;
    }
    if unsupported(case, found).is_none() && !is_near(case, found) {
        faults.push(Fault::new(Severity::Hard, FaultKind::AnswerFar, shown(&case.answer, found)));
    }
}

/// A value that may be on either side of zero.
fn either_sign(found: &Found) -> Found {
    let turned = found.numbers().map(|number| Value::Number(number.negated()));
    Found { readings: found.readings.iter().copied().chain(turned).collect(), ..found.clone() }
}

/// Whether a value of the answer is one that the claim may have in a word that is not read: "1", "no".
fn stands_as_word(case: &Case<'_>, found: &Found) -> bool {
    let is_small = |number: Number| number == Number::from(0) || number == Number::from(1);
    let answer = case.answer.reading.tokens();
    let mut tokens = answer.all()[answer.within(&found.range)].iter();
    let in_claim =
        |token: &Token| case.claim.reading.tokens().all().iter().any(|other| other.hash == token.hash);
    found.numbers().any(is_small) || tokens.all(in_claim)
}

fn is_near(case: &Case<'_>, found: &Found) -> bool {
    let index = case.finder.index();
    let places = &case.zone.all;
    found.readings.iter().any(|value| match *value {
        Value::Number(number) => !near(case, number, places).is_empty(),
        Value::Time(time) => {
            !near_places(case, index.time(time), places).is_empty() || index.time(time).is_empty()
        }
        Value::Date(date) => !near_places(case, index.month(date.month, date.day), places).is_empty(),
    }) || is_relative(case, found)
}

/// Whether a value is a time that the text gives relative to the day of asking.
fn is_relative(case: &Case<'_>, found: &Found) -> bool {
    let mut times = case.finder.index().relative(case.as_of);
    times.any(|(year, month, day)| {
        found.readings.iter().any(|value| match value {
            Value::Number(number) => number.whole() == Some(i64::from(year)),
            Value::Date(date) => month == Some(date.month) && (date.day.is_none() || day == date.day),
            Value::Time(_) => false,
        })
    })
}

/// A hedge of the claim stands in its answer or its question; one of the answer in the claim.
fn hedge(case: &Case<'_>, faults: &mut Vec<Fault>) {
    for found in case.answer.reading.values().iter().filter(|found| !found.weak) {
        let meets = |claimed: &&Found| claimed.readings.iter().any(|one| found.readings.contains(one));
        let Some(claimed) = case.claim.reading.values().iter().find(meets) else { continue };
        if claimed.hedge.differs_from(found.hedge)
            && !(found.hedge == Hedge::None && asks_for(case, claimed.hedge))
        {
            faults.push(Fault::new(Severity::Soft, FaultKind::Hedge, shown(&case.answer, found)));
        }
    }
}

/// Whether the question holds a hedge of this class.
fn asks_for(case: &Case<'_>, hedge: Hedge) -> bool {
    let reading = &case.question.reading;
    let languages = reading.languages();
    let is_it = |meaning: Meaning| matches!(meaning, Meaning::Hedge(asked, _) if asked == hedge);
    reading.senses().iter().any(|sense| sense.languages.meet(languages) && is_it(sense.meaning))
}

/// Words of an answer stand in the claim, and in the text near the quote.
fn words(case: &Case<'_>, faults: &mut Vec<Fault>, has_values: bool) {
    let words = content(&case.answer);
    if words.is_empty() {
        if !has_values && !is_literal(case) {
            faults.push(Fault::new(Severity::Soft, FaultKind::AnswerNotInClaim, case.answer.text()));
        }
        return ideographs(case, faults, has_values);
    }
    let in_claim = |token: &&Token| {
        holds(&case.claim, (&case.answer, token)) || has_cut(&case.claim, &case.answer, token)
    };
    let missing: Vec<&Token> = words.iter().copied().filter(|token| !in_claim(token)).collect();
    let is_other = if has_values {
        // Beside a number only names count: words may be those of a unit.
        missing.iter().any(|token| {
            token.chars > 1 && (token.capitals == token.chars || is_new_name(case, token) && token.start > 0)
        })
    } else {
        missing.len() * 2 > words.len()
            || missing.iter().any(|token| token.is_capital() && token.start > 0 && !is_german(case))
            || missing.iter().any(|token| is_new_name(case, token))
    };
    if is_other {
        let shown = if has_values { missing.first().copied() } else { None };
        faults.push(Fault::new(Severity::Soft, FaultKind::AnswerNotInClaim, part(&case.answer, shown)));
    }
    if has_values {
        return;
    }
    let stems = case.finder.stems();
    let in_text = |token: &&&Token| stems.has_stem(case.answer.text(), token) || stems.has_name_of(token);
    let is_new = words.iter().filter(in_text).count() * 2 < words.len();
    let is_far = || !is_word_near(case, &words) && !words.iter().any(|token| stems.has_name_of(token));
    if is_new || !is_other && is_far() {
        faults.push(Fault::new(Severity::Soft, FaultKind::AnswerFar, case.answer.text()));
    }
}

/// Whether a capitalised word of an answer of several stands neither in the text nor in the question.
fn is_new_name(case: &Case<'_>, token: &Token) -> bool {
    let stems = case.finder.stems();
    token.is_capital()
        && !stems.has_stem(case.answer.text(), token)
        && !stems.has_name_of(token)
        && !holds(&case.question, (&case.answer, token))
}

/// Whether an answer of small words and signs alone stands in the claim as it is.
fn is_literal(case: &Case<'_>) -> bool {
    let claim = case.claim.reading.tokens().all();
    case.answer.reading.tokens().all().iter().all(|token| claim.iter().any(|other| other.hash == token.hash))
}

fn is_german(case: &Case<'_>) -> bool {
    crate::verify::values::Languages::of_code("de")
        .is_some_and(|german| case.finder.reading().languages().meet(german))
}

fn part<'a>(part: &'a Part, token: Option<&Token>) -> &'a str {
    token.and_then(|token| part.text().get(token.range())).unwrap_or(part.text())
}

/// Whether the claim has a compound that holds a word, or the other way round.
fn has_cut(claim: &Part, answer: &Part, token: &Token) -> bool {
    let word = answer.text().get(token.range()).unwrap_or_default().to_lowercase();
    word.chars().count() >= 5 && claim.text().to_lowercase().contains(&word)
}

/// Whether one of the words stands near the quote.
fn is_word_near(case: &Case<'_>, words: &[&Token]) -> bool {
    let text = case.finder.folded().text();
    let tokens = case.finder.reading().tokens();
    let mut left = MAX_WORDS;
    for place in &case.zone.all {
        for token in &tokens.all()[tokens.within(place)] {
            if left == 0 || words.iter().any(|word| is_same_stem((case.answer.text(), word), (text, token))) {
                return true;
            }
            left -= 1;
        }
    }
    false
}

/// Most pairs of an answer's characters stand in the claim and in the text.
fn ideographs(case: &Case<'_>, faults: &mut Vec<Fault>, has_values: bool) {
    let is_one = |token: &&Token| matches!(token.script, Script::Han | Script::Katakana | Script::Single);
    if has_values || !case.answer.reading.tokens().all().iter().any(|token| is_one(&token)) {
        return;
    }
    let words = Words::of(&case.answer);
    if words.share_in(&Words::stems(&case.claim)) < 67 {
        faults.push(Fault::new(Severity::Soft, FaultKind::AnswerNotInClaim, case.answer.text()));
    } else if words.share_in(case.finder.stems()) < 67 {
        faults.push(Fault::new(Severity::Soft, FaultKind::AnswerFar, case.answer.text()));
    }
}
