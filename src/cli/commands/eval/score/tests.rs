//! What results add up to, on statements few enough to count by hand.
//!
//! Results are built from the letters of votes, as no server is needed to count. What must hold: a model is judged by
//! verdict and by option without one being taken for the other, what failed or is unknown counts for nobody, and every
//! figure is a share of what it says it is.

use serde_json::json;

use super::observation::Mark;
use super::*;
use crate::api::verify::ModelTokenUsage;
use crate::cli::commands::eval::dataset::Position;
use crate::cli::commands::eval::label::Label;
use crate::cli::commands::eval::open::{Mapping, OpenAnswer, Opened};
use crate::cli::commands::verify::output::votes::tests::claim;

fn item(expected: Label, answer: Option<&str>) -> Item {
    Item {
        number: 0,
        at: Position { file: None, line: 1 },
        id: None,
        fact: "F".to_owned(),
        expected,
        domain: None,
        context: None,
        as_of: None,
        answer: answer.map(str::to_owned),
        tags: Vec::new(),
    }
}

/// A result with claims, each by its assessment and answers.
fn result(claims: &[(&str, &[(&str, &str)])], cost: Option<f64>) -> VerifyResponse {
    let claims: Vec<_> = claims.iter().map(|(judged, answers)| claim(judged, "A", answers)).collect();
    serde_json::from_value(json!({
        "requestId": "ver_1", "original_fact": "x", "results": claims, "timestamp": "t",
        "tokenUsage": {
            "promptTokens": 90, "completionTokens": 10, "totalTokens": 100,
            "modelUsage": [{ "model": "p/a", "promptTokens": 90, "completionTokens": 10, "totalTokens": 100,
                "cost_usd": cost }],
        },
        "minRequired": 2, "skipped": [], "complete": true,
    }))
    .unwrap()
}

/// A question about which the models answered this.
fn asked(answers: &[(&str, &str)]) -> VerifyResponse {
    result(&[("TRUE", answers)], None)
}

fn marks(right: usize, wrong: usize, cannot_tell: usize, no_answer: usize) -> Marks {
    Marks { right, wrong, cannot_tell, no_answer }
}

#[test]
fn a_statement_is_what_its_worst_claim_is() {
    let said_of = |claims: &[&str]| {
        let claims: Vec<_> = claims.iter().map(|judged| (*judged, &[][..])).collect();
        said(&result(&claims, None))
    };
    assert_eq!(said_of(&["TRUE", "TRUE"]), Label::True);
    assert_eq!(said_of(&["TRUE", "NO CONSENSUS"]), Label::NoConsensus);
    assert_eq!(said_of(&["NO CONSENSUS", "FALSE", "TRUE"]), Label::False);
    assert_eq!(said_of(&[]), Label::Nothing);
}

#[test]
fn what_was_not_wholly_checked_is_neither_true_nor_nothing() {
    let said_of = |claims: &[(&str, &[(&str, &str)])]| {
        said(&VerifyResponse { complete: false, ..result(claims, None) })
    };
    assert_eq!(said_of(&[("TRUE", &[])]), Label::Unchecked);
    assert_eq!(said_of(&[]), Label::Unchecked);
    assert_eq!(said_of(&[("FALSE", &[])]), Label::False);
    assert_eq!(said_of(&[("NO CONSENSUS", &[])]), Label::NoConsensus);
}

#[test]
fn tokens_and_costs_are_summed() {
    let mut score = Score::new();
    (0..6).for_each(|_| score.add(&item(Label::True, None), 0, &result(&[("TRUE", &[])], Some(0.25)), None));
    assert_eq!((score.tokens, score.cost_usd), (600, Some(1.5)));
    let mut unused = result(&[], Some(0.5));
    let models = unused.token_usage.model_usage.as_mut().unwrap();
    models.push(ModelTokenUsage { model: "p/unpriced".to_owned(), ..ModelTokenUsage::default() });
    score.add(&item(Label::True, None), 0, &unused, None);
    assert_eq!(score.cost_usd, Some(2.0), "what used no tokens costs nothing");
    score.add(&item(Label::True, None), 0, &result(&[], None), None);
    assert_eq!(score.cost_usd, None, "a sum without one of its parts would be too small");
}

#[test]
fn absurd_tokens_and_costs_from_a_server_break_no_sum() {
    let mut score = Score::new();
    let mut odd = result(&[("TRUE", &[])], Some(-5.0));
    odd.token_usage.total_tokens = u64::MAX;
    score.add(&item(Label::True, None), 0, &odd, None);
    score.add(&item(Label::True, None), 0, &odd, None);
    assert_eq!((score.tokens, score.cost_usd), (u64::MAX, None));
}

