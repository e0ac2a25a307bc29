//! What `mk serve` prints when it starts: sentences for a person, fields for a log.

use std::path::Path;

use crate::cli::terminal::printer::Printer;
use crate::cli::terminal::shell;
use crate::cli::terminal::term::Style;
use crate::config::ServerConfig;
use crate::limits::LimitsStore;
use crate::providers::Kind;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::DatabaseUrl;
use crate::verify::PanelSettings;

/// The column at which facts begin behind their labels.
const LABEL_WIDTH: usize = 13;
/// The label for simulated answers.
const SANDBOX_LABEL: &str = "SANDBOX: ";

/// What the first steps need, as far as it exists.
pub(crate) struct FirstSteps<'a> {
    /// A key for verifications, and one for inference.
    pub(crate) keys: Option<(&'a SecretString, &'a SecretString)>,
    /// The link for creating the first console key.
    pub(crate) link: Option<&'a SecretString>,
    /// The flags that lead other commands to this server's database, if they would not find it by themselves.
    pub(crate) database_flags: String,
}

/// Reports what is served and where, and what to do next. Keys and links are only ever shown on a terminal.
pub(crate) fn print(
    printer: &Printer,
    config: &ServerConfig,
    base: &str,
    is_sandbox: bool,
    first: &FirstSteps<'_>,
) {
    if !printer.terminal.err.is_terminal {
        let panel = &config.verify.general;
        tracing::info!(
            address = base,
            sandbox = is_sandbox,
            extractor = panel.extractor,
            auditor = panel.acting_auditor().unwrap_or("none"),
            panel = panel.panel.join(","),
            data_dir = %config.data_dir.display(),
            database = %config.database,
            limits = %config.limits_store,
            notes = config.notes.join("; "),
            "serving"
        );
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        return;
    }
    let strong = |text: &str| printer.terminal.err.paint.apply(Style::Strong, text);
    if is_sandbox {
        printer.labelled_notice(SANDBOX_LABEL, SANDBOX_LABEL.len(), simulated_answers(config));
        printer.notice("");
    }
    let version = strong(concat!("mk ", env!("CARGO_PKG_VERSION")));
    printer.notice(&format!("{version} serves on {}", strong(base)));
    printer.notice("");
    for (label, text) in facts(config) {
        printer.labelled_notice(&format!("  {label}"), LABEL_WIDTH, &text);
    }
    for warning in &config.warnings {
        printer.warning(warning);
    }
    if let Some(link) = first.link {
        printer.notice("");
        printer.sentence("To use the dashboard, open this link. It works once, within 30 minutes:");
        // On one line whatever the width, so that it can be clicked and copied.
        printer.notice(&format!("  {}", link.expose_secret()));
    }
    printer.notice("");
    printer.notice("Next, in another terminal:");
    for line in next_steps(base, &first.database_flags, first.keys) {
        printer.notice(&format!("  {line}"));
    }
    if first.keys.is_some() {
        printer.notice("These keys expire when the server stops.");
    }
    printer.notice("");
}

/// Which answers are simulated, where some are.
fn simulated_answers(config: &ServerConfig) -> &'static str {
    if config.providers.iter().all(|provider| provider.kind == Kind::Sandbox) {
        "answers are simulated; no real model is called"
    } else {
        "answers of the models `sandbox/…` are simulated"
    }
}

/// Labels and texts: the models that answer and why, and where data is stored.
pub(crate) fn facts(config: &ServerConfig) -> Vec<(&'static str, String)> {
    let panel = &config.verify.general;
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let mut facts = vec![
        ("extractor", or_none(&panel.extractor)),
        ("auditor", auditor(panel)),
        ("panel", or_none(&panel.panel.join(", "))),
    ];
    if !panel.standby.is_empty() {
        facts.push(("standby", panel.standby.join(", ")));
    }
    facts.extend(config.notes.iter().map(|note| ("", note.clone())));
    facts.push(match &config.database {
        DatabaseUrl::Sqlite => ("data", config.data_dir.display().to_string()),
        DatabaseUrl::Postgres(address) => ("database", address.to_string()),
    });
    if config.limits_store != LimitsStore::Memory {
        facts.push(("limits", config.limits_store.to_string()));
    }
    if let Some(file) = &config.file {
        facts.push(("settings", file.display().to_string()));
    }
    facts
}

/// The model that really audits, and why it is another one than is set.
fn auditor(panel: &PanelSettings) -> String {
    match panel.acting_auditor() {
        None => "none: nothing compares claims with the text".to_owned(),
        Some(model) if panel.auditor.as_deref() == Some(model) => model.to_owned(),
        Some(model) => format!("{model} (`auditor` names the extractor, which cannot audit itself)"),
    }
}

fn next_steps(base: &str, database_flags: &str, keys: Option<(&SecretString, &SecretString)>) -> Vec<String> {
    let server = if base == "http://127.0.0.1:8080" { String::new() } else { format!(" --server {base}") };
    match keys {
        Some((verify, inference)) => vec![
            format!("export MK_API_KEY={}", verify.expose_secret()),
            format!("export MK_INFERENCE_KEY={}", inference.expose_secret()),
            format!("mk verify{server} \"Paris is the capital of France. Two plus two is five.\""),
            format!("mk chat{server} \"What is 6 times 7?\""),
            format!(
                "curl -N {base}/verify/v1/stream \\\n    \
                 -H \"Authorization: Bearer $MK_API_KEY\" -H \"Content-Type: application/json\" \\\n    \
                 -d '{{\"fact\":\"Paris is the capital of France.\"}}'"
            ),
        ],
        None => vec![
            format!("mk keys create --service verify{database_flags} | mk login{server}"),
            format!("mk verify{server} \"Paris is the capital of France.\""),
        ],
    }
}

/// A flag with an absolute path, for a command that may be run from any directory.
pub(in crate::cli) fn flag(name: &str, path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    format!(" {name} {}", shell::word(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_steps_name_the_server_unless_it_is_the_default() {
        let steps = next_steps("http://127.0.0.1:9000", "", None);
        assert!(steps.iter().all(|step| step.contains("--server http://127.0.0.1:9000")), "{steps:?}");
        assert!(next_steps("http://127.0.0.1:8080", "", None).iter().all(|step| !step.contains("--server")));
    }

    #[test]
    fn the_key_is_created_in_the_database_that_the_server_uses() {
        let first = |path: &str| {
            next_steps("http://127.0.0.1:8080", &flag("--data-dir", Path::new(path)), None).remove(0)
        };
        assert_eq!(first("/srv/mk"), "mk keys create --service verify --data-dir /srv/mk | mk login");
        assert!(first("/o'clock").contains(r"--data-dir '/o'\''clock' |"), "{}", first("/o'clock"));
        assert!(!first("data").contains("--data-dir data"), "it holds in any directory: {}", first("data"));
    }

    #[test]
    fn the_sandbox_suggests_three_commands_that_work_as_printed() {
        let keys = ["mk_verify_x", "mk_inference_x"].map(SecretString::from);
        let steps = next_steps("http://127.0.0.1:9000", "", Some((&keys[0], &keys[1])));
        assert_eq!(steps[..2], ["export MK_API_KEY=mk_verify_x", "export MK_INFERENCE_KEY=mk_inference_x"]);
        let commands: Vec<&str> =
            steps[2..].iter().map(|step| step.split(" \"").next().unwrap_or_default()).collect();
        assert_eq!(commands.len(), 3);
        assert_eq!(
            commands[..2],
            ["mk verify --server http://127.0.0.1:9000", "mk chat --server http://127.0.0.1:9000"]
        );
    }
}
