//! The command line: the only room that prints.
//!
//! Each command has a file with its arguments, their help, and one entry function. [`run`] parses the arguments, opens
//! a session and dispatches; whatever the command returns becomes an [`End`]. Results go to standard output and
//! everything else to standard error, all through `printer`; text from elsewhere passes through `sanitize` first. No
//! runtime is built and no file is read before a command needs it, so that `mk --version` is instant.

mod args;
mod commands;
mod guide;
mod process;
mod target;
pub mod terminal;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::config::Env;
use args::globals::{Globals, Session};
use commands::{
    apps, audit, backup, chat, complete, config, doctor, eval, extract, generate, help, keys, login, models,
    receipt, serve, usage, verify, whoami,
};
use guide::usage_error;
use process::end;
pub use process::end::End;
use process::exit::{self, Outcome};
use process::{panic_hook, resources};

/// Examples first, as that is what people look for.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const EXAMPLES: &str = "\
Examples:
  mk verify --sandbox \"Paris is the capital of France. Two plus two is five.\"
  mk serve --sandbox
  mk keys create --service verify";

/// Exit codes and topics, at the end of the help.
fn notes() -> String {
    let codes = exit::MEANINGS.iter().map(|(code, meaning)| format!("  {code:>3}  {meaning}"));
    format!("Exit codes:\n{}\n\n{}", codes.collect::<Vec<_>>().join("\n"), help::topics())
}

/// Check facts with several AI models, chat with them, and run the server for both
#[derive(Parser, Debug)]
#[command(name = "mk", version, help_template = HELP, before_help = EXAMPLES)]
#[command(after_help = notes())]
#[command(max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the server
    #[command(help_template = HELP, before_help = serve::EXAMPLES, after_help = serve::NOTES)]
    Serve(serve::ServeArgs),
    /// Verify a text
    #[command(help_template = HELP, before_help = verify::EXAMPLES, after_help = verify::NOTES)]
    Verify(Box<verify::VerifyArgs>),
    /// Check receipts of verifications, or show the key that signs them
    #[command(help_template = HELP, before_help = receipt::EXAMPLES, after_help = receipt::NOTES)]
    Receipt(receipt::ReceiptArgs),
    /// Show the claims and questions of a text, without asking the panel
    #[command(help_template = HELP, before_help = extract::EXAMPLES, after_help = extract::NOTES)]
    Extract(Box<extract::ExtractArgs>),
    /// Measure the panel's accuracy on statements with known answers
    #[command(help_template = HELP, before_help = eval::EXAMPLES, after_help = eval::NOTES)]
    Eval(Box<eval::EvalArgs>),
    /// Ask a model, once or in a conversation
    #[command(help_template = HELP, before_help = chat::EXAMPLES, after_help = chat::NOTES)]
    Chat(Box<chat::ChatArgs>),
    /// List the available models and their prices
    #[command(help_template = HELP, before_help = models::EXAMPLES, after_help = models::NOTES)]
    Models(models::ModelsArgs),
    /// Manage apps, which group keys and their usage
    #[command(help_template = HELP, before_help = apps::EXAMPLES, after_help = apps::NOTES)]
    Apps(apps::AppsArgs),
    /// Manage API keys
    #[command(help_template = HELP, before_help = keys::EXAMPLES, after_help = apps::NOTES)]
    Keys(keys::KeysArgs),
    /// Show usage and costs
    #[command(help_template = HELP, before_help = usage::EXAMPLES, after_help = usage::NOTES)]
    Usage(usage::UsageArgs),
    /// Show who changed what
    #[command(help_template = HELP, before_help = audit::EXAMPLES, after_help = audit::NOTES)]
    Audit(audit::AuditArgs),
    /// Show the configuration, or write a first server.toml
    #[command(help_template = HELP, before_help = config::EXAMPLES, after_help = config::NOTES)]
    Config(config::ConfigArgs),
    /// Store an API key for a server
    #[command(help_template = HELP, before_help = login::LOGIN_EXAMPLES)]
    Login(login::LoginArgs),
    /// Forget the API keys for a server
    #[command(help_template = HELP, before_help = login::LOGOUT_EXAMPLES)]
    Logout(login::LogoutArgs),
    /// Show which server and keys are used, and whether the server answers
    #[command(help_template = HELP, before_help = whoami::EXAMPLES)]
    Whoami(whoami::WhoamiArgs),
    /// Check this installation: configuration, database, clock, providers, server
    #[command(help_template = HELP, before_help = doctor::EXAMPLES, after_help = doctor::NOTES)]
    Doctor(doctor::DoctorArgs),
    /// Back up the databases, also while the server runs
    #[command(help_template = HELP, before_help = backup::BACKUP_EXAMPLES, after_help = backup::BACKUP_NOTES)]
    Backup(backup::BackupArgs),
    /// Restore the databases from a backup
    #[command(help_template = HELP, before_help = backup::RESTORE_EXAMPLES, after_help = backup::RESTORE_NOTES)]
    Restore(backup::RestoreArgs),
    /// Show a manual topic, or the help of a command
    #[command(help_template = HELP, before_help = help::EXAMPLES, after_help = help::topics())]
    Help(help::HelpArgs),
    /// Print a shell completion script
    #[command(help_template = HELP, before_help = generate::COMPLETIONS_EXAMPLES)]
    Completions(generate::CompletionsArgs),
    /// Write the manual pages
    #[command(help_template = HELP, before_help = generate::MAN_EXAMPLES)]
    Man(generate::ManArgs),
    /// Print the version
    Version(generate::VersionArgs),
    /// What the scripts of `mk completions` ask
    #[command(name = "__complete", hide = true)]
    Complete(complete::CompleteArgs),
}

