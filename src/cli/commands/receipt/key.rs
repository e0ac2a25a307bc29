//! The key of receipts: where it is found, and how it is shown.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::api::verify::ReceiptKey;
use crate::app;
use crate::cli::args::globals::Session;
use crate::cli::args::text;
use crate::cli::process::exit::{Failure, Kind, Outcome};
use crate::cli::process::runtime;
use crate::cli::target::database::{DatabaseArgs, database_failure, is_missing, open_store};
use crate::cli::target::remote;
use crate::cli::terminal::printer::Printer;
use crate::clock::Clock;
use crate::config::{ClientConfig, StorePlace};
use crate::verify::receipt::{PublicKey, SigningKey};

/// The arguments of `mk receipt key`.
#[derive(Args, Debug)]
pub(super) struct KeyArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

/// Runs `mk receipt key`.
pub(super) fn run(args: &KeyArgs, session: &mut Session) -> Outcome {
    let (key, of) = find(args, session)?;
    let printer = &session.printer;
    if args.json {
        let mut document = json!({ "schema": "mk.receipt.key/1", "exit": 0 });
        document["key_id"] = json!(key.key_id);
        document["algorithm"] = json!(key.algorithm);
        document["public_key"] = json!(key.public_key);
        printer.document(&document)?;
        return Ok(0);
    }
    key.public_key.lines().try_for_each(|line| printer.line(line))?;
    printer.sentence(&format!("this is key {} of {of}", key.key_id));
    Ok(0)
}

/// The key, and whose it is.
fn find(args: &KeyArgs, session: &mut Session) -> Result<(ReceiptKey, String), Failure> {
    let by_flag = names_a_server(&args.database, session)?;
    if args.database.flag().is_none() {
        let config = session.quiet_client_config(None, None)?;
        if by_flag || config.server_origin.is_set() {
            return Ok((of_server(&config, session)?.document(), config.server));
        }
    }
    let place = args.database.announced_place(session)?;
    if is_missing(&place)? {
        return Err(Failure::new(Kind::NotFound, format!("there is no database in {place} yet"))
            .hint("name the server with --server, or its database with --data-dir or --config"));
    }
    Ok((signing_key(&place)?.public().document(), place.to_string()))
}

/// Whether a flag names a server, and none the database.
fn names_a_server(database: &DatabaseArgs, session: &Session) -> Result<bool, Failure> {
    match (database.flag(), session.globals.server_flag()) {
        (Some(local), Some(flag)) => {
            let why = format!("{flag} selects a server, but {local} selects this machine's database");
            Err(Failure::usage(why).hint("use only one of them"))
        }
        (_, flag) => Ok(flag.is_some()),
    }
}

/// The key of a server elsewhere.
fn of_server(config: &ClientConfig, session: &mut Session) -> Result<PublicKey, Failure> {
    session.warn(config);
    let client = remote::client(config, None)?;
    let limit = remote::short_timeout(config);
    let key = runtime::run(&session.printer, async {
        let asked = remote::within(limit, client.receipt_key()).await;
        asked.map_err(|cause| remote::failure(&config.server, cause))
    })?;
    PublicKey::from_pem(&key.public_key).map_err(|cause| {
        Failure::new(Kind::Server, format!("{} did not send its receipt key: {cause}", config.server))
    })
}

/// The key of the servers on this database, made now if there is none; so is the database.
pub(crate) fn signing_key(place: &StorePlace) -> Result<SigningKey, Failure> {
    let now = Clock::system().now();
    let store = open_store(place, now)?;
    app::receipt_key(&store, now).map_err(|cause| database_failure(place, cause))
}

/// The key to check receipts by: the one in this file, or of the server that a flag names, otherwise that of this
/// machine's server, if it has one.
pub(super) fn for_check(
    file: Option<&Path>,
    database: &DatabaseArgs,
    session: &mut Session,
) -> Result<Option<PublicKey>, Failure> {
    if let Some(file) = file {
        return from_file(file).map(Some);
    }
    if names_a_server(database, session)? {
        let config = session.quiet_client_config(None, None)?;
        return of_server(&config, session).map(Some);
    }
    let place = database.announced_place(session)?;
    if is_missing(&place)? {
        return Ok(None);
    }
    let seed = open_store(&place, Clock::system().now())?
        .receipt_seed()
        .map_err(|cause| database_failure(&place, cause))?;
    Ok(seed.and_then(|seed| SigningKey::from_seed(&seed)).map(|key| key.public().clone()))
}

fn from_file(path: &Path) -> Result<PublicKey, Failure> {
    let text = text::of_file("--key", path).map_err(|cause| Failure { hints: Vec::new(), ..cause })?;
    let pem = serde_json::from_str(&text).map_or(text, |key: ReceiptKey| key.public_key);
    PublicKey::from_pem(&pem).map_err(|cause| {
        Failure::usage(format!("--key: {}: {cause}", path.display())).hint(
            "use the key that `mk receipt key` prints on the \
            server's machine",
        )
    })
}

/// Like [`signing_key`], for a command that is about something else: it says that it makes a database.
pub(crate) fn signing_key_announced(place: &StorePlace, printer: &Printer) -> Result<SigningKey, Failure> {
    let is_new = is_missing(place)?;
    let key = signing_key(place)?;
    if is_new {
        printer.sentence(&format!("created a database in {place}, for the key that signs receipts"));
    }
    Ok(key)
}
