//! Models of three formats with random behaviour, which is the same in every run of a case, and a log of what they did
//! in each run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mk::config::{Env, ServerArgs, ServerConfig};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::provider::{ModelRequest, Reply, claim, claims};
use crate::support::server::NOON;

/// How a model responds to a call. Never so late that a timeout passes; only the model `silent` never responds. None
/// limits its rate: all runs share a model's pace, so that what one finds out decides whom another asks
/// (`verify::tests::rate_limits`).
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Chooses the option of this kind, after a delay.
    Chooses(usize, Duration),
    /// Responds with text that cannot be parsed.
    Malformed(&'static str),
    Refuses,
    Fails(u16),
    Cuts,
    Resets,
}

/// The options of every claim, by kind.
const OPTIONS: [&str; 6] = ["yes", "no", "maybe", "never", "None of these", "Cannot be determined"];

/// Any behaviour; `willing` is how much more likely an answer is than each of the others.
pub fn behaviour(willing: u32) -> impl Strategy<Value = Behaviour> {
    let malformed =
        ["", "I think B.", "{\"answer\":", "{\"answer\":\"Z\"}", "{\"answer\":\"A\"} {\"answer\":\"B\"}"];
    let chooses = |kind, after| Behaviour::Chooses(kind, Duration::from_millis(after));
    prop_oneof![
        willing => (0_usize..6, 0_u64..60).prop_map(move |(kind, after)| chooses(kind, after)),
        willing => (0_u64..60).prop_map(move |after| chooses(0, after)),
        1 => prop::sample::select(malformed.to_vec()).prop_map(Behaviour::Malformed),
        1 => Just(Behaviour::Refuses),
        1 => prop::sample::select(vec![500, 503]).prop_map(Behaviour::Fails),
        1 => Just(Behaviour::Cuts),
        1 => Just(Behaviour::Resets),
    ]
}

/// What happened in one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunLog {
    /// Calls that were received.
    pub calls: usize,
    /// Tokens that responses reported.
    pub reported: u64,
}

#[derive(Default)]
struct Log {
    calls: BTreeMap<String, usize>,
    runs: BTreeMap<String, RunLog>,
}

/// The models of a case.
#[derive(Clone)]
pub struct FakeModels {
    panel: Arc<Vec<Behaviour>>,
    extractor: Arc<Vec<Behaviour>>,
    claims: usize,
    log: Arc<Mutex<Log>>,
}

impl FakeModels {
    pub fn new(panel: Vec<Behaviour>, extractor: Vec<Behaviour>, claims: usize) -> Self {
        Self { panel: Arc::new(panel), extractor: Arc::new(extractor), claims, log: Arc::default() }
    }

    /// What happened in the run with this tag.
    pub fn done(&self, tag: &str) -> RunLog {
        self.log.lock().unwrap().runs.get(tag).copied().unwrap_or_default()
    }

    /// Responds to a call. The behaviour depends on the model, the question and how often the model was asked about it,
    /// but not on the run.
    pub fn respond(&self, ask: &ModelRequest) -> Reply {
        let is_extraction = ask.task == "claims";
        let about = ask.block(if is_extraction { "SECTION" } else { "QUESTION" });
        let tag = tag_of(&about).unwrap_or_else(|| panic!("no tag in {about:?}")).to_owned();
        let mut log = self.log.lock().unwrap();
        let nth = log.calls.entry(format!("{} {about}", ask.model)).or_default();
        let seed = format!("{} {} {nth}", ask.model, about.replace(&tag, ""));
        *nth += 1;
        let behaviours = if is_extraction { &self.extractor } else { &self.panel };
        let hash = seed.bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let turn = match &behaviours[hash % behaviours.len()] {
            _ if ask.model == "silent" => Reply::Hang,
            Behaviour::Chooses(..) if is_extraction => claims(&self.extracted(&tag)),
            Behaviour::Chooses(kind, after) => ask.choose(OPTIONS[*kind]).after(*after),
            Behaviour::Malformed(text) => Reply::Text((*text).to_owned()),
            Behaviour::Refuses => Reply::status(400, &json!({"error": {"code": "content_filter"}})),
            Behaviour::Fails(status) => Reply::status(*status, &json!({})),
            Behaviour::Cuts => Reply::Cut,
            Behaviour::Resets => Reply::Reset,
        };
        let done = log.runs.entry(tag).or_default();
        done.calls += 1;
        done.reported += if reports(&turn) { 110 } else { 0 };
        turn
    }

    fn extracted(&self, tag: &str) -> Vec<Value> {
        let of = |n| claim(&sentence(n, tag), &format!("What of {n} in {tag}?"), OPTIONS[0], &OPTIONS[1..4]);
        (0..self.claims).map(of).collect()
    }
}

/// What the statement of the run with this tag says in its sentence `n`.
pub fn sentence(n: usize, tag: &str) -> String {
    format!("The house with number {n} of {tag} is {}.", OPTIONS[0])
}

/// Whether a turn is a completion, which reports 100 and 10 tokens.
fn reports(turn: &Reply) -> bool {
    match turn {
        Reply::After(_, next) => reports(next),
        Reply::Text(_) => true,
        _ => false,
    }
}

/// The tag of a run, `run-` and three digits, in a text.
pub fn tag_of(text: &str) -> Option<&str> {
    let at = text.find("run-")?;
    text.get(at..at + 7)
}

/// A configuration with the first `panel` of these models as the panel and the others as standbys.
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
         extractor_fallbacks = [\"claude/extractor\"]\nauditor = \"none\"\npanel = {panel:?}\nstandby = {standby:?}\n",
        provider("fake", "openai"),
        provider("claude", "anthropic"),
        provider("gemini", "google"),
    );
    std::fs::write(&file, text).unwrap();
    let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([], NOON)).unwrap_or_else(|error| panic!("{error:?}"))
}
