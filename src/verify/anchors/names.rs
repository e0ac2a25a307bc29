//! Names and words of a claim that do not stand in the text.

use std::ops::Range;

use super::check::{Case, Part};
use super::fault::{Fault, FaultKind, Severity};
use super::numbers::meet;
use crate::verify::values::{Found, Languages, Meaning, Reading};
use crate::verify::words::{Script, Stems, Token, Tokens, is_same_stem};

/// German articles and determiners: a noun behind one is no name.
const GERMAN_DETERMINERS: [&str; 46] = [
    "der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "kein",
    "keine", "keinen", "keinem", "keiner", "am", "im", "vom", "zum", "zur", "beim", "ins", "ans", "fürs",
    "dieser", "diese", "dieses", "diesem", "diesen", "sein", "seine", "seinen", "seinem", "seiner", "ihr",
    "ihre", "ihren", "ihrem", "ihrer", "jeder", "jede", "jedes", "viele", "mehr",
];

/// How much of a run of ideographs has to be known, in percent of its pairs.
const KNOWN_PAIRS: usize = 34;

pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    let tokens = case.claim.reading.tokens().all();
    let names = name_tokens(case.claim.text(), &case.claim.reading, 0..tokens.len());
    let stems = case.finder.stems();
    let subject = subject(&case.claim.reading).filter(|at| !names.contains(at));
    for at in names.iter().copied().chain(subject) {
        let token = &tokens[at];
        let is_known = is_told(&case.claim, at, stems)
            || is_genitive(case.claim.text(), token, stems)
            || is_numeral(case, token)
            || is_compound_of_known(case, token);
        if !is_known {
            faults.push(Fault::new(Severity::Soft, FaultKind::Name, &case.claim.text()[token.range()]));
        }
    }
    faults.extend(asked_of_another(case, &names));
    for run in runs(&case.claim.reading) {
        let words = Words { run };
        if words.run.len() > 1 && words.share_in(stems) < KNOWN_PAIRS {
            let (first, last) = (words.run[0], words.run[words.run.len() - 1]);
            let shown = case.claim.text().get(first.start as usize..last.end as usize).unwrap_or_default();
            faults.push(Fault::new(Severity::Soft, FaultKind::Name, shown));
        }
    }
    if !is_bound(case) {
        faults.push(Fault::new(Severity::Soft, FaultKind::Bond, ""));
    }
}

/// Whether words have this one of a part, also as one of a name in full or as its first letters.
pub(super) fn is_told(part: &Part, at: usize, words: &Stems) -> bool {
    let tokens = part.reading.tokens().all();
    words.has_stem(part.text(), &tokens[at])
        || words.has_name_of(&tokens[at])
        || is_shortened(tokens, at, words)
}

/// The first word, where it tells what a claim is about.
fn subject(reading: &Reading) -> Option<usize> {
    (reading.tokens().all().first()?.chars > 2 && is_word_of_names(reading, 0)).then_some(0)
}

/// A name of the claim, or a word if it has none, where the question has none of those that the answer does not give: it
/// may be about anything.
fn asked_of_another(case: &Case<'_>, names: &[usize]) -> Option<Fault> {
    let claim = &case.claim;
    let tokens = claim.reading.tokens().all();
    // Given what the question has, and what the answer.
    let unasked = |is_asked: &dyn Fn(usize) -> bool, is_answered: &dyn Fn(usize) -> bool| {
        let is_left = |at: &usize| !is_answered(*at);
        let mut told: Vec<usize> = names.iter().copied().filter(is_left).collect();
        if told.is_empty() {
            // "What is 2 + 2" has no word.
            let claimed = claim.reading.values();
            let is_claimed = |found: &Found| claimed.iter().any(|one| one.readings == found.readings);
            if case.question.reading.values().iter().any(is_claimed) {
                return None;
            }
            let words = content(claim);
            let is_word =
                |at: &usize| words.binary_search_by_key(&tokens[*at].start, |word| word.start).is_ok();
            told.extend((0..tokens.len()).filter(is_word).filter(is_left));
        }
        // H7 is a name as well.
        let capitals = (0..tokens.len()).filter(|at| is_word_of_names(&claim.reading, *at)).filter(is_left);
        let has_any = told.iter().copied().chain(capitals).any(is_asked);
        told.first().copied().filter(|_| !has_any)
    };
    let has = |part: &Part, at: usize| holds(part, (claim, &tokens[at]));
    unasked(&|at| has(&case.question, at), &|at| has(&case.answer, at))?;
    // Few come here: a name may be told in full, or by its first letters.
    let (question, answer) = (Words::stems(&case.question), Words::stems(&case.answer));
    let first = unasked(&|at| is_told(claim, at, &question), &|at| is_told(claim, at, &answer))?;
    Some(Fault::new(Severity::Soft, FaultKind::Unasked, &claim.text()[tokens[first].range()]))
}

