//! `mk usage forget`: an end user is forgotten, as people may ask of whoever keeps data about them.

use clap::Args;
use serde_json::json;

use crate::cli::args::globals::Session;
use crate::cli::process::exit::Outcome;
use crate::cli::target::admin::Admin;
use crate::cli::target::database::DatabaseArgs;
use crate::cli::terminal::confirm::confirm;
use crate::cli::terminal::humanize::counted;
use crate::cli::terminal::sanitize;

/// The arguments of `mk usage forget`.
#[derive(Args, Debug)]
pub(super) struct ForgetArgs {
    /// The end user, as named in requests and by `mk usage --by user`
    user: String,
    /// Only in this app, by name or id [default: in all apps]
    #[arg(long)]
    app: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Runs `mk usage forget`.
pub(super) fn run(args: &ForgetArgs, session: &mut Session) -> Outcome {
    let admin = Admin::open(&args.database, session)?;
    let app_id = args.app.as_deref().map(|app| admin.app_id(app)).transpose()?;
    let whose = args
        .app
        .as_deref()
        .map_or_else(|| "all apps".to_owned(), |app| format!("the app `{}`", sanitize::line(app)));
    let question = format!(
        "Forget the end user `{}` of {whose}{}? What they used stays in all other sums.",
        sanitize::line(&args.user),
        admin.location_suffix()
    );
    let printer = &session.printer;
    confirm(printer, &question, None, args.yes)?;
    let forgotten = admin.records().forget_user(&args.user, app_id.as_deref())?;
    if args.json {
        let document = json!({
            "schema": "mk.usage.forgotten/1",
            "forgotten_sums": forgotten.forgotten_sums,
            "forgotten_at": forgotten.forgotten_at,
        });
        printer.document(&document)?;
    } else if forgotten.forgotten_sums == 0 {
        printer.sentence("nothing was counted for this end user");
    } else {
        printer.sentence(&format!("forgotten: {}", counted(forgotten.forgotten_sums, "sum")));
    }
    Ok(0)
}
