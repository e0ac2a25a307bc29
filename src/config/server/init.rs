//! The embedded example of `server.toml`, and writing it to where it is looked for.

use std::io;
use std::path::PathBuf;

use crate::config::sources::files;
use crate::config::{ConfigError, Env, ServerArgs, server_path};

/// A `server.toml` in which every setting is explained and commented out: as it is, it changes nothing.
pub const EXAMPLE: &str = include_str!("example.toml");

/// Writes [`EXAMPLE`] to `--config`, `MK_CONFIG` or the default path with mode 0600; returns the path.
///
/// # Errors
/// If the file already exists, which is left alone, or cannot be written.
pub fn init(args: &ServerArgs, env: &Env) -> Result<PathBuf, ConfigError> {
    let Some(path) = server_path(args, env) else {
        return Err(ConfigError::new("there is no home directory to write server.toml to")
            .hint("set MK_CONFIG_DIR to a directory, or name a file with --config"));
    };
    match files::create_new(&path, EXAMPLE) {
        Ok(()) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ConfigError::new(format!("{} is there already and is left as it is", path.display()))
                .hint("edit it, or move it away first"))
        }
        Err(error) => Err(files::unwritable(&path, &error)),
    }
}
