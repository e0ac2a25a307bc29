//! How often the panel was right, and each of its models.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::dataset::Label;
use crate::api::verify::{Assessment, VerifyResponse};
use crate::cli::verify::votes::{self, Vote};

/// What a verification says about its statement as a whole.
pub(crate) fn judged(result: &VerifyResponse) -> Label {
    let has = |assessment| result.results.iter().any(|claim| claim.assessment == assessment);
    match () {
        () if result.results.is_empty() => Label::Nothing,
        () if has(Assessment::False) => Label::False,
        () if has(Assessment::NoConsensus) => Label::NoConsensus,
        () => Label::True,
    }
}

/// A number of hits out of a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The hits.
    pub(crate) hits: usize,
    /// The total.
    pub(crate) total: usize,
}

impl Rate {
    /// The percentage; `None` for a total of zero.
    pub(crate) fn percent(self) -> Option<f64> {
        (self.total > 0).then(|| 100.0 * ratio(self.hits, self.total))
    }

    /// Whether it is at least this percentage.
    pub(crate) fn reaches(self, percent: f64) -> bool {
        // Multiplied rather than divided, as 29 / 100 comes out slightly below 0.29.
        self.total > 0 && 100.0 * ratio(self.hits, 1) >= percent * ratio(self.total, 1)
    }

    /// The 95 % confidence interval in percent: Wilson's score interval, which is also valid for few statements and
    /// near 0 and 100.
    pub(crate) fn interval(self) -> Option<(f64, f64)> {
        /// The standard normal distribution's 97.5th percentile.
        const Z: f64 = 1.959_964;
        if self.total == 0 {
            return None;
        }
        let (share, one) = (ratio(self.hits, self.total), ratio(1, self.total));
        let spread = Z * (share * (1.0 - share) * one + Z * Z * one * one / 4.0).sqrt();
        let (middle, scale) = (share + Z * Z * one / 2.0, 1.0 + Z * Z * one);
        let bound = |value: f64| 100.0 * (value / scale).clamp(0.0, 1.0);
        Some((bound(middle - spread), bound(middle + spread)))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            count: usize,
            of: usize,
            percent: Option<f64>,
            interval_95: Option<(f64, f64)>,
        }
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        Shown {
            count: self.hits,
            of: self.total,
            percent: self.percent().map(tenths),
            interval_95: self.interval().map(|(low, high)| (tenths(low), tenths(high))),
        }
        .serialize(serializer)
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are no datasets of 2^52 statements")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// A model's answers on statements that are true or false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ModelScore {
    pub(crate) right: usize,
    pub(crate) wrong: usize,
    /// It answered "cannot be determined".
    pub(crate) cannot_tell: usize,
    pub(crate) no_answer: usize,
}

impl ModelScore {
    /// The share of all statements it was asked about that it got right.
    pub(crate) fn rate(self) -> Rate {
        Rate { hits: self.right, total: self.right + self.wrong + self.cannot_tell + self.no_answer }
    }
}

/// The sums over all verified statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    counts: BTreeMap<(Label, Label), usize>,
    /// By model, sorted by name.
    pub(crate) models: BTreeMap<String, ModelScore>,
    /// Tokens used in all.
    pub(crate) tokens: u64,
    /// The cost in US dollars; `None` if any price is unknown.
    pub(crate) cost_usd: Option<f64>,
    /// Whether simulated models took part.
    pub(crate) is_sandbox: bool,
}

impl Score {
    /// An empty score, with a cost of zero.
    pub(crate) fn new() -> Self {
        Self { cost_usd: Some(0.0), ..Self::default() }
    }

    /// Adds a verified statement.
    pub(crate) fn add(&mut self, expected: Label, result: &VerifyResponse) {
        *self.counts.entry((expected, judged(result))).or_default() += 1;
        let usage = &result.token_usage;
        self.tokens = self.tokens.saturating_add(usage.total_tokens);
        self.is_sandbox |= result.mode.as_deref() == Some("sandbox");
        // The server's numbers are not trusted.
        let cost = usage.cost_usd().filter(|cost| cost.is_finite() && *cost >= 0.0);
        self.cost_usd = self.cost_usd.zip(cost).map(|(sum, cost)| sum + cost).filter(|sum| sum.is_finite());
        if matches!(expected, Label::True | Label::False) {
            self.add_models(expected, result);
        }
    }

