//! Complete verifications in random simulations, in paused time: any panel, any models, any limits, and readers that
//! are slow or leave. What must hold for every run:
//!
//! - the events come in the order of the contract, and end once;
//! - each verdict follows from the listed answers, and these are what the models answered;
//! - a model that failed is replaced while there is a standby model, and none is asked or listed twice;
//! - the usage that the models report is what the events sum up and what the ledger contains;
//! - a run ends by its deadline, and every call ends with the run or when the reader leaves.

mod invariants;
mod models;
mod reference_vote;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::invariants::Run;
use self::models::{Action, Behaviour, SimulatedModels};
use super::receipts;
use super::support::{Scenario, statement};
use crate::api::Service;
use crate::api::verify::MIN_REQUIRED;
use crate::clock::{Clock, Time};
use crate::inference::Failure;
use crate::money::Tokens;
use crate::storage::Store;
use crate::usage::{Account, Accounting, Budget, Ledger, Meter};
use crate::verify::{EventResult, Job, Settings, Verifier};

/// Enough for every pair of behaviours to be combined, few enough for a second or two.
const CASES: u32 = 256;

/// All parameters of a run.
#[derive(Clone, Debug)]
struct Plan {
    behaviours: Vec<Behaviour>,
    extractor_behaviours: Vec<Behaviour>,
    claims: usize,
    max_claims: usize,
    panel: usize,
    standby: usize,
    fallbacks: usize,
    min_required: u32,
    total: usize,
    max_concurrent: usize,
    model_timeout: Duration,
    deadline: Duration,
    progress: bool,
    explain: bool,
    reader: Reader,
}

/// The reader of the events.
#[derive(Clone, Debug)]
struct Reader {
    /// How many events may wait for it.
    channel_capacity: usize,
    /// How long it takes for each event.
    pause: Duration,
    /// It leaves after this many events and this time.
    leaves: Option<(usize, Duration)>,
}

fn failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        Just(Failure::Timeout),
        Just(Failure::Refused),
        Just(Failure::Unreachable),
        Just(Failure::NoDescriptors),
        Just(Failure::Malformed),
        Just(Failure::NoAnswer),
        Just(Failure::Cut),
        Just(Failure::RateLimited { retry_after: None }),
        Just(Failure::Overloaded { retry_after: Some(Duration::from_secs(7)) }),
        Just(Failure::Broken { status: 500, retry_after: None }),
        Just(Failure::Unauthorized),
        Just(Failure::QuotaExhausted),
        Just(Failure::ContextOverflow { words: None }),
        Just(Failure::UnknownModel),
    ]
}

fn garbage() -> impl Strategy<Value = String> {
    let known = [
        "",
        "{",
        "I think B.",
        "null",
        "[\"A\"]",
        r#"{"answer":"Z"}"#,
        r#"{"answer":"AB"}"#,
        r#"{"answer":["A"]}"#,
        r#"{"answer":"A"} or {"answer":"B"}"#,
        r#"{"answer":"A""#,
        r#"I cannot help with that. The form would be {"answer":"A"}, not B."#,
        "{\"claims\": 7}",
    ];
    prop_oneof![3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "[^{}A-Za-z]*"]
}

fn action(willing: u32) -> impl Strategy<Value = Action> {
    prop_oneof![
        willing => (0_usize..6, 0_usize..6).prop_map(|(kind, format)| Action::Answer { kind, format }),
        // Prefers the claimed answer, as there would hardly ever be a consensus otherwise.
        willing => (0_usize..6).prop_map(|format| Action::Answer { kind: 0, format }),
        2 => garbage().prop_map(Action::Garbage),
        1 => Just(Action::ContentFilter),
        3 => failure().prop_map(Action::Fail),
        1 => Just(Action::Hang),
    ]
}

fn behaviour(willing: u32) -> impl Strategy<Value = Behaviour> {
    let delay = prop_oneof![3 => 0_u64..50, 1 => 0_u64..3_000].prop_map(Duration::from_millis);
    let usage = (0_u64..5_000, 0_u64..500).prop_map(|(prompt, completion)| Tokens::new(prompt, completion));
    (action(willing), delay, usage).prop_map(|(action, delay, usage)| Behaviour { action, delay, usage })
}

fn reader() -> impl Strategy<Value = Reader> {
    let pause = prop_oneof![3 => Just(0), 1 => 0_u64..40].prop_map(Duration::from_millis);
    let leaves = (0_usize..20, (0_u64..2_000).prop_map(Duration::from_millis));
    (1_usize..5, pause, prop::option::weighted(0.3, leaves))
        .prop_map(|(channel_capacity, pause, leaves)| Reader { channel_capacity, pause, leaves })
}

