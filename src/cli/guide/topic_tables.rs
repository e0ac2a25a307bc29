//! The tables of the manual's topics that come from the code, as Markdown.
//!
//! Their committed form stands in the topics between markers, so that it can be read on the web; a test compares it
//! with what is made here, and `mk man man` brings it up to date.

use crate::cli::process::exit;
use crate::config::{self, Variable};
use crate::metrics::table::{self, Metric};
use crate::providers::catalog;
use crate::{manual, server};

/// A topic's Markdown with these tables filled in.
pub(crate) fn filled(markdown: &str) -> String {
    manual::filled(markdown, table)
}

/// The table of this name.
fn table(name: &str) -> Option<String> {
    let table = match name {
        "errors" => errors(),
        "exit codes" => exit_codes(),
        "metrics" => metrics(),
        "providers" => providers(),
        "settings" => format!("```toml\n{}```", config::example()),
        "settings of a user" => format!("```toml\n{}```", config::client_samples()[0]),
        "settings of a project" => format!("```toml\n{}```", config::client_samples()[1]),
        "variables" => variables(),
        _ => return None,
    };
    Some(table)
}

fn rows<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line =
        |cells: [String; N]| format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    let head = [line(head.map(str::to_owned)), format!("|{}\n", "---|".repeat(N))].concat();
    head + &rows.map(line).collect::<String>()
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn errors() -> String {
    let errors = server::error_codes().map(|(status, error, description, codes)| {
        let codes: Vec<String> = codes.iter().map(|code| self::code(code)).collect();
        [status.to_string(), format!("{error}: {}", codes.join(", ")), description.to_owned()]
    });
    rows(["status", "`error` and `code`", "meaning"], errors)
}

fn exit_codes() -> String {
    let meanings = exit::MEANINGS.iter().map(|(code, meaning)| [code.to_string(), (*meaning).to_owned()]);
    rows(["code", "meaning"], meanings)
}

fn metrics() -> String {
    let metrics = table::ALL
        .into_iter()
        .map(|Metric { name, labels, help, .. }| [code(name), labels.join(", "), (*help).to_owned()]);
    rows(["metric", "labels", "meaning"], metrics)
}

fn providers() -> String {
    let known = catalog::KNOWN.iter().map(|provider| {
        [provider.key_env.map(code).unwrap_or_default(), code(provider.name), provider.kind.name().to_owned()]
    });
    rows(["variable", "provider", "format"], known)
}

fn variables() -> String {
    let all = config::variables().into_iter();
    rows(["variable", "meaning"], all.map(|Variable { name, purpose }| [code(name), purpose.to_owned()]))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_tables_of_the_topics_are_fresh() {
        for topic in &manual::TOPICS {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(format!("{}.md", topic.file()));
            let committed = fs::read_to_string(&path).unwrap();
            assert!(filled(&committed) == committed, "{} is stale: mk man man", path.display());
        }
    }

    #[test]
    fn every_table_stands_in_a_topic() {
        let all: String = manual::TOPICS.iter().map(|topic| topic.source).collect();
        let names = [
            "errors",
            "exit codes",
            "metrics",
            "providers",
            "settings",
            "settings of a project",
            "settings of a user",
            "variables",
        ];
        for name in names {
            assert!(table(name).is_some());
            assert_eq!(all.matches(&format!("<!-- table: {name} -->\n")).count(), 1, "{name}");
        }
        assert_eq!(all.matches("<!-- table: ").count(), names.len());
    }
}