    fn add_models(&mut self, expected: Label, result: &VerifyResponse) {
        let mut cast: BTreeMap<&str, Vec<Vote>> = BTreeMap::new();
        for claim in &result.results {
            for (model, vote) in votes::models(claim).zip(votes::votes(claim)) {
                cast.entry(model).or_default().push(vote);
            }
        }
        for (model, votes) in cast {
            let score = self.models.entry(model.to_owned()).or_default();
            let field = match combined_vote(&votes) {
                Vote::Claimed if expected == Label::True => &mut score.right,
                Vote::Other if expected == Label::False => &mut score.right,
                Vote::Claimed | Vote::Other => &mut score.wrong,
                Vote::Undecided => &mut score.cannot_tell,
                Vote::Missing => &mut score.no_answer,
            };
            *field += 1;
        }
    }

    /// How many statements that are `expected` were judged to be `judged`.
    pub(crate) fn count(&self, expected: Label, judged: Label) -> usize {
        self.counts.get(&(expected, judged)).copied().unwrap_or(0)
    }

    /// How many statements satisfy this.
    fn sum(&self, counts: impl Fn(Label, Label) -> bool) -> usize {
        let chosen = self.counts.iter().filter(|((expected, judged), _)| counts(*expected, *judged));
        chosen.map(|(_, count)| count).sum()
    }

    /// All verified statements.
    pub(crate) fn verified(&self) -> usize {
        self.sum(|_, _| true)
    }

    /// The share that was judged correctly.
    pub(crate) fn right(&self) -> Rate {
        Rate { hits: self.sum(|expected, judged| expected == judged), total: self.verified() }
    }

    /// The share that was judged to be true or false at all.
    pub(crate) fn decided(&self) -> Rate {
        Rate { hits: self.sum(|_, judged| is_verdict(judged)), total: self.verified() }
    }

    /// The share of correct ones among those judged true or false.
    pub(crate) fn right_when_decided(&self) -> Rate {
        let hits = self.sum(|expected, judged| expected == judged && is_verdict(judged));
        Rate { hits, total: self.decided().hits }
    }

    /// The share of false statements that were found to be false.
    pub(crate) fn false_found(&self) -> Rate {
        let hits = self.count(Label::False, Label::False);
        Rate { hits, total: self.sum(|expected, _| expected == Label::False) }
    }

    /// The share of false statements that passed as true: what a gate would let through.
    pub(crate) fn false_passed(&self) -> Rate {
        let hits = self.count(Label::False, Label::True);
        Rate { hits, total: self.sum(|expected, _| expected == Label::False) }
    }

    /// The share of true statements that were called false.
    pub(crate) fn true_called_false(&self) -> Rate {
        let hits = self.count(Label::True, Label::False);
        Rate { hits, total: self.sum(|expected, _| expected == Label::True) }
    }
}

fn is_verdict(label: Label) -> bool {
    matches!(label, Label::True | Label::False)
}

