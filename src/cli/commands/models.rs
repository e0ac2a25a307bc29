//! `mk models`: which models are available, what they cost, how large their context is, and when they retire.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::api::Service;
use crate::api::models::Model;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::backend::{self, Backend, BackendArgs, Chosen, Need};
use crate::cli::target::remote;
use crate::cli::terminal::humanize;
use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::tabular::{self, Column, column, number};

/// Examples of `mk models`, first in its help. In the last one, awk does not treat `-` as a number above 0.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk models                                   models that your key may use
  mk models --local                           models of this machine's providers
  mk models | awk -F'\\t' '$2 > 0 && $2 < 1'   less than $1 per million";

/// The columns in a pipe, last in its help.
pub(crate) const NOTES: &str = "\
In a pipe, lines are tab-separated: model, price of input and of output in
dollars per million tokens, context size and longest answer in tokens,
retirement date, price of cached input in dollars per million tokens and, if
there are pools, their targets. Unknown values are `-`.";

/// Also the fields of a line in a pipe. Prices are in dollars per million tokens.
const COLUMNS: [Column; 8] = [
    column("model"),
    number("$/M in"),
    number("$/M out"),
    number("context"),
    number("output"),
    column("retired on"),
    column("$/M cached"),
    column("targets"),
];

/// The index of the retirement date, which few models have.
const RETIRED_ON_COLUMN: usize = 5;

/// The index of the targets, which is left out where there are no pools.
const TARGETS_COLUMN: usize = 7;

/// Columns that a narrow terminal drops: what cached input costs, the sizes, the targets.
const DROPPABLE: [usize; 4] = [6, 4, 3, TARGETS_COLUMN];

/// The arguments of `mk models`.
#[derive(Args, Debug)]
pub(crate) struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    backend: BackendArgs,
}

/// Lists the models.
pub(crate) fn run(args: &ModelsArgs, session: &mut Session) -> Outcome {
    let config = session.client_config(None, None)?;
    let need = Need {
        service: Service::Inference,
        idle_timeout: remote::IDLE_TIMEOUT,
        keyless_command: "mk models --sandbox",
    };
    let chosen = backend::choose(args.backend, &config, session, need)?;
    let printer = session.printer.clone();
    let limit = remote::short_timeout(&config);
    let (models, is_sandbox) = runtime::run(&printer, list(chosen, &printer, limit))?;
    if args.json {
        let mut document = json!({ "schema": "mk.models/1", "exit": 0, "models": models });
        if is_sandbox {
            document["mode"] = json!("sandbox");
        }
        printer.document(&document)?;
        return Ok(0);
    }
    let is_for_people = printer.terminal.out.is_terminal;
    let mut rows: Vec<_> = models.iter().map(|model| row(model, is_for_people)).collect();
    let mut columns = COLUMNS.to_vec();
    if models.iter().all(|model| model.targets.is_empty()) {
        columns.truncate(TARGETS_COLUMN);
        for row in &mut rows {
            row.truncate(TARGETS_COLUMN);
        }
    }
    if !is_for_people {
        tabular::print(&printer, &columns, &rows)?;
        return Ok(0);
    }
    columns[RETIRED_ON_COLUMN].for_people = models.iter().any(|model| model.deprecation_date.is_some());
    tabular::print_fitting(&printer, &columns, &rows, &DROPPABLE)?;
    Ok(0)
}

async fn list(chosen: Chosen, printer: &Printer, limit: Duration) -> Result<(Vec<Model>, bool), Failure> {
    let backend = chosen.open(printer).await?;
    Ok((list_within(&backend, limit).await?, backend.is_sandbox))
}

/// The models that the server offers, if it responds within `limit`.
pub(crate) async fn list_within(backend: &Backend, limit: Duration) -> Result<Vec<Model>, Failure> {
    let response = remote::within(limit, backend.client.models()).await;
    response.map_err(|cause| remote::inference_failure(&backend.server, cause))
}

/// The texts of a row; what is unknown is `-`.
fn row(model: &Model, is_for_people: bool) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let tokens = |count: u64| if is_for_people { humanize::thousands(count) } else { count.to_string() };
    vec![
        model.id.clone(),
        or_dash(model.input_usd_per_mtok.map(|dollars| dollars.to_string())),
        or_dash(model.output_usd_per_mtok.map(|dollars| dollars.to_string())),
        or_dash(model.context_window.map(tokens)),
        or_dash(model.max_output_tokens.map(tokens)),
        or_dash(model.deprecation_date.clone()),
        or_dash(model.cached_input_usd_per_mtok.map(|dollars| dollars.to_string())),
        or_dash((!model.targets.is_empty()).then(|| model.targets.join(","))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_a_dash_and_never_zero() {
        let unknown = Model { id: "a/b".to_owned(), ..Model::default() };
        assert_eq!(row(&unknown, false), ["a/b", "-", "-", "-", "-", "-", "-", "-"]);
    }

    #[test]
    fn numbers_are_grouped_for_people_only() {
        let model = Model {
            id: "a/b".to_owned(),
            context_window: Some(200_000),
            max_output_tokens: Some(64_000),
            input_usd_per_mtok: Some(0.0375),
            output_usd_per_mtok: Some(4.5),
            cached_input_usd_per_mtok: Some(0.004),
            deprecation_date: Some("2027-01-01".to_owned()),
            targets: vec!["a/b".to_owned(), "c/d".to_owned()],
            ..Model::default()
        };
        let fields = ["a/b", "0.0375", "4.5", "200000", "64000", "2027-01-01", "0.004", "a/b,c/d"];
        assert_eq!(row(&model, false), fields);
        assert_eq!(row(&model, true)[3..5], ["200,000", "64,000"]);
    }
}
