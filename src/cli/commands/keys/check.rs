//! `mk keys check`: whether a key is mistyped, what it is for, and what the local database or a server knows about it.

use clap::Args;
use serde_json::{Value, json};

use super::Common;
use crate::api::Service;
use crate::api::console::{Key, KeyState};
use crate::api::error_code::ErrorCode;
use crate::cli::args::globals::Session;
use crate::cli::args::text::read_stdin;
use crate::cli::process::exit::{Failure, Kind, ServerError};
use crate::cli::target::admin::Admin;
use crate::cli::terminal::tabular;
use crate::keys;
use crate::secret::{self, ExposeSecret, SecretString};

/// The arguments of `mk keys check`.
#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    /// `-` reads the key from standard input [default: `--api-key-file`, `MK_API_KEY` or `MK_API_KEY_FILE`]
    #[arg(value_name = "-")]
    source: Option<String>,

    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &CheckArgs, session: &mut Session) -> Result<(), Failure> {
    let key = read(args.source.as_deref(), session)?;
    let Some(service) = keys::service_of(key.expose_secret()) else {
        return Err(Failure::new(
            Kind::Unauthorized,
            "this is not a valid key: its form or its check digits are wrong",
        )
        .hint("a key is mk_<service>_ followed by 32 characters; copy the whole key again"));
    };
    if args.source.is_none() {
        // The flag named the key to be checked, not one for requests to a server.
        session.globals.api_key_file = None;
    }
    // This command does not create a database.
    let admin = Admin::open_existing(&args.common.database, session)?;
    let known = admin.as_ref().map(|admin| admin.records().key_by_secret(&key)).transpose()?.flatten();
    let elsewhere = admin.as_ref().map(Admin::location_suffix).filter(|place| !place.is_empty());
    let unknown =
        elsewhere.map_or_else(|| "not in this machine's database".to_owned(), |on| format!("not known{on}"));
    let ended = match known.as_ref().map(|record| record.state) {
        Some(KeyState::Revoked) => Some(("the key has been revoked", ErrorCode::ApiKeyRevoked)),
        Some(KeyState::Expired) => Some(("the key has expired", ErrorCode::ApiKeyExpired)),
        Some(KeyState::Active) | None => None,
    };
    let document = document(service, known.as_ref());
    match ended {
        None if args.common.json => session.printer.document(&document),
        None => print(session, service, known.as_ref(), unknown),
        Some((message, code)) => {
            if !args.common.json {
                print(session, service, known.as_ref(), unknown)?;
            }
            let failure = Failure::new(Kind::Unauthorized, message).with_partial(document);
            // With the error code that a server would use.
            let server_error = ServerError { code: code.as_str().to_owned(), ..ServerError::default() };
            Err(Failure { server_error: Some(Box::new(server_error)), ..failure })
        }
    }
}

/// Reads the key. A key is never accepted as an argument; whatever is given there may be one, so it is not repeated.
fn read(source: Option<&str>, session: &Session) -> Result<SecretString, Failure> {
    let unreadable = |name: &str, cause: std::io::Error| {
        Failure::usage(format!("cannot read a key from {name}: {cause}")).caused_by(cause)
    };
    match source {
        Some("-") => {
            return read_stdin(&session.printer, secret::read)?
                .map_err(|cause| unreadable("standard input", cause));
        }
        Some(_) => {
            return Err(Failure::usage(
                "do not pass a key as an argument: other processes can read it there",
            )
            .hint("mk keys check - < FILE, or set MK_API_KEY_FILE"));
        }
        None => {}
    }
    if let Some(path) = &session.globals.api_key_file {
        return secret::from_file(path).map_err(|cause| unreadable("--api-key-file", cause));
    }
    if let Some(key) = session.env.text("MK_API_KEY")? {
        return Ok(SecretString::from(key.trim()));
    }
    if let Some(path) = session.env.path("MK_API_KEY_FILE") {
        return secret::from_file(&path).map_err(|cause| unreadable("MK_API_KEY_FILE", cause));
    }
    Err(Failure::usage("there is no key to check").hint("mk keys check - < FILE, or set MK_API_KEY_FILE"))
}

fn document(service: Service, known: Option<&Key>) -> Value {
    json!({
        "schema": "mk.keys.check/1",
        "well_formed": true,
        "service": service,
        "state": known.map(|record| record.state),
        "id": known.map(|record| &record.id),
        "app": known.map(|record| &record.app),
    })
}

fn print(session: &Session, service: Service, known: Option<&Key>, unknown: String) -> Result<(), Failure> {
    let state = known.map_or(unknown, |record| record.state.as_str().to_owned());
    let mut fields = vec![
        ("form", "the check digits are right".to_owned()),
        ("service", service.to_string()),
        ("state", state),
    ];
    if let Some(record) = known {
        fields.push(("id", record.id.clone()));
        fields.push(("app", record.app.clone()));
    }
    tabular::record(&session.printer, &fields)
}