/// Whether a part has a word of another, whatever its ending.
pub(super) fn holds(part: &Part, (other, token): (&Part, &Token)) -> bool {
    part.reading.tokens().all().iter().any(|word| is_same_stem((other.text(), token), (part.text(), word)))
}

/// Which of some tokens of a text are names: capitals that nothing else explains.
pub(in crate::verify) fn name_tokens(text: &str, reading: &Reading, within: Range<usize>) -> Vec<usize> {
    let tokens = reading.tokens().all();
    let explained = explained(reading, &within);
    let is_explained = |at: usize| {
        at.checked_sub(within.start).and_then(|at| explained.get(at)).is_some_and(|explained| *explained)
    };
    let is_german = Languages::of_code("de")
        .is_some_and(|german| reading.languages() != Languages::ANY && reading.languages().meet(german));
    let is_name = |at: usize| {
        let token = &tokens[at];
        if !token.is_capital() || token.chars < 2 || is_explained(at) {
            return false;
        }
        let is_shout = token.capitals == token.chars;
        let next_is_capital =
            tokens.get(at + 1).is_some_and(|next| next.is_capital() && next.spaced && !is_explained(at + 1));
        if begins_sentence(tokens, at) && !next_is_capital && !is_shout {
            return false;
        }
        is_shout || !is_german || !is_german_noun(text, tokens, at)
    };
    within.clone().filter(|at| is_name(*at)).collect()
}

/// Whether a token is a capitalised word that nothing but a name explains, wherever it stands.
pub(in crate::verify) fn is_word_of_names(reading: &Reading, at: usize) -> bool {
    reading.tokens().all()[at].is_capital() && !explained(reading, &(at..at + 1))[0]
}

/// Which of some tokens are small words, months, units, scale words or numbers, in the languages of the text.
fn explained(reading: &Reading, within: &Range<usize>) -> Vec<bool> {
    let mut explained = vec![false; within.len()];
    for sense in reading.senses_within(within) {
        let explains = matches!(
            sense.meaning,
            Meaning::Small
                | Meaning::Month { .. }
                | Meaning::Unit(_)
                | Meaning::Scale(_)
                | Meaning::Cardinal(_)
                | Meaning::Ordinal(_)
                | Meaning::Marker(_)
                | Meaning::Relative(..)
                | Meaning::Sign(_)
                | Meaning::Hedge(..)
        );
        if explains {
            let from = sense.at as usize - within.start;
            let end = (from + usize::from(sense.length)).min(explained.len());
            explained[from..end].fill(true);
        }
    }
    explained
}

/// Whether a token is the first of a sentence, or stands behind what begins one.
fn begins_sentence(tokens: &[Token], at: usize) -> bool {
    let before = tokens[..at]
        .iter()
        .rev()
        .find(|token| !matches!(token.first, '"' | '\'' | '(' | '[' | '*' | '_' | '#' | '|'));
    before.is_none_or(|before| {
        before.script == Script::Mark
            && matches!(before.first, '.' | '!' | '?' | ':' | '-' | '•' | '…')
            && tokens[at].spaced
    })
}

