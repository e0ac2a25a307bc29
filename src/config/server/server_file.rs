//! Parses `server.toml`: every key is typed and validated by itself, and nothing is resolved yet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;

use crate::api::cache_time::CacheTime;
use crate::api::guard::{BlockOn, Guard};
use crate::config::providers::pool_file::{self, PoolFile};
use crate::config::providers::provider_file::{self, ProviderFile};
use crate::config::sources::reader::{Document, Located, Named, Section};
use crate::config::sources::table::{Table, settings_table, whole_table};
use crate::config::sources::values;
use crate::config::{ConfigError, ServerConfig};
use crate::inference::{self, Effort};
use crate::limits::{self, LimitsStore};
use crate::money::NanoUsd;
use crate::storage::DatabaseUrl;
use crate::verify::{self, PanelSettings};

/// The contents of a file; `None` for keys that it does not have.
#[derive(Default)]
pub(in crate::config) struct ServerFile {
    pub(in crate::config) listen: Option<Located<SocketAddr>>,
    pub(in crate::config) data_dir: Option<Located<PathBuf>>,
    pub(in crate::config) database_url: Option<Located<DatabaseUrl>>,
    pub(in crate::config) limits_url: Option<Located<LimitsStore>>,
    pub(in crate::config) tls_cert: Option<Located<PathBuf>>,
    pub(in crate::config) tls_key: Option<Located<PathBuf>>,
    pub(in crate::config) otlp_endpoint: Option<Located<String>>,
    pub(in crate::config) general: GeneralTable,
    pub(in crate::config) limits: LimitsTable,
    pub(in crate::config) end_users: EndUsersTable,
    pub(in crate::config) providers: Vec<ProviderFile>,
    pub(in crate::config) pools: Vec<PoolFile>,
    pub(in crate::config) verify: VerifyFile,
    pub(in crate::config) inference: InferenceTable,
    pub(in crate::config) fallbacks: Named<Vec<String>>,
    pub(in crate::config) usage: UsageTable,
}

settings_table! {
    /// What stands at the top of the file and has no flag, variable or companion.
    struct GeneralTable for ServerConfig {
        /// Reverse proxies whose X-Forwarded-For is trusted, such as ["10.0.0.0/8", "::1"].
        trusted_proxies: Vec<IpNet> = parsed_list(NETWORKS, networks);
        /// Maximum size of a request body. Bodies with a text to verify may be larger if `max_fact_chars` requires it:
        /// 12 bytes per character, if all are escaped in JSON.
        max_body_bytes: usize = number(1..=1024 * 1024 * 1024);
        /// Maximum size of a request to a model: agents send long conversations and images.
        inference_max_body_bytes: usize = number(1..=1024 * 1024 * 1024);
        /// If true, traces contain what callers and models write, up to some thousand characters of each text.
        otlp_capture at traces.capture: bool = flag();
    }
}

settings_table! {
    /// `[limits]`.
    struct LimitsTable for limits::Settings {
        /// in any 60 seconds, per key
        per_minute at keys.per_minute: u32 = number(0..=u32::MAX);
        /// in a UTC day, per key
        per_day at keys.per_day: u32 = number(0..=u32::MAX);
        /// Health, openapi, unknown paths; per address.
        open_pages_per_minute: u32 = number(0..=u32::MAX);
        /// per address
        failed_auth_per_minute: u32 = number(0..=u32::MAX);
    }
}

settings_table! {
    /// `[limits.end_users]`.
    struct EndUsersTable for limits::Settings {
        /// in any 60 seconds
        per_minute at end_users.quota.per_minute: u32 = number(0..=u32::MAX);
        /// in a UTC day
        per_day at end_users.quota.per_day: u32 = number(0..=u32::MAX);
        /// what requests may cost in a UTC day
        budget_usd_per_day at end_users.budget_per_day: NanoUsd = decimal(values::DOLLARS, NanoUsd::from_usd),
            such as "0.5";
        /// what requests may cost in a month
        budget_usd_per_month at end_users.budget_per_month: NanoUsd = decimal(values::DOLLARS, NanoUsd::from_usd),
            such as "5";
    }
}

settings_table! {
    /// `[inference]`, but for its fallbacks.
    struct InferenceTable for inference::Settings {
        /// Time to the first token of a stream, after which the fallback is asked.
        first_token_timeout_with_fallback: Duration = duration();
        /// The same for the whole of an answer that is not streamed.
        whole_answer_timeout_with_fallback: Duration = duration();
        /// If true, parameters that a model's API does not support, such as a seed, are dropped and named in the
        /// header x-mk-dropped, instead of refusing the request.
        drop_unsupported: bool = flag();
        /// Verifies all answers of models with the panel of [verify]: "flag" adds verdicts, "block" withholds answers
        /// with a false claim. Keys and [models.NAME] can be stricter. Each answer then also costs a verification.
        verify: Option<Guard> = parsed(values::GUARD, values::guard);
        /// Which answers "block" withholds: any of "false", "no-consensus", "unchecked" and "failed" (the verification
        /// failed).
        block_on: Vec<BlockOn> = parsed_list(BLOCK_ON, block_on);
        /// Maximum time that answers are cached for callers who request it with x-mk-cache: up to "30d", or "off".
        max_cache: Option<Duration> = parsed(MAX_CACHE, max_cache), written values::written_days_or_off;
    }
}