#[test]
fn a_model_is_right_by_all_of_its_votes() {
    let mut score = Score::new();
    let votes: [&[(&str, &str)]; 2] =
        [&[("p/a", "A"), ("p/b", "A"), ("p/c", "E")], &[("p/a", "A"), ("p/b", "B"), ("p/d", "!timeout")]];
    let both = result(&[("TRUE", votes[0]), ("NO CONSENSUS", votes[1])], None);
    for expected in [Label::True, Label::False, Label::NoConsensus] {
        score.add(&item(expected, None), 0, &both, None);
    }
    let found: Vec<_> = score.by_model().into_iter().map(|(name, score)| (name, score.verdict)).collect();
    let expected = [
        ("p/a", marks(1, 1, 0, 0)),
        ("p/b", marks(1, 1, 0, 0)),
        ("p/c", marks(0, 0, 2, 0)),
        ("p/d", marks(0, 0, 0, 2)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn by_option_only_the_right_answer_is_right() {
    // Of a false claim "1925", 1889 (B) is right; C and "None of these" (D) are not.
    let answers = [("p/a", "B"), ("p/b", "C"), ("p/c", "D"), ("p/d", "E"), ("p/e", "A")];
    let mut score = Score::new();
    score.add(&item(Label::False, Some("1889")), 0, &asked(&answers), None);
    let by_model = score.by_model();
    let by_verdict = ["p/a", "p/b", "p/c"].map(|name| by_model[name].verdict.right);
    assert_eq!(by_verdict, [1, 1, 1], "by verdict, any other answer than the claimed one is right");
    let by_option = ["p/a", "p/b", "p/c", "p/d", "p/e"].map(|name| by_model[name].option);
    let expected =
        [marks(1, 0, 0, 0), marks(0, 1, 0, 0), marks(0, 1, 0, 0), marks(0, 0, 1, 0), marks(0, 1, 0, 0)];
    assert_eq!(by_option, expected);
    assert_eq!(score.known_options(), Rate { hits: 1, total: 1 });
}

#[test]
fn without_options_a_model_is_compared_with_itself_on_the_same_questions() {
    let answers = [("p/a", "B"), ("p/b", "B"), ("p/c", "C"), ("p/d", "B"), ("p/e", "E"), ("p/f", "B")];
    let result = asked(&answers);
    let said = [
        ("p/a", Some("B"), Mapping::Code),
        ("p/b", None, Mapping::Nobody),
        ("p/c", Some("B"), Mapping::Judge),
        ("p/d", None, Mapping::Unknown),
        ("p/e", None, Mapping::Unknown),
        ("p/f", None, Mapping::Failed),
    ];
    let open = said.map(|(model, option, mapped_by)| OpenAnswer {
        claim: result.results[0].id.clone(),
        model: model.to_owned(),
        answer: Some("in words".to_owned()),
        option: option.map(str::to_owned),
        mapped_by,
    });
    let opened = Opened { answers: open.to_vec(), tokens: 7, cost_usd: Some(0.5), ..Opened::default() };
    let mut score = Score::new();
    score.add(&item(Label::False, Some("1889")), 0, &result, Some(&opened));
    let found = score.openly();
    let right = |model: &str| {
        let at = score.models.iter().position(|name| name == model).unwrap();
        let Pairs { both, only_first, only_second, neither } = found[&at].right;
        [both, only_first, only_second, neither]
    };
    assert_eq!(
        ["p/a", "p/b", "p/c", "p/d", "p/e", "p/f"].map(right),
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    );
    let sums = found.values().fold([0; 5], |sums: [usize; 5], one| {
        let counts = [one.by_code, one.by_judge, one.by_nobody, one.unknown, one.failed];
        std::array::from_fn(|at| sums[at] + counts[at])
    });
    assert_eq!(sums, [1, 1, 1, 2, 1]);
    assert!(score.tokens >= 7, "they are paid for too");
}

#[test]
fn without_an_answer_among_the_options_the_right_one_is_unknown() {
    let mut score = Score::new();
    let answers = [("p/a", "B")];
    score.add(&item(Label::False, None), 0, &asked(&answers), None);
    score.add(&item(Label::False, Some("1887")), 0, &asked(&answers), None);
    score.add(&item(Label::False, Some("1925")), 0, &asked(&answers), None);
    score.add(&item(Label::True, None), 0, &asked(&answers), None);
    assert_eq!((score.known_options(), score.unmatched_answers()), (Rate { hits: 1, total: 4 }, 2));
    assert_eq!(
        score.by_model()["p/a"].option,
        marks(0, 1, 0, 0),
        "the claimed answer of a true statement is right"
    );
}

#[test]
fn rules_are_recounted_from_the_votes() {
    let mut score = Score::new();
    score.add(&item(Label::True, None), 0, &asked(&[("p/a", "A"), ("p/b", "A"), ("p/c", "B")]), None);
    score.add(&item(Label::False, None), 0, &asked(&[("p/a", "A"), ("p/b", "B"), ("p/c", "B")]), None);
    score.add(&item(Label::False, None), 0, &asked(&[("p/a", "A"), ("p/b", "A"), ("p/c", "A")]), None);
    let found: Vec<_> = score
        .recounts()
        .iter()
        .map(|recount| {
            let rule = recount.rule;
            let matrix = &recount.matrix;
            (
                (rule.min_required, rule.of, rule.left_out.map(|model| score.name(model)), rule.is_own),
                (matrix.precision(Label::True), matrix.coverage(Label::False).hits),
            )
        })
        .collect();
    let rate = |hits, total| Rate { hits, total };
    let expected = [
        ((2, 3, None, true), (rate(1, 2), 1)),
        ((3, 3, None, false), (rate(0, 1), 0)),
        ((2, 2, Some("p/a"), false), (rate(0, 1), 1)),
        ((2, 2, Some("p/b"), false), (rate(0, 1), 0)),
        ((2, 2, Some("p/c"), false), (rate(1, 2), 0)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_most_covering_rule_that_is_precise_enough_is_taken() {
    let mut score = Score::new();
    for _ in 0..100 {
        score.add(&item(Label::True, None), 0, &asked(&[("p/a", "A"), ("p/b", "A"), ("p/c", "A")]), None);
        score.add(&item(Label::False, None), 0, &asked(&[("p/a", "B"), ("p/b", "B"), ("p/c", "B")]), None);
    }
    for _ in 0..20 {
        score.add(&item(Label::False, None), 0, &asked(&[("p/a", "A"), ("p/b", "A"), ("p/c", "B")]), None);
    }
    let recounts = score.recounts();
    let best = best_for(&recounts, 95.0).unwrap();
    assert_eq!(
        (best.rule.min_required, best.rule.of, best.matrix.decided().hits),
        (3, 3, 200),
        "of equals, the whole panel"
    );
    assert!(best_for(&recounts, 99.0).is_none());
    let unanimous = recounts.iter().find(|recount| recount.rule.min_required == 3).unwrap();
    assert_eq!(unanimous.still_needed(95.0), Some(0));
    assert_eq!(
        unanimous.still_needed(98.0),
        Some(196),
        "189 of each verdict, and there are 100 in 220 statements are there"
    );
    assert_eq!(recounts[0].still_needed(95.0), None, "100 of 120 is below 95 %, however often");
}

#[test]
fn the_panel_is_compared_with_its_best_model_on_the_same_statements() {
    let mut score = Score::new();
    // The best, b, is right twice more than the panel, and wrong once more.
    for (expected, answers, judged) in [
        (Label::True, ["A", "A", "A"], "TRUE"),
        (Label::True, ["B", "A", "C"], "NO CONSENSUS"),
        (Label::True, ["C", "A", "B"], "NO CONSENSUS"),
        (Label::False, ["B", "A", "C"], "NO CONSENSUS"),
    ] {
        let names = ["p/a", "p/b", "p/c"];
        let answers: Vec<_> = names.into_iter().zip(answers).collect();
        score.add(&item(expected, None), 0, &result(&[(judged, &answers)], None), None);
    }
    let duel = score.against_best().unwrap();
    assert_eq!(score.name(duel.model), "p/b");
    assert_eq!(duel.right, Pairs { both: 1, only_first: 0, only_second: 2, neither: 1 });
    assert_eq!(duel.wrong, Pairs { both: 0, only_first: 0, only_second: 1, neither: 3 });
}

#[test]
fn errors_in_common_are_counted_by_statement_and_answer() {
    let mut score = Score::new();
    for (expected, answers) in [
        (Label::True, ["A", "A", "A"]),
        (Label::True, ["B", "B", "C"]),  // all wrong, two the same
        (Label::True, ["B", "C", "A"]),  // two wrong, not the same
        (Label::True, ["E", "B", "A"]),  // one could not tell
        (Label::False, ["A", "B", "A"]), // the claimed one is the same wrong answer
        (Label::False, ["B", "C", "D"]), // right by verdict
    ] {
        let names = ["p/a", "p/b", "p/c"];
        let answers: Vec<_> = names.into_iter().zip(answers).collect();
        score.add(&item(expected, None), 0, &asked(&answers), None);
    }
    let common = score.common_errors();
    assert_eq!(common.all_err, Exact(Rate { hits: 1, total: 6 }));
    assert_eq!(common.same_wrong, Rate { hits: 2, total: 6 });
    let first = &common.pairs[0];
    assert_eq!(first.errors, Pairs { both: 2, only_first: 1, only_second: 0, neither: 2 });
    assert_eq!(first.same_wrong, Rate { hits: 1, total: 2 });
}

#[test]
fn a_standby_that_filled_in_once_is_no_part_of_the_panel() {
    let mut score = Score::new();
    for _ in 0..3 {
        score.add(&item(Label::True, None), 0, &asked(&[("p/a", "A"), ("p/b", "A"), ("p/c", "B")]), None);
    }
    score.add(
        &item(Label::True, None),
        0,
        &asked(&[("p/a", "A"), ("p/b", "!timeout"), ("p/d", "A"), ("p/c", "B")]),
        None,
    );
    let names: Vec<&str> = score.panel().into_iter().map(|model| score.name(model)).collect();
    assert_eq!(names, ["p/a", "p/b", "p/c"]);
    let recounts = score.recounts();
    assert_eq!(recounts[0].matrix.right(), Rate { hits: 4, total: 4 }, "its vote counts as it did");
}

#[test]
fn tags_and_several_domains_are_parts() {
    let mut score = Score::new();
    let tagged = |tag: &str| Item { tags: vec![tag.to_owned()], ..item(Label::True, None) };
    score.add(&tagged("history"), 0, &result(&[("TRUE", &[])], None), None);
    score.add(&tagged("science"), 0, &result(&[("FALSE", &[])], None), None);
    let parts = |score: &Score| -> Vec<(&str, String, Rate)> {
        score.groups().into_iter().map(|group| (group.kind, group.name, group.matrix.right())).collect()
    };
    let rate = |hits, total| Rate { hits, total };
    let tags = [("tag", "history".to_owned(), rate(1, 1)), ("tag", "science".to_owned(), rate(0, 1))];
    assert_eq!(parts(&score), tags);
    let legal =
        VerifyResponse { domain: crate::api::verify::Domain::Legal, ..result(&[("TRUE", &[])], None) };
    score.add(&item(Label::True, None), 0, &legal, None);
    let domains = [("domain", "general".to_owned(), rate(1, 2)), ("domain", "legal".to_owned(), rate(1, 1))];
    assert_eq!(parts(&score), [&domains[..], &tags[..]].concat());
}

#[test]
fn verdicts_that_change_between_runs_are_counted_and_change_no_figure() {
    let mut score = Score::new();
    let statement = |number| Item { number, ..item(Label::True, None) };
    let runs = [("TRUE", ["A", "A", "B"]), ("TRUE", ["A", "B", "A"]), ("NO CONSENSUS", ["A", "B", "C"])];
    for (number, runs) in [(0, &runs[..2]), (1, &runs[1..]), (2, &runs[..1])] {
        for (run, (judged, answers)) in (0..).zip(runs) {
            let answers: Vec<_> = ["p/a", "p/b", "p/c"].into_iter().zip(*answers).collect();
            score.add(&statement(number), run, &result(&[(judged, &answers)], Some(1.0)), None);
        }
    }
    assert_eq!(
        (score.verified(), score.cost_usd),
        (3, Some(5.0)),
        "figures are of the first run, the cost of all"
    );
    assert_eq!(score.flips.verdicts(), Rate { hits: 1, total: 2 }, "what was verified once cannot change");
    let models = [0, 1, 2].map(|model| score.flips.model(model));
    assert_eq!(models.map(|rate| rate.hits), [0, 1, 2], "{models:?}");
    assert_eq!((score.flips.first(1), score.flips.first(9)), (Some(Label::True), None));
}

#[test]
fn a_vote_is_right_or_wrong_and_nothing_else_is_a_vote() {
    assert!(Mark::Right.is_vote() && Mark::Wrong.is_vote());
    assert!(!Mark::CannotTell.is_vote() && !Mark::NoAnswer.is_vote());
}
