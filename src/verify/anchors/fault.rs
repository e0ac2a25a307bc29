//! What is at fault with a claim, and what to change.

use crate::verify::text;

/// How sure a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Needs a second model's word.
    Soft,
    /// Certain: no claim with it reaches the panel.
    Hard,
}

/// Which rule a claim breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The quote does not stand in the text.
    QuoteMissing,
    /// A number of the claim does not stand in the text, or the quote gives another in its place.
    Number,
    /// A date of the claim does not stand in the text, or not so exactly.
    Date,
    /// A number has another unit in the text.
    Unit,
    /// A time that the text gives relative to the day of asking is counted wrongly.
    RelativeTime,
    /// The claimed answer is not what the claim says.
    AnswerNotInClaim,
    /// A value of the claim stands neither in its question nor in its answer.
    Unasked,
    /// A value or a negation of the question stands neither in the claim nor in the text, or it asks for another unit.
    Question,
    /// The claimed answer does not stand near the quote.
    AnswerFar,
    /// A name of the claim does not stand in the text.
    Name,
    /// A number is hedged in another way than in the text.
    Hedge,
    /// The claim says the opposite of what the text says there: fell for rose, to for by.
    Opposite,
    /// The claim denies what the quote says, or says what it denies.
    Negation,
    /// The claim names a cause that the quote does not name.
    Cause,
    /// The claim says of all what the quote does not.
    All,
    /// The claim says of nothing else what the quote does not.
    Only,
    /// Claim and quote have nothing in common.
    Bond,
}

/// A fault of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How sure it is.
    pub severity: Severity,
    /// Which rule is broken.
    pub kind: FaultKind,
    /// The value, name or word that breaks it: on one line, and short.
    pub detail: String,
}

/// The longest detail, in characters.
const MAX_DETAIL_CHARS: usize = 60;

impl Fault {
    /// A fault about these words.
    pub(super) fn new(severity: Severity, kind: FaultKind, detail: &str) -> Self {
        let line = text::one_line(detail).replace(['"', '“', '”'], "'");
        Self { severity, kind, detail: text::shortened(&line, MAX_DETAIL_CHARS) }
    }

    /// What is at fault and what to change, in a sentence for the model that wrote the claim.
    pub fn advice(&self) -> String {
        let detail = &self.detail;
        match self.kind {
            FaultKind::QuoteMissing => {
                "the quote does not stand in the statement: copy it letter by letter, the shortest passage that says \
                 the claim"
                    .to_owned()
            }
            FaultKind::Number => format!(
                "the number \"{detail}\" is not what the statement says there: give the statement's own number, also \
                 where you know it to be wrong"
            ),
            FaultKind::Date => format!(
                "the date \"{detail}\" does not stand in the statement: give the date as the statement gives it, no \
                 more exactly"
            ),
            FaultKind::Unit => {
                format!("the unit of \"{detail}\" is not the statement's: keep number and unit as they stand")
            }
            FaultKind::RelativeTime => format!(
                "\"{detail}\" is not what the statement's relative time comes to: count it from the date given with \
                 the statement"
            ),
            FaultKind::AnswerNotInClaim => format!(
                "the claimed answer \"{detail}\" is not what the claim says: give the answer that the claim gives, \
                 right or wrong"
            ),
            FaultKind::Unasked => format!(
                "neither the question nor the claimed answer has \"{detail}\": ask for it, name it in the question, or \
                 make a claim of its own of it"
            ),
            FaultKind::Question => format!(
                "the question has \"{detail}\", which the statement has not: ask for what the claim says, in its own unit"
            ),
            FaultKind::AnswerFar => format!(
                "the claimed answer \"{detail}\" does not stand near the quote: quote the passage that says it, or \
                 give the answer that stands there"
            ),
            FaultKind::Name => format!(
                "\"{detail}\" does not stand in the statement: name things as the statement does, or skip the part as \
                 ambiguous if it does not say what is meant"
            ),
            FaultKind::Hedge => format!(
                "\"{detail}\" is bounded in another way than in the statement: keep words such as about, at least, \
                 more than, and add none"
            ),
            FaultKind::Opposite => format!(
                "the claim says \"{detail}\", the statement the opposite there: say what it says, right or wrong"
            ),
            FaultKind::Negation => format!(
                "claim and quote differ in a negation (\"{detail}\"): deny what the quote denies, and nothing else"
            ),
            FaultKind::Cause => {
                format!("the claim names a cause (\"{detail}\") that the quote does not name: leave it out")
            }
            FaultKind::All | FaultKind::Only => format!("the claim says \"{detail}\", the quote does not: leave it out"),
            FaultKind::Bond => {
                "claim and quote have nothing in common: quote the passage that says the claim".to_owned()
            }
        }
    }
}

/// The fault of a claim whose quote cannot be found.
pub fn quote_missing() -> Fault {
    Fault::new(Severity::Hard, FaultKind::QuoteMissing, "")
}