/// Whether a German noun stands where no name would: behind an article, a number or an inflected adjective.
fn is_german_noun(text: &str, tokens: &[Token], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| &tokens[before]) else { return true };
    if before.script == Script::Digits {
        return true;
    }
    let word = text.get(before.range()).unwrap_or_default().to_lowercase();
    let is_adjective = !before.is_capital()
        && before.chars > 4
        && ["e", "en", "er", "es", "em"].iter().any(|ending| word.ends_with(ending));
    GERMAN_DETERMINERS.contains(&word.as_str()) || is_adjective
}

/// Whether a short name stands in the text without its last letter: Doms, Dom.
fn is_genitive(text: &str, token: &Token, stems: &Stems) -> bool {
    let word = text.get(token.range()).unwrap_or_default();
    let bare = word.strip_suffix("es").or_else(|| word.strip_suffix('s')).unwrap_or_default();
    let with = [word.strip_suffix('s').unwrap_or_default(), bare, &[word, "s"].concat()].map(Tokens::new);
    token.chars > 2
        && with
            .iter()
            .any(|tokens| tokens.all().first().is_some_and(|token| token.chars > 2 && stems.has_word(token)))
}

/// Whether the capitals of the name around a token are a word of the text: its acronym.
pub(in crate::verify) fn is_shortened(tokens: &[Token], at: usize, stems: &Stems) -> bool {
    let belongs = |token: &Token| token.is_capital() || token.script == Script::Letters && token.chars <= 3;
    let first = (0..at).rev().take(8).take_while(|before| belongs(&tokens[*before])).last().unwrap_or(at);
    let run = tokens[first..].iter().take(12).take_while(|token| belongs(token));
    let initials: Vec<char> = run.filter(|token| token.is_capital()).map(|token| token.first).collect();
    let known = |initials: &[char]| {
        let word: String = initials.iter().collect();
        initials.len() > 1 && Tokens::new(&word).all().first().is_some_and(|token| stems.has_word(token))
    };
    known(&initials) || initials.split_first().is_some_and(|(_, rest)| known(rest))
}

/// Whether a token is a Roman numeral that stands in the text in another form.
fn is_numeral(case: &Case<'_>, token: &Token) -> bool {
    let mut values =
        case.claim.reading.values().iter().filter(|found| found.range.contains(&(token.start as usize)));
    values.any(|found| found.numbers().any(|number| !case.finder.index().number(number).is_empty()))
}

/// Whether a name is a part of a word of the text or the other way round, as in German compounds: Eiffel, Eiffelturm.
fn is_compound_of_known(case: &Case<'_>, token: &Token) -> bool {
    let part = |chars: usize| {
        let word = case.claim.text().get(token.range())?;
        let end = word.char_indices().nth(chars)?.0;
        let tokens = Tokens::new(&word[..end]);
        tokens.all().first().copied()
    };
    token.chars >= 8
        && (5..token.chars as usize - 2).filter_map(part).any(|part| case.finder.stems().has_word(&part))
}

/// The words of a part that carry what it says.
pub(super) fn content(part: &Part) -> Vec<&Token> {
    let tokens = part.reading.tokens().all();
    let mut is_small = vec![false; tokens.len()];
    for sense in part.reading.senses_within(&(0..tokens.len())) {
        if matches!(
            sense.meaning,
            Meaning::Small
                | Meaning::Hedge(..)
                | Meaning::Unit(_)
                | Meaning::Scale(_)
                | Meaning::Month { .. }
                | Meaning::Cardinal(_)
                | Meaning::Marker(_)
        ) {
            let from = sense.at as usize;
            is_small[from..from + usize::from(sense.length)].fill(true);
        }
    }
    let words = tokens.iter().zip(is_small);
    words
        .filter(|(token, small)| token.script == Script::Letters && token.chars > 1 && !small)
        .map(|(token, _)| token)
        .collect()
}

/// Characters of scripts without spaces that stand side by side.
pub(super) struct Words<'a> {
    run: Vec<&'a Token>,
}

impl<'a> Words<'a> {
    /// All such characters of a part.
    pub(super) fn of(part: &'a Part) -> Self {
        let is_one = |token: &&Token| matches!(token.script, Script::Han | Script::Katakana | Script::Single);
        Self { run: part.reading.tokens().all().iter().filter(is_one).collect() }
    }

