//! How the models voted on a claim: letters at a glance, groups for the details.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::api::verify::ClaimResult;
use crate::cli::terminal::sanitize;
use crate::model_id;

/// One model's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// The claimed answer.
    Claimed,
    /// Another answer, or "none of these".
    Other,
    /// "Cannot be determined".
    Undecided,
    /// The model gave no answer.
    Missing,
}

impl Vote {
    /// Its letter: `T`, `F`, `U` or `-`.
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Claimed => 'T',
            Self::Other => 'F',
            Self::Undecided => 'U',
            Self::Missing => '-',
        }
    }
}

/// Models that chose the same option.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// What they say, in words.
    pub(crate) says: String,
    /// Whether this option is the consensus.
    pub(crate) is_consensus: bool,
    /// Names of the models.
    pub(crate) models: Vec<String>,
}

/// The votes, in the order of [`models`].
pub(crate) fn votes(claim: &ClaimResult) -> Vec<Vote> {
    let answers: HashMap<&str, &str> =
        claim.model_answers.iter().map(|answer| (answer.model.as_str(), answer.answer.as_str())).collect();
    let vote = |model| answers.get(model).map_or(Vote::Missing, |answer| vote_for(claim, answer));
    models(claim).map(vote).collect()
}

/// The vote for an answer, given by its option key.
pub(crate) fn vote_for(claim: &ClaimResult, key: &str) -> Vote {
    if key == claim.claimed_answer {
        return Vote::Claimed;
    }
    match special(claim, key) {
        Some(Special::Undetermined) => Vote::Undecided,
        _ => Vote::Other,
    }
}

/// The letters of the votes, with `gap` between them.
pub(crate) fn letters(claim: &ClaimResult, gap: &str) -> String {
    let letters: Vec<String> = votes(claim).into_iter().map(|vote| vote.letter().to_string()).collect();
    letters.join(gap)
}

/// How many models cast this vote.
pub(crate) fn count(claim: &ClaimResult, vote: Vote) -> usize {
    votes(claim).into_iter().filter(|cast| *cast == vote).count()
}

/// The answers grouped by option: the consensus first, then the claimed answer, then the others in the question's
/// order.
pub(crate) fn groups(claim: &ClaimResult) -> Vec<Group> {
    let mut keys = vec![claim.consensus_answer.as_str(), claim.claimed_answer.as_str()];
    keys.extend(claim.original_options.keys().map(String::as_str));
    let mut seen = BTreeSet::new();
    keys.retain(|key| seen.insert(*key));
    keys.into_iter().filter_map(|key| group(claim, key)).collect()
}

/// The consensus answer in words; empty without one.
pub(crate) fn consensus_text(claim: &ClaimResult) -> String {
    groups(claim).into_iter().find(|group| group.is_consensus).map(|group| group.says).unwrap_or_default()
}

fn group(claim: &ClaimResult, key: &str) -> Option<Group> {
    let models: Vec<String> = claim
        .model_answers
        .iter()
        .filter(|answer| answer.answer == key)
        .map(|answer| short_name(claim, &answer.model))
        .collect();
    if models.is_empty() {
        return None;
    }
    let says = match special(claim, key) {
        _ if key == claim.claimed_answer => "as claimed".to_owned(),
        Some(Special::NoneOfThese) => "none of these".to_owned(),
        Some(Special::Undetermined) => "cannot tell".to_owned(),
        None => option_text(claim, key),
    };
    Some(Group { says, is_consensus: key == claim.consensus_answer, models })
}

/// Whether any model chose another specific option than the claimed one.
pub(crate) fn chose_other_option(claim: &ClaimResult) -> bool {
    claim
        .model_answers
        .iter()
        .any(|answer| answer.answer != claim.claimed_answer && special(claim, &answer.answer).is_none())
}

enum Special {
    NoneOfThese,
    Undetermined,
}

/// The last two options of every question are always these.
fn special(claim: &ClaimResult, key: &str) -> Option<Special> {
    let mut from_the_end = claim.original_options.keys().rev();
    if from_the_end.next().is_some_and(|last| last == key) {
        return Some(Special::Undetermined);
    }
    from_the_end.next().is_some_and(|last_but_one| last_but_one == key).then_some(Special::NoneOfThese)
}

fn option_text(claim: &ClaimResult, key: &str) -> String {
    let text = claim.original_options.get(key).and_then(|option| option.as_str()).unwrap_or(key);
    sanitize::line(text).into_owned()
}

