//! Adds profiles to `config.toml`: as a table at the end, without changing anything else.
//!
//! The file is its owner's, with comments and an order of its own. The result is parsed before anything is written, so
//! that a file to which no table can be appended, such as one with all profiles on a single line, stays as it is.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::client_file::{self, ClientFile};
use crate::config::sources::lock::Lock;
use crate::config::sources::reader::Document;
use crate::config::sources::values::{quoted, url_text};
use crate::config::sources::{files, paths};
use crate::config::{ConfigError, Env};

/// Whether a profile of this name exists, which then is for this server; otherwise the file could take it.
///
/// # Errors
/// If it is for another server, if the file cannot be read or cannot take it, or if there is no home directory.
pub fn has_profile(env: &Env, name: &str, server: &str) -> Result<bool, ConfigError> {
    Ok(addition(&file(env)?, name, server)?.is_none())
}

/// The names of the profiles in the user's `config.toml`; none if it cannot be read.
pub fn profile_names(env: &Env) -> Vec<String> {
    let read = paths::client_file(env).and_then(|path| client_file::read_user(&path).ok().flatten());
    read.into_iter().flat_map(|file| file.profiles).map(|(name, _)| name.value).collect()
}

/// Adds a profile for this server, and returns the path of the file; `None` if it already exists.
///
/// # Errors
/// As for [`has_profile`], and if the file cannot be written.
pub fn add_profile(env: &Env, name: &str, server: &str) -> Result<Option<PathBuf>, ConfigError> {
    let path = file(env)?;
    let with_manual_hint = |error: ConfigError| error.hint(manual_hint(name, server));
    let _lock = Lock::acquire(&path).map_err(with_manual_hint)?;
    let written = match addition(&path, name, server)? {
        None => return Ok(None),
        Some(Addition::NewFile(text)) => files::create_new(&path, &text),
        Some(Addition::Appended(text)) => append(&path, &text),
    };
    written.map_err(|cause| with_manual_hint(files::unwritable(&path, &cause)))?;
    Ok(Some(path))
}

/// What to write to add a profile.
enum Addition {
    NewFile(String),
    Appended(String),
}

/// The text that adds this profile; `None` if it already exists.
fn addition(path: &Path, name: &str, server: &str) -> Result<Option<Addition>, ConfigError> {
    let table = table(name, server);
    let Some(text) = files::read(path)? else { return Ok(Some(Addition::NewFile(table))) };
    let end = if text.is_empty() || text.ends_with('\n') { "\n" } else { "\n\n" };
    let appended = format!("{end}{table}");
    let would_be = Document::new(path, format!("{text}{appended}"));
    if contains(&client_file::parse_user(&Document::new(path, text))?, name, server)? {
        return Ok(None);
    }
    if client_file::parse_user(&would_be).is_err() {
        let message = format!("cannot add a profile at the end of {}", path.display());
        return Err(ConfigError::new(message).hint(manual_hint(name, server)));
    }
    Ok(Some(Addition::Appended(appended)))
}

fn contains(user: &ClientFile, name: &str, server: &str) -> Result<bool, ConfigError> {
    let Some((found, theirs)) = user.profiles.iter().find(|(found, _)| found.value == name) else {
        return Ok(false);
    };
    let theirs = url_text(&theirs.value);
    if theirs == server {
        return Ok(true);
    }
    let message = format!("the profile `{}` is for {theirs} ({})", name.escape_debug(), found.place.origin());
    Err(ConfigError::new(message).hint("choose another name, or omit --server or --profile"))
}

fn table(name: &str, server: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let key = if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) };
    format!("[profiles.{key}]\nserver = {}\n", quoted(server))
}

fn manual_hint(name: &str, server: &str) -> String {
    let table = table(name, server);
    format!("add it yourself: {}", table.trim_end().replace('\n', " with "))
}

/// Appends a few bytes in a single write: readers see all of them or none.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn file(env: &Env) -> Result<PathBuf, ConfigError> {
    paths::client_file(env).ok_or_else(|| {
        ConfigError::new("there is no home directory for config.toml")
            .hint("set MK_CONFIG_DIR to a directory")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::clock::Time;

    const SERVER: &str = "https://mk.example.org";

    fn env(dir: &tempfile::TempDir) -> Env {
        Env::bare([("MK_CONFIG_DIR", dir.path().to_str().unwrap())], Time::from_unix_ms(0))
    }

    #[test]
    fn a_profile_is_appended_to_what_is_there() {
        for before in
            ["", "# mine\nprofile = \"home\"\n[profiles.home]\nserver = \"http://127.0.0.1:1\" # mine"]
        {
            let dir = tempfile::tempdir().unwrap();
            let (env, path) = (env(&dir), dir.path().join("config.toml"));
            fs::write(&path, before).unwrap();
            assert_eq!(add_profile(&env, "work", SERVER).unwrap(), Some(path.clone()));
            assert_eq!(add_profile(&env, "a b.c", SERVER).unwrap(), Some(path.clone()));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with(before), "{text}");
            assert!(
                text.ends_with("\n[profiles.\"a b.c\"]\nserver = \"https://mk.example.org\"\n"),
                "{text}"
            );
            for name in ["work", "a b.c"] {
                assert!(has_profile(&env, name, SERVER).unwrap());
                assert_eq!(add_profile(&env, name, SERVER).unwrap(), None);
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            let error = has_profile(&env, "work", "https://other.example").unwrap_err();
            assert!(
                error.message.starts_with("the profile `work` is for https://mk.example.org ("),
                "{error}"
            );
        }
    }

    #[test]
    fn a_missing_file_is_created() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_profile(&env(&dir), "work", SERVER).unwrap());
        assert!(add_profile(&env(&dir), "work", SERVER).unwrap().is_some());
        assert!(has_profile(&env(&dir), "work", SERVER).unwrap());
    }

    #[test]
    fn failures_say_what_to_write_by_hand() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".config.toml.lock")).unwrap();
        let error = add_profile(&env(&dir), "work", SERVER).unwrap_err();
        assert!(error.hints.iter().any(|hint| hint.starts_with("add it yourself")), "{error:?}");
    }

    #[test]
    fn a_file_that_cannot_take_a_profile_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let inline = "profiles = { home = { server = \"http://127.0.0.1:1\" } }\n";
        fs::write(&path, inline).unwrap();
        let hint = "add it yourself: [profiles.work] with server = \"https://mk.example.org\"";
        let told_before = has_profile(&env(&dir), "work", SERVER).unwrap_err();
        let error = add_profile(&env(&dir), "work", SERVER).unwrap_err();
        assert_eq!(error.hints, [hint]);
        assert_eq!(told_before, error, "before a key is asked for");
        assert_eq!(fs::read_to_string(&path).unwrap(), inline);
    }
}