    /// The words of a part, to look for characters in it.
    pub(super) fn stems(part: &Part) -> Stems {
        let mut stems = Stems::default();
        stems.add(part.text(), part.reading.tokens().all());
        stems
    }

    /// How many percent of the pairs of characters a text has; of the characters, if there is but one.
    pub(super) fn share_in(&self, stems: &Stems) -> usize {
        let pairs: Vec<_> =
            self.run.windows(2).filter(|pair| !pair[1].spaced && pair[0].end == pair[1].start).collect();
        if pairs.is_empty() {
            let known = self.run.iter().filter(|token| stems.has_word(token)).count();
            return if self.run.is_empty() { 100 } else { known * 100 / self.run.len() };
        }
        pairs.iter().filter(|pair| stems.has_bigram(pair[0], pair[1])).count() * 100 / pairs.len()
    }
}

/// Runs of Han or Katakana characters between small words and other scripts, without what counts a number: 6回行.
fn runs(reading: &Reading) -> Vec<Vec<&Token>> {
    let tokens = reading.tokens().all();
    let is_one = |token: &Token| matches!(token.script, Script::Han | Script::Katakana);
    let mut runs: Vec<Vec<&Token>> = Vec::new();
    if !tokens.iter().any(is_one) {
        return runs;
    }
    let explained = explained(reading, &(0..tokens.len()));
    let (mut before, mut last): (Option<&Token>, Option<&Token>) = (None, None);
    for (token, explained) in tokens.iter().zip(explained) {
        let is_counter =
            before.is_some_and(|before: &Token| before.script == Script::Digits) && !token.spaced;
        before = Some(token);
        if !is_one(token) || explained || is_counter {
            last = None;
            continue;
        }
        match (runs.last_mut(), last) {
            (Some(run), Some(before)) if before.script == token.script && before.end == token.start => {
                run.push(token);
            }
            _ => runs.push(vec![token]),
        }
        last = Some(token);
    }
    runs
}

/// Whether claim and quote have a word, a value or a pair of characters in common.
fn is_bound(case: &Case<'_>) -> bool {
    let tokens = case.finder.reading().tokens();
    let quoted = &tokens.all()[tokens.within(&case.zone.quote)];
    let claim = content(&case.claim);
    let is_word = |token: &Token| token.script == Script::Letters;
    let is_shared = |token: &Token| claim.iter().any(|word| word.hash == token.hash);
    quoted.iter().any(|token| is_word(token) && is_shared(token))
        || shares_stem(case, quoted)
        || shares_value(case, quoted)
}

/// Whether they have a stem or a pair of characters in common.
fn shares_stem(case: &Case<'_>, quoted: &[Token]) -> bool {
    let text = case.finder.folded().text();
    let stems = Words::stems(&case.claim);
    quoted.iter().enumerate().any(|(at, token)| match token.script {
        Script::Letters => token.chars > 3 && stems.has_stem(text, token),
        Script::Han | Script::Katakana | Script::Single => {
            let next = quoted.get(at + 1).filter(|next| next.start == token.end);
            next.is_some_and(|next| stems.has_bigram(token, next))
        }
        _ => false,
    })
}

/// Whether they have a value in common; also if the quote has neither values nor words.
fn shares_value(case: &Case<'_>, quoted: &[Token]) -> bool {
    let reading = case.finder.reading();
    let quoted_values = &reading.values()[reading.values_within(&case.zone.quote)];
    let mut quoted_values = quoted_values.iter().take(50).peekable();
    let is_word = |token: &Token| match token.script {
        Script::Letters => token.chars > 2 || token.capitals > 0,
        Script::Han | Script::Katakana | Script::Single => true,
        Script::Digits | Script::Mark => false,
    };
    if quoted_values.peek().is_none() && !quoted.iter().any(is_word) {
        return true;
    }
    quoted_values.any(|found| case.claim.reading.values().iter().any(|claimed| meet(claimed, found)))
}
