//! Parses `config.toml` and a project's `.mk.toml`: every key is typed and validated by itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use reqwest::Url;

use super::choices;
use crate::api::verify::{Domain, MIN_REQUIRED, TOTAL_MODELS};
use crate::config::sources::reader::{Document, Located, Section};
use crate::config::sources::values;
use crate::config::{ColorMode, ConfigError, FailOn, ProgressMode, View};
use crate::model_id;

/// The contents of a file; `None` for keys that it does not have.
#[derive(Default)]
pub(in crate::config) struct ClientFile {
    pub(in crate::config) profile: Option<Located<String>>,
    pub(in crate::config) profiles: Vec<(Located<String>, Located<Url>)>,
    pub(in crate::config) output: OutputFile,
    pub(in crate::config) timeout: Option<Located<Duration>>,
    pub(in crate::config) ca_cert: Option<Located<String>>,
    pub(in crate::config) verify: VerifyFile,
    /// `model` of `[chat]`.
    pub(in crate::config) chat_model: Option<Located<String>>,
}

/// `[output]`.
#[derive(Clone, Default)]
pub(in crate::config) struct OutputFile {
    pub(in crate::config) color: Option<Located<ColorMode>>,
    pub(in crate::config) progress: Option<Located<ProgressMode>>,
    pub(in crate::config) view: Option<Located<View>>,
}

/// `[verify]`.
#[derive(Clone, Default)]
pub(in crate::config) struct VerifyFile {
    pub(in crate::config) domain: Option<Located<Domain>>,
    pub(in crate::config) min_required: Option<Located<u32>>,
    pub(in crate::config) total_models: Option<Located<u32>>,
    pub(in crate::config) jobs: Option<Located<usize>>,
    pub(in crate::config) fail_on: Option<Located<Vec<FailOn>>>,
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
    if let Some(mut network) = root.section("network")? {
        file.timeout = network.duration("timeout")?;
        file.ca_cert = network.path("ca_cert")?;
        network.finish()?;
    }
    if let Some(mut chat) = root.section("chat")? {
        let model = |text: &str| model_id::parse(text).map(|_| text.to_owned());
        file.chat_model = chat.parsed("model", values::MODEL, model)?;
        chat.finish()?;
    }
    root.finish()?;
    Ok(file)
}

/// Reads a project's file. It comes with a checkout and may be written by anybody, so it must not decide where keys are
/// sent, or who is trusted.
pub(in crate::config) fn read_project(path: &Path) -> Result<Option<ClientFile>, ConfigError> {
    const WHY: &str = "is not taken from a project's file: what comes with a checkout must not decide where keys are \
                       sent or whom to trust";
    const INSTEAD: &str = "set it in your own config.toml";
    // A pipe, or a link to this process's own input, would be waited for; your own files may be such.
    if fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir()) {
        return Err(ConfigError::new(format!("{} is not a regular file", path.display()))
            .hint("take it away, or put a file in its place"));
    }
    let Some(document) = Document::open(path)? else { return Ok(None) };
    let table = document.parse()?;
    let mut root = Section::root(&document, &table);
    for key in ["server", "profile", "profiles", "network", "servers", "ca_cert", "api_key"] {
        root.forbid(key, WHY, INSTEAD)?;
    }
    root.forbid("chat", "is not taken from a project's file: a model costs its caller's money", INSTEAD)?;
    let file = shared(&mut root)?;
    root.finish()?;
    Ok(Some(file))
}

fn shared(root: &mut Section<'_>) -> Result<ClientFile, ConfigError> {
    Ok(ClientFile {
        output: root.section("output")?.map(output).transpose()?.unwrap_or_default(),
        verify: root.section("verify")?.map(verify).transpose()?.unwrap_or_default(),
        ..ClientFile::default()
    })
}

fn profile(name: &Located<String>, mut section: Section<'_>) -> Result<Located<Url>, ConfigError> {
    let server = section.parsed_unseen("server", values::BASE_URL, values::base_url)?;
    section.finish()?;
    server.ok_or_else(|| name.place.error("needs a `server`, such as server = \"http://127.0.0.1:8080\""))
}

fn output(mut section: Section<'_>) -> Result<OutputFile, ConfigError> {
    let file = OutputFile {
        color: word(&mut section, "color")?,
        progress: word(&mut section, "progress")?,
        view: word(&mut section, "view")?,
    };
    section.finish()?;
    Ok(file)
}

fn verify(mut section: Section<'_>) -> Result<VerifyFile, ConfigError> {
    let domain =
        |text: &str| [Domain::General, Domain::Legal].into_iter().find(|domain| domain.as_str() == text);
    let expected = format!("a list of {} alone", choices::words::<FailOn>());
    let file = VerifyFile {
        domain: section.parsed("domain", "\"general\" or \"legal\"", domain)?,
        min_required: section.number("min_required", MIN_REQUIRED)?,
        total_models: section.number("total_models", TOTAL_MODELS)?,
        jobs: section.number("jobs", 1..=64)?,
        fail_on: section
            .texts("fail_on")?
            .map(|found| found.try_map(|list| FailOn::parse_list(&list), &expected))
            .transpose()?,
    };
    section.finish()?;
    Ok(file)
}

fn word<T: ValueEnum>(
    section: &mut Section<'_>,
    key: &'static str,
) -> Result<Option<Located<T>>, ConfigError> {
    section.parsed(key, &choices::words::<T>(), choices::parse)
}