/// What a model's votes on the claims say about their statement: false if one of them does, and true only if all do.
fn combined_vote(votes: &[Vote]) -> Vote {
    [Vote::Other, Vote::Missing, Vote::Undecided]
        .into_iter()
        .find(|vote| votes.contains(vote))
        .unwrap_or(Vote::Claimed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::verify::ModelTokenUsage;
    use crate::cli::verify::votes::tests::claim;

    fn result(claims: &[(&str, &[(&str, &str)])], cost: Option<f64>) -> VerifyResponse {
        let claims: Vec<_> = claims.iter().map(|(judged, answers)| claim(judged, "A", answers)).collect();
        serde_json::from_value(json!({
            "requestId": "ver_1", "original_fact": "x", "results": claims, "timestamp": "t",
            "tokenUsage": {
                "promptTokens": 90, "completionTokens": 10, "totalTokens": 100,
                "modelUsage": [{ "model": "p/a", "promptTokens": 90, "completionTokens": 10, "totalTokens": 100,
                    "costUsd": cost }],
            },
            "minRequired": 2, "skipped": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_statement_is_what_its_worst_claim_is() {
        let judged_as = |claims: &[&str]| {
            let claims: Vec<_> = claims.iter().map(|judged| (*judged, &[][..])).collect();
            judged(&result(&claims, None))
        };
        assert_eq!(judged_as(&["TRUE", "TRUE"]), Label::True);
        assert_eq!(judged_as(&["TRUE", "NO CONSENSUS"]), Label::NoConsensus);
        assert_eq!(judged_as(&["NO CONSENSUS", "FALSE", "TRUE"]), Label::False);
        assert_eq!(judged_as(&[]), Label::Nothing);
    }

    #[test]
    fn rates_have_the_right_totals() {
        let mut score = Score::new();
        let found = |judged| result(&[(judged, &[])], Some(0.25));
        for (expected, judged) in [
            (Label::True, "TRUE"),
            (Label::True, "FALSE"),
            (Label::True, "NO CONSENSUS"),
            (Label::False, "FALSE"),
            (Label::False, "TRUE"),
            (Label::NoConsensus, "NO CONSENSUS"),
        ] {
            score.add(expected, &found(judged));
        }
        assert_eq!(score.right(), Rate { hits: 3, total: 6 });
        assert_eq!(score.decided(), Rate { hits: 4, total: 6 });
        assert_eq!(score.right_when_decided(), Rate { hits: 2, total: 4 });
        assert_eq!(score.false_found(), Rate { hits: 1, total: 2 });
        assert_eq!(score.false_passed(), Rate { hits: 1, total: 2 });
        assert_eq!(score.true_called_false(), Rate { hits: 1, total: 3 });
        assert_eq!((score.tokens, score.cost_usd), (600, Some(1.5)));
        let mut unused = result(&[], Some(0.5));
        let models = unused.token_usage.model_usage.as_mut().unwrap();
        models.push(ModelTokenUsage { model: "p/unpriced".to_owned(), ..ModelTokenUsage::default() });
        score.add(Label::True, &unused);
        assert_eq!(score.cost_usd, Some(2.0), "what used no tokens costs nothing");
        score.add(Label::True, &result(&[], None));
        assert_eq!(score.cost_usd, None, "a sum without one of its parts would be too small");
    }

    #[test]
    fn a_model_is_right_by_all_of_its_votes() {
        let mut score = Score::new();
        let votes: [&[(&str, &str)]; 2] =
            [&[("p/a", "A"), ("p/b", "A"), ("p/c", "E")], &[("p/a", "A"), ("p/b", "B"), ("p/d", "!timeout")]];
        let both = result(&[("TRUE", votes[0]), ("NO CONSENSUS", votes[1])], None);
        score.add(Label::True, &both);
        score.add(Label::False, &both);
        score.add(Label::NoConsensus, &both);
        let expected = [
            ("p/a", ModelScore { right: 1, wrong: 1, ..ModelScore::default() }),
            ("p/b", ModelScore { right: 1, wrong: 1, ..ModelScore::default() }),
            ("p/c", ModelScore { cannot_tell: 2, ..ModelScore::default() }),
            ("p/d", ModelScore { no_answer: 2, ..ModelScore::default() }),
        ];
        assert_eq!(score.models, expected.map(|(name, score)| (name.to_owned(), score)).into());
    }

    #[test]
    fn a_share_reaches_itself() {
        for total in 1..400 {
            for hits in 0..=total {
                let rate = Rate { hits, total };
                assert!((hits * 100) % total > 0 || rate.reaches(ratio(hits * 100 / total, 1)), "{rate:?}");
            }
        }
        assert!(!Rate { hits: 2249, total: 2500 }.reaches(90.0));
        assert!(!Rate::default().reaches(0.0));
    }

    #[test]
    fn absurd_tokens_and_costs_from_a_server_break_no_sum() {
        let mut score = Score::new();
        let mut odd = result(&[("TRUE", &[])], Some(-5.0));
        odd.token_usage.total_tokens = u64::MAX;
        score.add(Label::True, &odd);
        score.add(Label::True, &odd);
        assert_eq!((score.tokens, score.cost_usd), (u64::MAX, None));
    }

    #[test]
    fn intervals_are_wilsons() {
        // Values of R's `prop.test(…, correct = FALSE)`.
        let near = |rate: Rate, low: f64, high: f64| {
            let (is_low, is_high) = rate.interval().unwrap();
            assert!((is_low - low).abs() < 0.05 && (is_high - high).abs() < 0.05, "{is_low} {is_high}");
        };
        near(Rate { hits: 35, total: 40 }, 73.9, 94.5);
        near(Rate { hits: 0, total: 10 }, 0.0, 27.8);
        near(Rate { hits: 10, total: 10 }, 72.2, 100.0);
        assert_eq!(Rate::default().interval(), None);
    }
}
