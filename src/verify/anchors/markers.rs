//! Words that turn a sentence: negation, cause, "all" and "only". A claim may not add them, nor drop a negation; nor may
//! its question deny what is not denied.

use super::check::Case;
use super::fault::{Fault, FaultKind, Severity};
use super::names::Words;
use crate::verify::values::{Marker, markers};
use crate::verify::words::{Script, Token};

/// How much of a denied clause stands in a claim that drops the negation, in percent of its words.
const CLAUSE_SHARE: usize = 60;

pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    let claimed = markers(case.claim.text(), &case.claim.reading);
    let index = case.finder.index();
    let tokens = case.claim.reading.tokens().all();
    for (marker, kind) in [
        (Marker::Not, FaultKind::Negation),
        (Marker::Cause, FaultKind::Cause),
        (Marker::All, FaultKind::All),
        (Marker::Only, FaultKind::Only),
    ] {
        let place = if marker == Marker::Not { &case.zone.sentences } else { &case.zone.context };
        let added = claimed.iter().find(|(found, at)| *found == marker && !is_in_speech(case, *at));
        if let Some((_, at)) = added.filter(|_| !index.has_marker(marker, place)) {
            faults.push(Fault::new(Severity::Soft, kind, &case.claim.text()[tokens[*at].range()]));
        }
    }
    let denies = claimed.iter().any(|(marker, _)| *marker == Marker::Not);
    if !denies && index.has_marker(Marker::Not, &case.zone.quote) && repeats_denied(case) {
        faults.push(Fault::new(Severity::Soft, FaultKind::Negation, "not"));
    }
    if !denies && !index.has_marker(Marker::Not, &case.zone.sentences) {
        let asked = markers(case.question.text(), &case.question.reading);
        let negation = asked.iter().find(|(marker, _)| *marker == Marker::Not).map(|(_, at)| *at);
        faults.extend(negation.map(|at| {
            let word = case.question.reading.tokens().all()[at].range();
            Fault::new(Severity::Soft, FaultKind::Question, &case.question.text()[word])
        }));
    }
}

/// Whether a token of the claim stands between quotation marks.
fn is_in_speech(case: &Case<'_>, at: usize) -> bool {
    let tokens = case.claim.reading.tokens().all();
    tokens[..at].iter().filter(|token| token.is_mark('"')).count() % 2 == 1
}

/// Whether a clause of the quote that denies something stands in the claim for the most part.
fn repeats_denied(case: &Case<'_>) -> bool {
    let tokens = case.finder.reading().tokens();
    let quoted = &tokens.all()[tokens.within(&case.zone.quote)];
    let text = case.finder.folded().text();
    let stems = Words::stems(&case.claim);
    let ends_clause = |token: &Token| {
        matches!(token.first, ',' | ';' | ':' | '，' | '、' | '；' | '。' | '.' | '(' | ')')
            && token.script == Script::Mark
    };
    quoted.split(ends_clause).any(|clause| {
        let (Some(first), Some(last)) = (clause.first(), clause.last()) else { return false };
        let place = first.start as usize..last.end as usize;
        if !case.finder.index().has_marker(Marker::Not, &place) {
            return false;
        }
        let (mut words, mut known) = (0, 0);
        for (at, token) in clause.iter().enumerate() {
            let is_known = match token.script {
                Script::Letters
                    if token.chars > 2 && !case.finder.index().has_marker(Marker::Not, &token.range()) =>
                {
                    stems.has_stem(text, token)
                }
                Script::Han | Script::Katakana | Script::Single => {
                    let Some(next) = clause.get(at + 1) else { continue };
                    stems.has_bigram(token, next)
                }
                _ => continue,
            };
            words += 1;
            known += usize::from(is_known);
        }
        words > 0 && known * 100 >= words * CLAUSE_SHARE
    })
}