settings_table! {
    /// `[usage]`.
    struct UsageTable for ServerConfig {
        /// How long records of single model calls are kept. Reports, statements and budgets use sums that are always
        /// kept, so this only limits the size of ledger.db. Default: forever; 1d to 36500d.
        retention at usage_retention: Duration = parsed(values::DAYS, values::days),
            written values::written_days, such as "\"400d\"";
    }
}

/// `[verify]`.
#[derive(Default)]
pub(in crate::config) struct VerifyFile {
    pub(in crate::config) all: VerifyTable,
    pub(in crate::config) base: PanelTable,
    pub(in crate::config) general: PanelTable,
    pub(in crate::config) legal: PanelTable,
}

settings_table! {
    /// What of `[verify]` holds for both domains together.
    struct VerifyTable for verify::Settings {
        /// Concurrent model calls of all verifications together.
        max_concurrent: usize = number(1..=10_000);
    }
}

settings_table! {
    /// What of `[verify]` a domain may have otherwise.
    struct PanelTable for PanelSettings {
        /// splits a text into claims
        extractor: String = text(), such as "\"openai/gpt-5.4-mini\"";
        /// Asked in order when the extractor fails.
        extractor_fallbacks: Vec<String> = texts(), such as "[\"openai/gpt-5.6-luna\", \"openai/gpt-4.1-mini\"]";
        /// Compares claims with the text; best from another provider than the extractor; "none" for no audit.
        auditor: String = text(), written written_auditor, such as "\"openai/gpt-5.6-luna\"";
        /// 2 to 9 models, best from different makers; [] for a chat-only server.
        panel: Vec<String> = texts(),
            such as "[\"openai/gpt-5.4-mini\", \"openai/gpt-5.6-luna\", \"openai/gpt-4.1-mini\"]";
        /// replace panel models that fail
        standby: Vec<String> = texts();
        /// maximum length of a text, in characters
        max_fact_chars: usize = number(1..=10_000_000);
        /// 0: one per 40 characters, up to 5000
        max_claims: usize = number(0..=100_000);
        /// Reasoning effort: lowest (the lowest that a model supports), none, minimal, low, medium, high or xhigh.
        /// Higher efforts cost more and take longer.
        effort: Effort = parsed(EFFORTS, Effort::parse);
        /// Time limit of a vote; an extraction or audit has up to three times as long.
        model_timeout: Duration = duration();
        /// Time limit of a whole verification; each further section of 2000 characters adds 5s.
        deadline: Duration = duration();
        /// How long results and their claims are kept, so that repeating a text costs nothing: "off", or a number of
        /// days such as "30d".
        cache: Option<Duration> = parsed(values::DAYS_OR_OFF, values::days_or_off),
            written values::written_days_or_off;
    }
}

impl PanelTable {
    /// Whether it says which models do something.
    pub(in crate::config) fn names_models(&self) -> bool {
        self.extractor.is_some()
            || self.extractor_fallbacks.is_some()
            || self.auditor.is_some()
            || self.panel.is_some()
            || self.standby.is_some()
    }
}

/// The value of `auditor` that turns audits off.
pub(in crate::config) const NO_AUDITOR: &str = "none";

fn written_auditor(auditor: Option<&String>) -> String {
    values::quoted(auditor.map_or(NO_AUDITOR, String::as_str))
}

/// What `effort` may be.
const EFFORTS: &str = "\"lowest\" (the lowest that a model supports), \"none\", \"minimal\", \"low\", \
    \"medium\", \"high\" or \"xhigh\"";

/// What `block_on` expects.
const BLOCK_ON: &str = "a list of one or more of \"false\", \"no-consensus\", \"unchecked\" and \"failed\"";

fn block_on(words: &[String]) -> Option<Vec<BlockOn>> {
    let named =
        |word: &String| BlockOn::NAMES.into_iter().find(|(name, _)| name == word).map(|(_, reason)| reason);
    words.iter().map(named).collect::<Option<Vec<_>>>().filter(|reasons| !reasons.is_empty())
}

/// What `max_cache` expects.
const MAX_CACHE: &str = "\"off\", or a number of days from 1 to 30, such as \"7d\"";

#[expect(clippy::option_option, reason = "unreadable, off and a time are three things")]
fn max_cache(text: &str) -> Option<Option<Duration>> {
    values::days_or_off(text).filter(|most| most.is_none_or(|most| most <= CacheTime::MAX))
}

/// What `trusted_proxies` expects.
const NETWORKS: &str = "a list of networks such as \"10.0.0.0/8\" or \"::1\"";

/// Networks or single addresses.
fn networks(list: &[String]) -> Option<Vec<IpNet>> {
    let network = |text: &String| text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    list.iter().map(network).collect()
}