/// Runs the program; the first of these arguments is its name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> End {
    panic_hook::install_hook();
    resources::survive_file_size_limit();
    let args: Vec<OsString> = args.into_iter().collect();
    let env = Env::system();
    let wants_json = end::wants_json(&args);
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage_error::report(&error, &args, env, wants_json),
    };
    let mut session = Session::begin(cli.globals, env);
    let outcome = panic_hook::catch(|| dispatch(&cli.command, &mut session));
    end::report(outcome, &session.printer, wants_json)
}

fn dispatch(command: &Command, session: &mut Session) -> Outcome {
    match command {
        Command::Serve(args) => serve::run(args, session),
        Command::Verify(args) => verify::run(args, session),
        Command::Receipt(args) => receipt::run(args, session),
        Command::Extract(args) => extract::run(args, session),
        Command::Eval(args) => eval::run(args, session),
        Command::Chat(args) => chat::run(args, session),
        Command::Models(args) => models::run(args, session),
        Command::Apps(args) => apps::run(args, session),
        Command::Keys(args) => keys::run(args, session),
        Command::Usage(args) => usage::run(args, session),
        Command::Audit(args) => audit::run(args, session),
        Command::Config(args) => config::run(args, session),
        Command::Login(args) => login::login(args, session),
        Command::Logout(args) => login::logout(args, session),
        Command::Whoami(args) => whoami::run(args, session),
        Command::Doctor(args) => doctor::run(args, session),
        Command::Backup(args) => backup::backup(args, session),
        Command::Restore(args) => backup::restore(args, session),
        Command::Help(args) => help::run(args, session),
        Command::Completions(args) => generate::completions(args, session),
        Command::Man(args) => generate::man(args, session),
        Command::Version(args) => generate::version(args, session),
        Command::Complete(args) => complete::run(args, session),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::terminal::wrap;
    use super::*;

    #[test]
    fn the_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_double_dash_ends_options() {
        let cli = Cli::try_parse_from(["mk", "verify", "--", "--sandbox is a flag"]).unwrap();
        let Command::Verify(args) = cli.command else { panic!("not verify") };
        assert_eq!(args.input.inputs, ["--sandbox is a flag"]);
        assert!(!args.backend.sandbox);
    }

    #[test]
    fn what_stands_around_the_options_of_a_help_fits_80_columns() {
        fn check(command: &clap::Command) {
            let texts = [command.get_before_help(), command.get_after_help()].into_iter().flatten();
            for line in texts.flat_map(|text| text.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
            {
                assert!(wrap::cells(&line) <= 80, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn help_begins_with_examples() {
        let help = Cli::command().find_subcommand_mut("verify").unwrap().render_help().to_string();
        let (examples, usage) = (help.find("Examples:").unwrap(), help.find("Usage:").unwrap());
        assert!(examples < usage, "{help}");
    }
}
