//! Parses `config.toml` and a project's `.mk.toml`: every key is typed and validated by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use super::{ClientConfig, VerifyDefaults, choices};
use crate::api::verify::{Domain, MIN_REQUIRED, TOTAL_MODELS};
use crate::config::sources::reader::{Document, Located, Section};
use crate::config::sources::table::{settings_table, whole_table};
use crate::config::sources::values;
use crate::config::{ColorMode, ConfigError, FailOn, ProgressMode, View};

/// The contents of a file; `None` for keys that it does not have.
#[derive(Default)]
pub(in crate::config) struct ClientFile {
    pub(in crate::config) profile: Option<Located<String>>,
    pub(in crate::config) profiles: Vec<(Located<String>, Located<Url>)>,
    pub(in crate::config) output: OutputTable,
    pub(in crate::config) network: NetworkTable,
    pub(in crate::config) verify: VerifyTable,
    pub(in crate::config) chat: ChatTable,
}

settings_table! {
    /// `[output]`.
    struct OutputTable for ClientConfig {
        /// auto, always, never
        color: ColorMode = parsed(&choices::words::<ColorMode>(), choices::parse);
        /// auto, bars, lines, none
        progress: ProgressMode = parsed(&choices::words::<ProgressMode>(), choices::parse);
        /// "list", or "table": one row per claim
        view: View = parsed(&choices::words::<View>(), choices::parse);
    }
}

settings_table! {
    /// `[network]`, of the user's file alone.
    struct NetworkTable for ClientConfig {
        /// time limit of a command
        timeout: Duration = duration(), such as "\"5m\"";
        /// additional certificate authorities to trust
        ca_cert: PathBuf = path(), such as "\"ca.pem\"";
    }
}

settings_table! {
    /// `[verify]`.
    struct VerifyTable for VerifyDefaults {
        /// the kind of text: "general" or "legal"
        domain: Domain = parsed("\"general\" or \"legal\"", domain), such as "\"legal\"";
        /// how many models must agree: 2 or 3
        min_required: u32 = number(MIN_REQUIRED), such as "3";
        /// how many models are asked
        total_models: u32 = number(TOTAL_MODELS), such as "3";
        /// lines or files sent at a time
        jobs: usize = number(1..=64), such as "8";
        /// what makes mk verify fail
        fail_on: Vec<FailOn> = parsed_list(
            &format!("a list of {} alone", choices::words::<FailOn>()),
            FailOn::parse_list
        ), such as "[\"false\"]";
    }
}

settings_table! {
    /// `[chat]`, of the user's file alone.
    struct ChatTable for ClientConfig {
        /// default model of mk chat
        model at chat_model: String = parsed(
            values::MODEL,
            values::model
        ), such as "\"openai/gpt-5.4-mini\"";
    }
}

fn domain(text: &str) -> Option<Domain> {
    [Domain::General, Domain::Legal].into_iter().find(|domain| domain.as_str() == text)
}

/// Reads the user's file; `None` if there is none.
pub(in crate::config) fn read_user(path: &Path) -> Result<Option<ClientFile>, ConfigError> {
    Document::open(path)?.map(|document| parse_user(&document)).transpose()
}

/// Parses the user's file.
pub(in crate::config) fn parse_user(document: &Document) -> Result<ClientFile, ConfigError> {
    let table = document.parse()?;
    let mut root = Section::root(document, &table);
    let mut file = shared(&mut root)?;
    file.profile = root.text("profile")?;
    if let Some(profiles) = root.section("profiles")? {
        for (name, section) in profiles.named_sections()? {
            let server = profile(&name, section)?;
            file.profiles.push((name, server));
        }
    }
    file.network = whole_table(root.section("network")?)?;
    file.chat = whole_table(root.section("chat")?)?;
    root.finish()?;
    Ok(file)
}

/// Reads a project's file. It comes with a checkout and may be written by anybody, so it must not decide where keys are
/// sent, or who is trusted.
pub(in crate::config) fn read_project(path: &Path) -> Result<Option<ClientFile>, ConfigError> {
    const WHY: &str = "is not allowed in a project's file: a checkout must not decide where keys are sent or \
        whom to trust";
    const INSTEAD: &str = "set it in your own config.toml";
    // A pipe, or a link to this process's own input, would be waited for; your own files may be such.
    if fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir()) {
        return Err(ConfigError::new(format!("{} is not a regular file", path.display()))
            .hint("remove it, or replace it with a file"));
    }
    let Some(document) = Document::open(path)? else { return Ok(None) };
    let table = document.parse()?;
    let mut root = Section::root(&document, &table);
    for key in ["server", "profile", "profiles", "network", "servers", "ca_cert", "api_key"] {
        root.forbid(key, WHY, INSTEAD)?;
    }
    root.forbid("chat", "is not allowed in a project's file: a model costs your money", INSTEAD)?;
    let file = shared(&mut root)?;
    root.finish()?;
    Ok(Some(file))
}

fn shared(root: &mut Section<'_>) -> Result<ClientFile, ConfigError> {
    Ok(ClientFile {
        output: whole_table(root.section("output")?)?,
        verify: whole_table(root.section("verify")?)?,
        ..ClientFile::default()
    })
}

fn profile(name: &Located<String>, mut section: Section<'_>) -> Result<Located<Url>, ConfigError> {
    let server = section.parsed_unseen("server", values::BASE_URL, values::base_url)?;
    section.finish()?;
    server.ok_or_else(|| name.place.error("needs a `server`, such as server = \"http://127.0.0.1:8080\""))
}
