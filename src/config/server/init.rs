//! The example of `server.toml`: its settings come from the tables, the words around them from `example.txt`; and
//! writing
//! it to where it is looked for.

use std::io;
use std::path::PathBuf;

use super::server_file::{
    EndUsersTable, GeneralTable, InferenceTable, LimitsTable, PanelTable, UsageTable, VerifyTable,
};
use crate::config::providers::pool_file::PoolTable;
use crate::config::providers::provider_file::ProviderTable;
use crate::config::providers::resilience_file::ProviderPolicy;
use crate::config::sources::files;
use crate::config::sources::table::{self, Table};
use crate::config::{ConfigError, Env, ServerArgs, ServerConfig, server_path};
use crate::inference::Pool;
use crate::providers::{Kind, Settings};

/// A `server.toml` in which every setting is explained and commented out: as it is, it changes nothing.
pub fn example() -> String {
    let defaults = ServerConfig::default();
    let provider = Settings::new("openai", Kind::OpenAi, "");
    let tables = [
        ("general", GeneralTable::rows(&defaults)),
        ("limits", LimitsTable::rows(&defaults.limits)),
        ("end_users", EndUsersTable::rows(&defaults.limits)),
        ("provider", ProviderTable::rows(&provider)),
        ("policy", ProviderPolicy::rows(&provider.call_policy)),
        ("pool", PoolTable::rows(&Pool::default())),
        ("panel", PanelTable::rows(&defaults.verify.general)),
        ("verify", VerifyTable::rows(&defaults.verify)),
        ("inference", InferenceTable::rows(&defaults.inference)),
        ("usage", UsageTable::rows(&defaults)),
    ];
    let prose = include_str!("example.txt").to_owned();
    tables.into_iter().fold(prose, |text, (name, rows)| {
        text.replace(&format!("{{{name}}}\n"), &table::commented_out(&rows))
    })
}

/// Writes [`example`] to `--config`, `MK_CONFIG` or the default path with mode 0600; returns the path.
///
/// # Errors
/// If the file already exists, which is left alone, or cannot be written.
pub fn init(args: &ServerArgs, env: &Env) -> Result<PathBuf, ConfigError> {
    let Some(path) = server_path(args, env) else {
        return Err(ConfigError::new("there is no home directory for server.toml")
            .hint("set MK_CONFIG_DIR to a directory, or name a file with --config"));
    };
    match files::create_new(&path, &example()) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ConfigError::new(format!("{} already exists and is unchanged", path.display()))
                .hint("edit it, or move it away first"))
        }
        Err(error) => Err(files::unwritable(&path, &error)),
    }
}
