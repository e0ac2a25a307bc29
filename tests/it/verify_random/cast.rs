//! Models of three formats that do anything, the same for every run of a case, and what they did in each run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mk::config::{Env, ServerArgs, ServerConfig};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::provider::{Ask, Turn, claim, claims};
use crate::support::server::NOON;

/// What a model does with a call. Never late beyond a limit: what takes no end is the model `silent`.
#[derive(Clone, Debug)]
pub enum Act {
    /// The option of this kind, after a while.
    Chooses(usize, Duration),
    /// A text that cannot be read.
    Babbles(&'static str),
    Declines,
    TooMany,
    Breaks(u16),
    CutsOff,
    Resets,
}

/// The options of every claim, by kind.
const OPTIONS: [&str; 6] = ["yes", "no", "maybe", "never", "None of these", "Cannot be determined"];

/// Anything; `willing` is how much likelier an answer is than any one of the rest.
pub fn act(willing: u32) -> impl Strategy<Value = Act> {
    let babble =
        ["", "I think B.", "{\"answer\":", "{\"answer\":\"Z\"}", "{\"answer\":\"A\"} {\"answer\":\"B\"}"];
    let chooses = |kind, after| Act::Chooses(kind, Duration::from_millis(after));
    prop_oneof![
        willing => (0_usize..6, 0_u64..60).prop_map(move |(kind, after)| chooses(kind, after)),
        willing => (0_u64..60).prop_map(move |after| chooses(0, after)),
        1 => prop::sample::select(babble.to_vec()).prop_map(Act::Babbles),
        1 => Just(Act::Declines),
        1 => Just(Act::TooMany),
        1 => prop::sample::select(vec![500, 503]).prop_map(Act::Breaks),
        1 => Just(Act::CutsOff),
        1 => Just(Act::Resets),
    ]
}

/// What was done in one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Calls that came.
    pub calls: usize,
    /// Tokens that answers reported.
    pub reported: u64,
}

#[derive(Default)]
struct Log {
    calls: BTreeMap<String, usize>,
    runs: BTreeMap<String, Done>,
}

/// All models of a case.
#[derive(Clone)]
pub struct Cast {
    panel: Arc<Vec<Act>>,
    extractor: Arc<Vec<Act>>,
    claims: usize,
    log: Arc<Mutex<Log>>,
}

impl Cast {
    pub fn new(panel: Vec<Act>, extractor: Vec<Act>, claims: usize) -> Self {
        Self { panel: Arc::new(panel), extractor: Arc::new(extractor), claims, log: Arc::default() }
    }

    /// What was done in the run of this tag.
    pub fn done(&self, tag: &str) -> Done {
        self.log.lock().unwrap().runs.get(tag).copied().unwrap_or_default()
    }

    /// Plays a call. Which act it is follows from model, question and the how many-th call about it this is, and not
    /// from the run.
    pub fn play(&self, ask: &Ask) -> Turn {
        let is_extraction = ask.task == "claims";
        let about = ask.block(if is_extraction { "STATEMENT" } else { "QUESTION" });
        let tag = tag_of(&about).unwrap_or_else(|| panic!("no tag in {about:?}")).to_owned();
        let mut log = self.log.lock().unwrap();
        let nth = log.calls.entry(format!("{} {about}", ask.model)).or_default();
        let seed = format!("{} {} {nth}", ask.model, about.replace(&tag, ""));
        *nth += 1;
        let acts = if is_extraction { &self.extractor } else { &self.panel };
        let hash = seed.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let turn = match &acts[hash % acts.len()] {
            _ if ask.model == "silent" => Turn::Hang,
            Act::Chooses(..) if is_extraction => claims(&self.extracted(&tag)),
            Act::Chooses(kind, after) => ask.choose(OPTIONS[*kind]).after(*after),
            Act::Babbles(text) => Turn::Text((*text).to_owned()),
            Act::Declines => Turn::status(400, &json!({"error": {"code": "content_filter"}})),
            Act::TooMany => Turn::Raw(429, vec![("retry-after-ms", "1".to_owned())], "{}".to_owned()),
            Act::Breaks(status) => Turn::status(*status, &json!({})),
            Act::CutsOff => Turn::Cut,
            Act::Resets => Turn::Reset,
        };
        let done = log.runs.entry(tag).or_default();
        done.calls += 1;
        done.reported += if reports(&turn) { 110 } else { 0 };
        turn
    }

    fn extracted(&self, tag: &str) -> Vec<Value> {
        let of = |n| {
            let (text, question) = (format!("Number {n} of {tag} holds."), format!("What of {n} in {tag}?"));
            claim(&text, &question, OPTIONS[0], &OPTIONS[1..4])
        };
        (0..self.claims).map(of).collect()
    }
}

/// Whether a turn is a completion, which says that it took 100 and 10 tokens.
fn reports(turn: &Turn) -> bool {
    match turn {
        Turn::After(_, next) => reports(next),
        Turn::Text(_) => true,
        _ => false,
    }
}

/// The tag of a run, `run-` and three digits, in a text.
pub fn tag_of(text: &str) -> Option<&str> {
    let at = text.find("run-")?;
    text.get(at..at + 7)
}

/// A server's configuration with the first `panel` of these models as its panel and the others as its standbys.
pub fn config(base_url: &str, roster: &[&str], panel: usize) -> ServerConfig {
    let (panel, standby) = roster.split_at(panel);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    let provider = |name: &str, kind: &str| {
        format!(
            "[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\nretries = 1\nbreaker_failures = 0\n\
             [providers.{name}.models.silent]\nfirst_byte_timeout = \"300ms\"\n"
        )
    };
    let text = format!(
        "listen = \"127.0.0.1:0\"\ndata_dir = \"/nowhere\"\n{}{}{}[verify]\nextractor = \"fake/extractor\"\n\
         extractor_fallbacks = [\"claude/extractor\"]\npanel = {panel:?}\nstandby = {standby:?}\n",
        provider("fake", "openai"),
        provider("claude", "anthropic"),
        provider("gemini", "google"),
    );
    std::fs::write(&file, text).unwrap();
    let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([], NOON)).unwrap_or_else(|error| panic!("{error:?}"))
}