/// An address and port; `localhost` means 127.0.0.1.
pub(in crate::config) fn listen_address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?))),
        None => text.parse().ok(),
    }
}

/// What `listen` expects.
pub(in crate::config) const LISTEN: &str =
    "an address and port such as \"127.0.0.1:8080\", \"localhost:8080\" or \"[::1]:8080\"";

/// What `limits_url` expects.
pub(in crate::config) const LIMITS: &str = "\"memory\", or the address of a Redis or Valkey server: redis://HOST, rediss://HOST (TLS), redis+unix:///PATH; `/`, `?`, `#` and `%` in a password are written %2F, %3F, %23 and %25";

/// Reads `server.toml`; `None` if there is none.
pub(in crate::config) fn read(path: &Path) -> Result<Option<ServerFile>, ConfigError> {
    let Some(document) = Document::open(path)? else { return Ok(None) };
    let table = document.parse()?;
    server(Section::root(&document, &table)).map(Some)
}

/// Where a server with this file listens, and whether with TLS, whatever else is wrong with it; `None` if that cannot
/// be read.
pub(in crate::config) fn read_listen(path: &Path) -> Option<(Option<Located<SocketAddr>>, bool)> {
    let document = Document::open(path).ok()??;
    let table = document.parse().ok()?;
    let mut root = Section::root(&document, &table);
    let listen = root.parsed("listen", LISTEN, listen_address).ok()?;
    Some((listen, table.contains_key("tls_cert")))
}

/// Where the database is. The error does not quote the value, as it may contain a password.
fn database_url(root: &mut Section<'_>) -> Result<Option<Located<DatabaseUrl>>, ConfigError> {
    let Some(found) = root.text("database_url")? else { return Ok(None) };
    match DatabaseUrl::parse(&found.value) {
        Ok(value) => Ok(Some(Located { value, place: found.place })),
        Err(why) => Err(found.place.error(why)),
    }
}

fn server(mut root: Section<'_>) -> Result<ServerFile, ConfigError> {
    let mut file = ServerFile {
        listen: root.parsed("listen", LISTEN, listen_address)?,
        data_dir: root.path("data_dir")?,
        database_url: database_url(&mut root)?,
        limits_url: root.parsed_unseen("limits_url", LIMITS, LimitsStore::parse)?,
        tls_cert: root.path("tls_cert")?,
        tls_key: root.path("tls_key")?,
        otlp_endpoint: root.parsed_unseen("otlp_endpoint", values::PROVIDER_URL, super::traces::address)?,
        general: GeneralTable::read(&mut root)?,
        usage: whole_table(root.section("usage")?)?,
        ..ServerFile::default()
    };
    if let Some(mut section) = root.section("limits")? {
        file.limits = LimitsTable::read(&mut section)?;
        file.end_users = whole_table(section.section("end_users")?)?;
        section.finish()?;
    }
    if let Some(providers) = root.section("providers")? {
        file.providers = provider_file::read_all(&providers)?;
    }
    if let Some(models) = root.section("models")? {
        file.pools = pool_file::read_all(&models)?;
    }
    if let Some(section) = root.section("verify")? {
        file.verify = verify(section)?;
    }
    if let Some(mut section) = root.section("inference")? {
        file.inference = InferenceTable::read(&mut section)?;
        if let Some(fallbacks) = section.section("fallbacks")? {
            file.fallbacks = fallbacks.named_texts()?;
        }
        section.finish()?;
    }
    root.finish()?;
    Ok(file)
}

fn verify(mut section: Section<'_>) -> Result<VerifyFile, ConfigError> {
    let mut file = VerifyFile {
        all: VerifyTable::read(&mut section)?,
        base: PanelTable::read(&mut section)?,
        ..VerifyFile::default()
    };
    if let Some(mut domains) = section.section("domains")? {
        file.general = domain(&mut domains, "general")?;
        file.legal = domain(&mut domains, "legal")?;
        domains.finish()?;
    }
    section.finish()?;
    Ok(file)
}

fn domain(domains: &mut Section<'_>, name: &'static str) -> Result<PanelTable, ConfigError> {
    let section = domains.section(name)?;
    if let Some(section) = &section {
        section.forbid("max_concurrent", "applies to both domains together", "set it under [verify]")?;
    }
    whole_table(section)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever a person or a broken disk makes of a file, it reads or is complained about.
        #[test]
        fn a_damaged_file_never_panics(
            at in 0_usize..6000,
            cut in 0_usize..40,
            insert in "[\\PC\\n\"\\[\\]=.#]{0,12}",
        ) {
            let settings = crate::config::example().replace("\n#", "\n");
            let mut text: Vec<char> = settings.chars().collect();
            let start = at.min(text.len());
            let end = (start + cut).min(text.len());
            text.splice(start..end, insert.chars());
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("server.toml");
            std::fs::write(&path, text.into_iter().collect::<String>()).unwrap();
            if let Err(error) = read(&path) {
                prop_assert!(error.message.contains("server.toml"), "{}", error);
            }
        }
    }
}