fn plan() -> impl Strategy<Value = Plan> {
    let models = (
        prop::collection::vec(behaviour(6), 1..16),
        prop::collection::vec(behaviour(12), 1..4),
        (0_usize..6, 1_usize..6),
        (1_usize..=5, 0_usize..4, 0_usize..3),
    );
    let milliseconds = |range| Strategy::prop_map(range, Duration::from_millis);
    let limits = (
        MIN_REQUIRED,
        2_usize..=5,
        1_usize..12,
        milliseconds(100_u64..4_000),
        milliseconds(300_u64..20_000),
        any::<(bool, bool)>(),
        reader(),
    );
    (models, limits).prop_map(|(models, limits)| {
        let (behaviours, extractor_behaviours, (claims, max_claims), (panel, standby, fallbacks)) = models;
        let (min_required, total, max_concurrent, model_timeout, deadline, (progress, explain), reader) =
            limits;
        // What the server guarantees: no more models are required or asked than there are.
        let min_required = min_required.min(u32::try_from(panel).unwrap()).max(2);
        let total = total.clamp(min_required as usize, panel.max(min_required as usize));
        Plan {
            behaviours,
            extractor_behaviours,
            claims,
            max_claims,
            panel,
            standby,
            fallbacks,
            min_required,
            total,
            max_concurrent,
            model_timeout,
            deadline,
            progress,
            explain,
            reader,
        }
    })
}

/// Models of three providers in turn.
fn names(kind: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("provider{}/{kind}-{n}", n % 3)).collect()
}

impl Plan {
    fn verifier(&self, models: &Arc<SimulatedModels>) -> Verifier {
        let mut general =
            Scenario::new(|_| unreachable!("the default models are not called")).settings.general;
        general.extractor = "provider0/extractor".to_owned();
        general.extractor_fallbacks = names("extractor", self.fallbacks);
        general.panel = names("panel", self.panel);
        general.standby = names("standby", self.standby);
        general.max_claims = self.max_claims;
        general.model_timeout = self.model_timeout;
        general.deadline = self.deadline;
        let settings = Settings { legal: general.clone(), general, max_concurrent: self.max_concurrent };
        Verifier::with_client(models.clone(), settings, Clock::manual(Time::from_unix_ms(1_795_202_760_123)))
    }

    fn job(&self) -> Job {
        Job {
            min_required: self.min_required,
            total_models: u32::try_from(self.total).unwrap(),
            fact: statement(self.claims),
            explain: self.explain,
            model_progress: self.progress,
            receipt: Some(receipts::key(1)),
            ..Scenario::new(|_| unreachable!()).job
        }
    }

    /// Runs it to the end, or until its reader has left.
    async fn run(&self) -> Run {
        let models =
            SimulatedModels::new(self.behaviours.clone(), self.extractor_behaviours.clone(), self.claims);
        let (verifier, store) = (self.verifier(&models), Store::in_memory(Time::from_unix_ms(0)).unwrap());
        let ledger = Ledger::new(store.clone());
        let account = Account {
            request_id: "ver_1".into(),
            app_id: "".into(),
            key_id: "".into(),
            service: Service::Verify,
            budget: Budget::default(),
            trace: crate::traces::Parent::default(),
            labels: None,
        };
        let meter =
            Meter::new(account, Accounting::new(ledger.clone(), Clock::manual(Time::from_unix_ms(0))));
        let (sender, mut receiver) = mpsc::channel::<Box<EventResult>>(self.reader.channel_capacity);
        let began = Instant::now();
        let reader = self.reader.clone();
        // The reader owns the channel, so that leaving closes it.
        let read = async move {
            let mut events: Vec<(EventResult, Instant)> = Vec::new();
            loop {
                if let Some((max_events, time)) = reader.leaves
                    && events.len() >= max_events
                {
                    // It takes no events in the meantime.
                    tokio::time::sleep(time).await;
                    return events;
                }
                let Some(event) = receiver.recv().await else { return events };
                events.push((*event, Instant::now()));
                tokio::time::sleep(reader.pause).await;
            }
        };
        let run = async {
            verifier.run(&self.job(), &meter, sender).await;
            Instant::now()
        };
        let (ended, events) = tokio::join!(run, read);
        ledger.flush().unwrap();
        let rows = store.attempts_of("ver_1").unwrap();
        Run { plan: self.clone(), events, began, ended, rows, models }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_models_and_readers_do_every_invariant_holds(plan in plan()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(plan.run()).check()?;
    }
}
