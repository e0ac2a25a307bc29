//! What of a text no claim and no skipped part accounts for (CONTRACT 4.6).
//!
//! The contract asks that a quote touches each sentence. Here a quote counts only for what it is about, since one quote
//! around a whole text would account for all of it otherwise: one over several sentences counts for those whose words
//! mostly stand in its claim, a skipped part for the sentence whose words it mostly holds, and a duplicate for what one
//! claim says in the same words. Claims have to say most of a sentence, since two may have been read as one. A number that
//! a claim says and none asks for is taken for granted: nobody would judge it.

mod bound;
mod said;

use std::ops::Range;

use jiff::civil;

use self::bound::{begins_with_pronoun, is_equation, is_mark, need_not_be_asked, value_around};
pub use self::said::{Fit, Likeness, holds_most, likeness, nearest};
use self::said::{Said, content_of, is_most, is_most_within};
use super::finder::Finder;
use super::text::{Document, Format, Kind, Sentence};
use crate::verify::anchors::{is_shortened, name_tokens};
use crate::verify::values::{Marker, Number, Value, roman};
use crate::verify::words::{Script, Token};

/// So many words of a sentence that nothing says may be but other words for what is said.
const MAX_OTHER_WORDS: usize = 2;
/// The fewest words, or characters of a script without spaces, of a part between marks of a sentence that nothing else may
/// stand for.
const CLAUSE: [usize; 2] = [3, 4];
/// The most claims and sentences among which that is looked for which a duplicate repeats.
const MAX_ORIGINALS: usize = 400;
/// The most values of a sentence that are looked for in each claim about it. No honest sentence has so many.
const MAX_PRESUMED: usize = 100;
/// The most digits of the number of a list's item.
const MAX_ITEM_DIGITS: usize = 3;

/// A sentence that is not accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which sentence of the document.
    pub sentence: usize,
    /// Numbers, dates and times of it that stand in no claim and no skipped part, as they stand in the text.
    pub values: Vec<String>,
    /// Those that stand in a claim, and in no claim's answer.
    pub unasked: Vec<String>,
    /// The claims that take these for granted, by their positions among the accounts.
    pub presuming: Vec<usize>,
    /// Names of it that stand in no claim and no skipped part, and parts between marks of which no word does.
    pub names: Vec<String>,
    /// Whether a claim or a skipped part is about it.
    pub touched: bool,
}

/// What accounts for a part of a text.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    /// Where its quote stands, in bytes of the text.
    pub quote: Range<usize>,
    /// What a claim says; of other parts, their own words.
    pub says: &'a str,
    /// What of that is asked for: a claim's answer.
    pub asks: &'a str,
    /// What it is.
    pub kind: AccountKind,
}

/// What accounts for a part of a text, by what it may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// A claim: for what it says and asks for.
    Claim,
    /// A skipped part: for its own words.
    Skipped,
    /// A part that was skipped as said already: for what a claim says.
    Duplicate,
    /// A part of which a claim was made that says what another one says: for that, if in the same words.
    Repeated,
}

/// What is known of a sentence while its accounts are gone through.
#[derive(Clone, Default)]
struct Touched {
    by_claim: bool,
    by_repeated: bool,
    /// The tokens of skipped parts in it.
    skipped: Vec<Range<usize>>,
    duplicates: Vec<Range<usize>>,
}

/// What the accounts of a text say.
struct Accounted<'a> {
    finder: &'a Finder,
    as_of: civil::Date,
    accounts: &'a [Account<'a>],
    said: Said,
    /// The claims' answers.
    asked: Said,
    /// What a duplicate may repeat, one by one.
    originals: Vec<Said>,
}

