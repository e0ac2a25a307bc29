//! The figures as JSON. Fields are only ever added.

use serde_json::{Map, Value, json};

use crate::cli::commands::eval::figures::{Figures, OpenFigures};
use crate::cli::commands::eval::label::Label;
use crate::cli::commands::eval::score::{
    Duel, Group, Matrix, ModelScore, OpenScore, PairErrors, Rate, Recount,
};

/// The shares of verdicts, and the matrix that they are from.
pub(in crate::cli::commands::eval) fn verdicts(matrix: &Matrix) -> Map<String, Value> {
    let said = |expected: Label| -> Value {
        let counts = Label::ALL.iter().map(|said| (said.to_string(), json!(matrix.count(expected, *said))));
        Value::Object(counts.collect())
    };
    let rows = Label::ALL.iter().filter(|label| **label != Label::Unchecked);
    let rows: Map<String, Value> = rows.map(|expected| (expected.to_string(), said(*expected))).collect();
    fields(json!({
        "accuracy": matrix.right(),
        "decided": matrix.decided(),
        "accuracy_when_decided": matrix.right_when_decided(),
        "true_precision": matrix.precision(Label::True),
        "false_precision": matrix.precision(Label::False),
        "true_found": matrix.coverage(Label::True),
        "false_found": matrix.coverage(Label::False),
        "false_passed_as_true": matrix.false_passed(),
        "true_called_false": matrix.true_called_false(),
        "matrix": rows,
    }))
}

/// What concerns the models and other rules.
pub(in crate::cli::commands::eval) fn figures(figures: &Figures) -> Map<String, Value> {
    let common = &figures.common;
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let pair = |pair: &PairErrors| {
        let phi = pair.correlation();
        json!({
            "models": [figures.name(pair.models.0), figures.name(pair.models.1)],
            "statements": pair.errors.total(),
            "both": pair.errors.both,
            "only_first": pair.errors.only_first,
            "only_second": pair.errors.only_second,
            "correlation": phi.map(|phi| rounded(phi.value)),
            "interval_95": phi
                .filter(|phi| phi.interval.0 < phi.interval.1)
                .map(|phi| (rounded(phi.interval.0), rounded(phi.interval.1))),
            "same_wrong_answer": pair.same_wrong,
        })
    };
    fields(json!({
        "models": figures.models.iter().map(model).collect::<Vec<_>>(),
        "known_options": figures.known_options,
        "unmatched_answers": figures.unmatched_answers,
        "open": figures.open.as_ref().map(open),
        "panel_against_best": figures.duel.as_ref().map(|one| duel(figures, one)),
        "errors": {
            "pairs": common.pairs.iter().map(pair).collect::<Vec<_>>(),
            "mean_correlation": common.mean_correlation.map(rounded),
            "effective_votes": common.effective_votes.map(rounded),
            "all_wrong": common.all_err,
            "same_wrong_answer": common.same_wrong,
        },
        "rules": figures.recounts.iter().map(|recount| rule(figures, recount)).collect::<Vec<_>>(),
        "groups": figures.groups.iter().map(group).collect::<Vec<_>>(),
    }))
}

fn model((name, score): &(String, ModelScore)) -> Value {
    let ModelScore { verdict, option } = score;
    json!({
        "model": name,
        "right": verdict.right,
        "wrong": verdict.wrong,
        "cannot_tell": verdict.cannot_tell,
        "no_answer": verdict.no_answer,
        "accuracy": verdict.rate(),
        "option": option,
        "option_accuracy": option.rate(),
    })
}

fn open(figures: &OpenFigures) -> Value {
    let model = |(name, score): &(String, OpenScore)| {
        let OpenScore { right, by_code, by_judge, by_nobody, unknown, failed } = score;
        json!({
            "model": name,
            "with_options": Rate { hits: right.both + right.only_first, total: right.total() },
            "without_options": Rate { hits: right.both + right.only_second, total: right.total() },
            "only_with": right.only_first,
            "only_without": right.only_second,
            "p": right.mcnemar(),
            "mapped_by_code": by_code,
            "mapped_by_judge": by_judge,
            "not_mapped": by_nobody,
            "unknown": unknown,
            "failed": failed,
        })
    };
    json!({
        "judges": figures.judges,
        "prompts": figures.prompts,
        "not_asked": figures.not_asked,
        "models": figures.models.iter().map(model).collect::<Vec<_>>(),
    })
}

fn duel(figures: &Figures, duel: &Duel) -> Value {
    let side = |pairs: crate::cli::commands::eval::score::Pairs| {
        json!({
            "panel": pairs.both + pairs.only_first,
            "model": pairs.both + pairs.only_second,
            "only_panel": pairs.only_first,
            "only_model": pairs.only_second,
            "p": pairs.mcnemar(),
        })
    };
    json!({
        "model": figures.name(duel.model),
        "statements": duel.right.total(),
        "right": side(duel.right),
        "wrong": side(duel.wrong),
    })
}

fn rule(figures: &Figures, recount: &Recount) -> Value {
    let rule = recount.rule;
    let mut entry = fields(json!({
        "rule": figures.rule(rule),
        "min_required": rule.min_required,
        "models": rule.of,
        "left_out": rule.left_out.map(|model| figures.name(model)),
        "as_asked": rule.is_own,
    }));
    entry.extend(verdicts(&recount.matrix));
    entry.remove("matrix");
    Value::Object(entry)
}

fn group(group: &Group) -> Value {
    let mut entry =
        fields(json!({ "kind": group.kind, "name": group.name, "statements": group.matrix.total() }));
    entry.extend(verdicts(&group.matrix));
    entry.remove("matrix");
    Value::Object(entry)
}

/// The fields of an object.
pub(in crate::cli::commands::eval) fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