/// A model's name without its provider, unless two models of the claim would look the same.
pub(crate) fn short_name(claim: &ClaimResult, model: &str) -> String {
    let is_ambiguous = models(claim).any(|other| other != model && bare(other) == bare(model));
    sanitize::line(if is_ambiguous { model } else { bare(model) }).into_owned()
}

/// All models that were asked about a claim, in panel order as far as the server reports it; otherwise those that did
/// not answer come last.
pub(crate) fn models(claim: &ClaimResult) -> impl Iterator<Item = &str> {
    let answered = claim.model_answers.iter().map(|answer| answer.model.as_str());
    let asked = answered.chain(claim.model_errors.iter().map(|failed| failed.model.as_str()));
    let seated: HashSet<&str> = claim.seats.iter().map(String::as_str).collect();
    claim.seats.iter().map(String::as_str).chain(asked.filter(move |model| !seated.contains(model)))
}

fn bare(model: &str) -> &str {
    model_id::split(model).map_or(model, |(_, name)| name)
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use serde_json::json;

    use super::*;

    /// A claim about the year of a tower; `answers` are option keys by model, `!code` stands for an error.
    pub(in crate::cli) fn claim(assessment: &str, consensus: &str, answers: &[(&str, &str)]) -> ClaimResult {
        let (failed, answer): (Vec<_>, Vec<_>) =
            answers.iter().partition(|(_, answer)| answer.starts_with('!'));
        serde_json::from_value(json!({
            "id": "c1",
            "claim": "It was completed in 1925.",
            "assessment": assessment,
            "original_question": "In which year was the Eiffel Tower completed?",
            "original_options": {
                "A": "1925", "B": "1889", "C": "1900",
                "D": "None of these", "E": "Cannot be determined"
            },
            "claimed_answer": "A",
            "model_answers": answer
                .iter()
                .map(|(model, answer)| json!({ "model": model, "answer": answer }))
                .collect::<Vec<_>>(),
            "consensus_answer": consensus,
            "reason_code": "consensus",
            "model_errors": failed
                .iter()
                .map(|(model, code)| json!({ "model": model, "code": code.trim_start_matches('!') }))
                .collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    #[test]
    fn letters_say_who_agreed() {
        let mixed = claim(
            "NO CONSENSUS",
            "",
            &[("p/a", "A"), ("p/b", "B"), ("p/c", "D"), ("p/d", "E"), ("p/e", "!timeout")],
        );
        assert_eq!(letters(&mixed, ""), "TFFU-");
        assert_eq!(letters(&mixed, " "), "T F F U -");
    }

    #[test]
    fn letters_are_in_the_order_of_the_panel() {
        let mut found = claim("NO CONSENSUS", "", &[("p/a", "!timeout"), ("p/b", "B"), ("p/c", "A")]);
        assert_eq!(letters(&found, ""), "FT-", "where nobody tells it");
        found.seat(&["p/a", "p/b", "p/x", "p/c"].map(str::to_owned));
        assert_eq!(letters(&found, ""), "-FT");
        found.seat(&["p/a".to_owned()]);
        assert_eq!(letters(&found, ""), "-FT", "the others after those that are told");
    }

    #[test]
    fn groups_begin_with_the_consensus() {
        let found = claim("FALSE", "B", &[("p/gpt-x", "B"), ("q/claude-y", "B"), ("r/gemini-z", "A")]);
        let groups = groups(&found);
        assert_eq!(groups[0].says, "1889");
        assert!(groups[0].is_consensus);
        assert_eq!(groups[0].models, ["gpt-x", "claude-y"]);
        assert_eq!((groups[1].says.as_str(), groups[1].is_consensus), ("as claimed", false));
        assert_eq!(groups.len(), 2);
    }

    #[test]
    fn providers_are_named_only_where_they_tell_models_apart() {
        let twins = claim("TRUE", "A", &[("p/same", "A"), ("q/same", "A"), ("r/org/other", "A")]);
        assert_eq!(short_name(&twins, "p/same"), "p/same");
        assert_eq!(short_name(&twins, "r/org/other"), "org/other");
    }

    #[test]
    fn an_answer_without_options_is_still_shown() {
        let mut odd = claim("FALSE", "Z", &[("p/a", "Z")]);
        odd.original_options.clear();
        assert_eq!(letters(&odd, ""), "F");
        odd.model_answers[0].answer = "Z".to_owned();
        assert_eq!(groups(&odd)[0].says, "Z");
    }
}
