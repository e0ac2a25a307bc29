//! `mk doctor`: checks this installation.
//!
//! No check prevents another: what is misconfigured is reported, and everything that does not depend on it is still
//! checked. Nothing is changed and nothing is paid for. Checks that take time (databases, providers, the server) run
//! concurrently, each with its own time limit.

mod check;
mod clock;
mod configuration;
mod database;
mod limits;
mod models;
mod providers;
mod report;
mod server;

use clap::Args;
use futures_util::future::OptionFuture;
use serde_json::json;

use crate::cli::args::globals::Session;
use crate::cli::process::exit::{Failure, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::database::DatabaseArgs;
use crate::clock::Clock;
use crate::config::{
    ClientConfig, NamedProvider, ServerConfig, StorePlace, load_database, load_limits_store, load_listen,
    load_providers, load_server, server_path,
};
use crate::limits::LimitsStore;
use check::{Check, Status};
use models::ConfiguredModels;

/// Examples of `mk doctor`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk doctor
  mk doctor --server https://mk.example.com
  mk doctor --json | jq -r '.checks[] | select(.status == \"failed\") | .message'";

/// The text below the options in `mk doctor --help`.
pub(crate) const NOTES: &str = "\
This costs nothing: no model is called, and providers only list their models.
In a pipe, each check is a line of tab-separated fields: status (ok, note,
warning, failed), check, message, hints.
The exit code is 1 if a check failed, else 0.";

/// The arguments of `mk doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// The input of the checks that take time.
struct Plan {
    client: Option<ClientConfig>,
    /// Whether the client's keys belong to the server that is asked.
    owns_keys: bool,
    database: Option<StorePlace>,
    providers: Vec<NamedProvider>,
    limits_store: Option<LimitsStore>,
    /// The models that a valid configuration names.
    models: ConfiguredModels,
}

/// Runs all checks. Findings are printed as they become available.
pub(crate) fn run(args: &DoctorArgs, session: &mut Session) -> Outcome {
    let mut checks = Vec::new();
    let client = match session.quiet_client_config(None, None) {
        Ok(config) => {
            checks.extend(configuration::client(&config, &session.env));
            Some(config)
        }
        Err(failure) => {
            let broken = Check::failed("client configuration", failure.message);
            checks.push(Check { hints: failure.hints, ..broken });
            None
        }
    };
    let (found, plan) = server_side(args, session, client);
    checks.extend(found);
    // Something is shown before anything is waited for.
    let show = |checks: &[Check]| {
        if args.json {
            Ok(())
        } else {
            checks.iter().try_for_each(|check| report::print(&session.printer, check))
        }
    };
    show(&checks)?;
    let later = runtime::run(&session.printer, run_slow_checks(plan))?;
    show(&later)?;
    checks.extend(later);
    let code = u8::from(checks.iter().any(|check| check.state == Status::Failed));
    if args.json {
        let found: Vec<_> = checks.iter().map(Check::document).collect();
        session.printer.document(&json!({ "schema": "mk.doctor/1", "checks": found, "exit": code }))?;
    } else {
        report::print_summary(&session.printer, &checks)?;
    }
    Ok(code)
}

/// The immediate findings on the server's configuration, and the plan for the checks that take time.
fn server_side(args: &DoctorArgs, session: &Session, mut client: Option<ClientConfig>) -> (Vec<Check>, Plan) {
    let server_args = args.database.server_args();
    let named = args.database.data_dir.clone();
    let database =
        named.map_or_else(|| load_database(&server_args, &session.env), |dir| Ok(StorePlace::Directory(dir)));
    let owns_keys;
    let mut models = ConfiguredModels::default();
    let (checks, limits_store, providers) = match load_server(&server_args, &session.env) {
        Ok(config) => {
            let mut checks = configuration::server(&config);
            let has_tls = config.tls.is_some();
            let other =
                client.as_mut().and_then(|client| server::prefer_own_server(client, config.listen, has_tls));
            owns_keys = other.is_none();
            checks.extend(other);
            models = ConfiguredModels::from_config(&config);
            (checks, Some(config.limits_store.clone()), named_providers(config))
        }
        Err(error) => {
            let providers = load_providers(&server_args, &session.env);
            let is_without_providers = providers.as_ref().is_ok_and(Vec::is_empty);
            let has_file = args.database.config.is_some()
                || server_path(&server_args, &session.env).is_some_and(|file| file.exists());
            let is_server_expected = has_file
                || database.as_ref().is_ok_and(|place| match place {
                    StorePlace::Directory(dir) => dir.exists(),
                    StorePlace::Postgres(_) => true,
                });
            let mut providers = providers.unwrap_or_default();
            // Each error is reported once, by the first check that finds it.
            providers.retain(|(_, settings)| settings.as_ref().err() != Some(&error));
            // A limits store that is configured is examined whatever else is wrong.
            let (store, store_error) = match load_limits_store(&server_args, &session.env) {
                Ok(store) => (Some(store).filter(|store| *store != LimitsStore::Memory), None),
                Err(wrong) => (None, Some(wrong).filter(|wrong| *wrong != error)),
            };
            // If the whole file is wrong, that is reported once.
            let database_error = database.as_ref().err().filter(|wrong| **wrong != error).cloned();
            let store_error = store_error.filter(|wrong| database_error.as_ref() != Some(wrong));
            let mut checks = vec![configuration::no_server(error, is_without_providers, is_server_expected)];
            checks.extend(database_error.map(|wrong| Check::misconfigured(database::NAME, wrong)));
            checks.extend(store_error.map(|wrong| Check::misconfigured(limits::NAME, wrong)));
            // A server that was started before the error runs where it listens.
            let listening = load_listen(&server_args, &session.env);
            let other = client
                .as_mut()
                .zip(listening)
                .and_then(|(client, (listen, has_tls))| server::prefer_own_server(client, listen, has_tls));
            owns_keys = other.is_none();
            checks.extend(other);
            (checks, store, providers)
        }
    };
    (checks, Plan { client, owns_keys, database: database.ok(), providers, limits_store, models })
}

fn named_providers(config: ServerConfig) -> Vec<NamedProvider> {
    config.providers.into_iter().map(|settings| (settings.name.clone(), Ok(settings))).collect()
}

/// Runs everything that takes time concurrently.
async fn run_slow_checks(plan: Plan) -> Result<Vec<Check>, Failure> {
    let database_place = plan.database.clone();
    let database = async {
        // Why it was not found has been reported.
        let Some(place) = plan.database else { return Vec::new() };
        let examined = tokio::task::spawn_blocking(move || database::examine(&place)).await;
        examined.unwrap_or_else(|cause| {
            vec![Check::failed(database::NAME, format!("the check did not finish: {cause}"))]
        })
    };
    let server = OptionFuture::from(plan.client.as_ref().map(|config| server::ask(config, plan.owns_keys)));
    let limits = plan.limits_store.as_ref().map(|store| limits::examine(store, database_place.as_ref()));
    let limits = OptionFuture::from(limits);
    let (mut checks, limits, answers, server) =
        tokio::join!(database, limits, providers::ask(plan.providers, &plan.models), server);
    let mut references = Vec::new();
    for (found, reference) in limits.into_iter().chain(answers).chain(server) {
        checks.extend(found);
        references.extend(reference);
    }
    checks.push(clock::judge(Clock::system().now(), references));
    Ok(checks)
}