/// The sentences of a section (or of the whole document, by their positions) that no claim and no skipped part is about,
/// or of which a number or name is missing. The `accounts` may be in any order; `before` is what else a duplicate may
/// repeat. Relative times are counted from `as_of`.
pub fn coverage(
    document: &Document<'_>,
    finder: &Finder,
    sentences: Range<usize>,
    accounts: &[Account<'_>],
    before: &str,
    as_of: civil::Date,
) -> Vec<Gap> {
    let all = document.sentences().get(sentences.clone()).unwrap_or_default();
    let claims = || accounts.iter().filter(|account| account.kind == AccountKind::Claim);
    let is_double = |kind| matches!(kind, AccountKind::Duplicate | AccountKind::Repeated);
    let originals = if accounts.iter().any(|account| is_double(account.kind)) {
        let before = Document::new(before, Format::Text);
        let before = before.sentences().iter().filter_map(|one| before.text().get(one.range.clone()));
        let says = claims().map(|account| account.says).chain(before).take(MAX_ORIGINALS);
        says.map(|says| Said::new(finder, std::iter::once(says))).collect()
    } else {
        Vec::new()
    };
    let said = Said::by(finder, accounts);
    let asked = Said::new(finder, claims().map(|account| account.asks));
    let accounted = Accounted { finder, as_of, accounts, said, asked, originals };
    let mut touched = vec![Touched::default(); all.len()];
    for account in accounts.iter().filter(|account| !account.quote.is_empty()) {
        touch(document, finder, &sentences, account, &mut touched);
    }
    let names = names_within(finder, all);
    let sentences = sentences.zip(all).zip(&touched).filter(|((_, sentence), _)| !sentence.exempt);
    sentences.filter_map(|((at, sentence), touched)| accounted.gap(at, sentence, touched, &names)).collect()
}

/// Notes which of the sentences an account is about.
fn touch(
    document: &Document<'_>,
    finder: &Finder,
    sentences: &Range<usize>,
    account: &Account<'_>,
    touched: &mut [Touched],
) {
    let under = document.sentences_of(&account.quote);
    let (first, last) = (under.start.max(sentences.start), under.end.min(sentences.end));
    if account.kind == AccountKind::Claim {
        let all = document.sentences();
        let is_wide = all[under].iter().filter(|sentence| !sentence.exempt).count() > 1;
        let said = is_wide.then(|| Said::new(finder, std::iter::once(account.says)));
        for at in first..last {
            let is_about =
                said.as_ref().is_none_or(|said| said.has_most(finder, &content_of(finder, &all[at].range)));
            touched[at - sentences.start].by_claim |= is_about;
        }
        return;
    }
    let place = finder.folded().folded(&account.quote);
    let tokens = finder.reading().tokens().within(&place);
    if finder.reading().tokens().all()[tokens.clone()].iter().all(|token| token.script == Script::Mark) {
        return;
    }
    for at in first..last {
        let touched = &mut touched[at - sentences.start];
        match account.kind {
            AccountKind::Skipped => touched.skipped.push(tokens.clone()),
            AccountKind::Duplicate => touched.duplicates.push(tokens.clone()),
            AccountKind::Repeated | AccountKind::Claim => touched.by_repeated = true,
        }
    }
}

/// Which tokens of some sentences are names.
fn names_within(finder: &Finder, sentences: &[Sentence]) -> Vec<usize> {
    let (Some(first), Some(last)) = (sentences.first(), sentences.last()) else { return Vec::new() };
    let whole = finder.folded().folded(&(first.range.start..last.range.end));
    name_tokens(finder.folded().text(), finder.reading(), finder.reading().tokens().within(&whole))
}

impl Accounted<'_> {
    /// What is missing of a sentence, if anything. The `names` are those of the whole text, in order.
    fn gap(&self, at: usize, sentence: &Sentence, touched: &Touched, names: &[usize]) -> Option<Gap> {
        let content = content_of(self.finder, &sentence.range);
        let holds = |parts: &[Range<usize>]| !parts.is_empty() && is_most_within(&content, parts);
        let is_double = touched.by_repeated || holds(&touched.duplicates);
        let original = is_double.then(|| self.original(sentence, &content, Said::has_all_in_order)).flatten();
        // What its pronoun stands for may be something else.
        let original = original.filter(|_| !begins_with_pronoun(self.finder, &sentence.range));
        let left = self.left(&content, touched);
        let is_said = original.is_some()
            || holds(&touched.skipped)
            || touched.by_claim && self.is_mostly_said(&content, &left);
        let repeats =
            |says: fn(&Said, &Finder, &[usize]) -> bool| self.original(sentence, &content, says).is_some();
        let is_repeated =
            || touched.by_repeated && repeats(Said::has_most) || is_double && repeats(Said::has_all);
        let is_touched = is_said || is_repeated();
        let (values, unasked) = self.missing_values(sentence, touched, original);
        let mut names = self.missing_names(sentence, original.unwrap_or(&self.said), names);
        if is_said && touched.by_claim {
            names.extend(self.unsaid_clauses(&content, &left));
        }
        if is_said && values.is_empty() && unasked.is_empty() && names.is_empty() {
            return None;
        }
        let presuming = self.presuming(sentence, &unasked);
        let [values, unasked] =
            [values, unasked].map(|list| list.into_iter().map(|at| self.shown(at)).collect());
        Some(Gap { sentence: at, values, unasked, presuming, names, touched: is_touched })
    }

    /// What says what a sentence says, and denies what it denies.
    fn original(
        &self,
        sentence: &Sentence,
        content: &[usize],
        says: impl Fn(&Said, &Finder, &[usize]) -> bool,
    ) -> Option<&Said> {
        let place = self.finder.folded().folded(&sentence.range);
        let denies = self.finder.index().has_marker(Marker::Not, &place);
        self.originals.iter().find(|said| {
            said.index.has_marker(Marker::Not, &(0..usize::MAX)) == denies && says(said, self.finder, content)
        })
    }

    /// Which words of a sentence are neither said nor skipped, whatever became of its values.
    fn left(&self, content: &[usize], touched: &Touched) -> Vec<usize> {
        let tokens = self.finder.reading().tokens().all();
        let is_left = |at: &usize| {
            !self.said.has_token(self.finder, *at)
                && !self.is_name_of(&self.said, *at)
                && !touched.skipped.iter().any(|part| part.contains(at))
                && value_around(self.finder, &tokens[*at]).is_none()
                && !is_mark(self.finder, &tokens[*at])
        };
        content.iter().copied().filter(is_left).collect()
    }

    /// Whether most words of a sentence are said, given which are not.
    fn is_mostly_said(&self, content: &[usize], left: &[usize]) -> bool {
        left.len() <= MAX_OTHER_WORDS || is_most(self.finder, content, content.len() - left.len())
    }

    /// The parts between marks of which no word is said, as they stand in the text: of a long sentence, most may be said
    /// without them.
    fn unsaid_clauses(&self, content: &[usize], left: &[usize]) -> Vec<String> {
        let (tokens, text) = (self.finder.reading().tokens().all(), self.finder.folded().text());
        let is_mark = |token: &Token| {
            matches!(token.first, ',' | ';' | ':' | '、' | '—' | '–' | '(' | ')' | '|')
                && token.script == Script::Mark
        };
        let goes_on = |one: &usize, next: &usize| !tokens[*one..*next].iter().any(is_mark);
        let is_unsaid = |clause: &&[usize]| {
            let is_letters = clause.iter().any(|at| tokens[*at].script == Script::Letters);
            clause.len() >= CLAUSE[usize::from(!is_letters)]
                && clause.iter().all(|at| left.binary_search(at).is_ok())
        };
        let shown = |clause: &[usize]| {
            let [first, .., last] = clause else { return String::new() };
            text[tokens[*first].start as usize..tokens[*last].end as usize].to_owned()
        };
        content.chunk_by(goes_on).filter(is_unsaid).map(shown).collect()
    }

    /// The claims about a sentence that say one of these values: of very many values, all claims about it.
    fn presuming(&self, sentence: &Sentence, values: &[usize]) -> Vec<usize> {
        if values.is_empty() {
            return Vec::new();
        }
        let found = self.finder.reading().values();
        let is_about = |account: &Account<'_>| {
            account.kind == AccountKind::Claim
                && account.quote.start < sentence.range.end
                && sentence.range.start < account.quote.end
        };
        let says_any = |account: &Account<'_>| {
            let said = Said::new(self.finder, std::iter::once(account.says));
            values.iter().any(|at| said.has_found(self.finder, &found[*at]) || self.has_time_ago(&said, *at))
        };
        let is_presuming =
            |account: &Account<'_>| is_about(account) && (values.len() > MAX_PRESUMED || says_any(account));
        let accounts = self.accounts.iter().enumerate();
        accounts.filter(|(_, account)| is_presuming(account)).map(|(at, _)| at).collect()
    }

    /// A value as it stands in the text.
    fn shown(&self, value: usize) -> String {
        let range = self.finder.reading().values()[value].range.clone();
        self.finder.folded().text().get(range).unwrap_or_default().to_owned()
    }

    /// The numbers, dates and times of a sentence that stand in nothing, and those that no claim asks for. The numbers
    /// of list items do not count.
    fn missing_values(
        &self,
        sentence: &Sentence,
        touched: &Touched,
        original: Option<&Said>,
    ) -> (Vec<usize>, Vec<usize>) {
        let finder = self.finder;
        let place = finder.folded().folded(&sentence.range);
        let (values, text) = (finder.reading().values(), finder.folded().text());
        let tokens = finder.reading().tokens();
        let is_item = |value: &Range<usize>| {
            sentence.kind == Kind::Prose
                && value.start == place.start
                && value.len() <= MAX_ITEM_DIGITS
                && text.get(value.end..).is_some_and(|rest| rest.starts_with(['.', ')']))
        };
        let is_skipped = |value: &Range<usize>| {
            let within = tokens.within(value);
            touched.skipped.iter().any(|part| part.start <= within.start && within.end <= part.end)
        };
        let is_equation = is_equation(finder, &place);
        let has = |said: &Said, at: usize| said.has_found(finder, &values[at]) || self.has_time_ago(said, at);
        let is_accounted = |at: usize| {
            let found = &values[at];
            found.weak
                || is_item(&found.range)
                || is_skipped(&found.range)
                || match original {
                    Some(original) => has(original, at),
                    None => {
                        has(&self.asked, at)
                            || has(&self.said, at) && need_not_be_asked(finder, is_equation, at)
                    }
                }
        };
        let missing = finder.reading().values_within(&place).filter(|at| !is_accounted(*at));
        missing.partition(|at| original.is_some() || !has(&self.said, *at))
    }

    /// Whether a value is a number of years, months or days ago, and the time that it means is said.
    fn has_time_ago(&self, said: &Said, at: usize) -> bool {
        self.finder.index().ago(at, self.as_of).is_some_and(|(year, month, day)| match month {
            Some(month) => !said.index.month(month, day).is_empty(),
            None => said.has(Value::Number(Number::from(i64::from(year)))),
        })
    }

    fn missing_names(&self, sentence: &Sentence, said: &Said, names: &[usize]) -> Vec<String> {
        let (tokens, text) = (self.finder.reading().tokens(), self.finder.folded().text());
        let within = tokens.within(&self.finder.folded().folded(&sentence.range));
        let from = names.partition_point(|name| *name < within.start);
        let names = names[from..].iter().copied().take_while(|name| *name < within.end);
        let is_said = |name: &usize| {
            let token = &tokens.all()[*name];
            said.stems.has_stem(text, token)
                || self.is_name_of(said, *name)
                || roman(&text[token.range()])
                    .is_some_and(|number| said.has(Value::Number(Number::from(number))))
        };
        names.filter(|name| !is_said(name)).map(|name| text[tokens.all()[name].range()].to_owned()).collect()
    }

    /// Whether a word is said as one of a name in full, or as the first letters of one.
    fn is_name_of(&self, said: &Said, at: usize) -> bool {
        let tokens = self.finder.reading().tokens().all();
        said.stems.has_name_of(&tokens[at]) || is_shortened(tokens, at, &said.stems)
    }
}

#[cfg(test)]
mod tests;
