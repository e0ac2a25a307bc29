//! Whole verifications in worlds made at random, under time that stands still but for waits: any panel, any models, any
//! limits, readers who are slow or leave. What must hold of every run:
//!
//! - the events come in the order of the contract, and end once;
//! - each verdict is what the listed answers come to, and these are what the models said;
//! - whoever failed is replaced while somebody stands by, and nobody is asked or listed twice;
//! - what the models report is what the events sum up and what the ledger holds;
//! - a run ends by its deadline, and with it or with its reader every call.

mod naive;
mod settled;
mod world;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::settled::Run;
use self::world::{Act, Habit, World};
use super::support::Stage;
use crate::api::Service;
use crate::api::verify::MIN_REQUIRED;
use crate::clock::{Clock, Time};
use crate::inference::Failure;
use crate::money::Tokens;
use crate::storage::Store;
use crate::usage::{Account, Accounting, Budget, Ledger, Meter};
use crate::verify::{Job, Settings, Step, Verifier};

/// Enough for every pair of behaviours to meet, few enough for a second or two.
const CASES: u32 = 256;

/// Everything about a run.
#[derive(Clone, Debug)]
struct Plan {
    habits: Vec<Habit>,
    extractor_habits: Vec<Habit>,
    claims: usize,
    max_claims: usize,
    panel: usize,
    standby: usize,
    fallbacks: usize,
    min_required: u32,
    total: usize,
    at_once: usize,
    model_timeout: Duration,
    deadline: Duration,
    progress: bool,
    explain: bool,
    reader: Reader,
}

/// Who reads the events.
#[derive(Clone, Debug)]
struct Reader {
    /// Events that may wait for him.
    room: usize,
    /// What he takes for each.
    pause: Duration,
    /// He leaves after so many events, and so long.
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
        Just(Failure::Broken { status: 500 }),
        Just(Failure::Unauthorized),
        Just(Failure::QuotaExhausted),
        Just(Failure::ContextOverflow),
        Just(Failure::UnknownModel),
    ]
}

fn babble() -> impl Strategy<Value = String> {
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
        r#"I cannot help with that. The form would be {"answer":"A"}."#,
        "{\"claims\": 7}",
    ];
    prop_oneof![3 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

fn act(willing: u32) -> impl Strategy<Value = Act> {
    prop_oneof![
        willing => (0_usize..6, 0_usize..4).prop_map(|(kind, dress)| Act::Answers { kind, dress }),
        // A liking for the claimed answer, without which there were hardly a consensus.
        willing => (0_usize..4).prop_map(|dress| Act::Answers { kind: 0, dress }),
        2 => babble().prop_map(Act::Babbles),
        1 => Just(Act::Withholds),
        3 => failure().prop_map(Act::Fails),
        1 => Just(Act::Hangs),
    ]
}

fn habit(willing: u32) -> impl Strategy<Value = Habit> {
    let after = prop_oneof![3 => 0_u64..50, 1 => 0_u64..3_000].prop_map(Duration::from_millis);
    let usage = (0_u64..5_000, 0_u64..500).prop_map(|(prompt, completion)| Tokens { prompt, completion });
    (act(willing), after, usage).prop_map(|(act, after, usage)| Habit { act, after, usage })
}

fn reader() -> impl Strategy<Value = Reader> {
    let pause = prop_oneof![3 => Just(0), 1 => 0_u64..40].prop_map(Duration::from_millis);
    let leaves = (0_usize..20, (0_u64..2_000).prop_map(Duration::from_millis));
    (1_usize..5, pause, prop::option::weighted(0.3, leaves)).prop_map(|(room, pause, leaves)| Reader {
        room,
        pause,
        leaves,
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let models = (
        prop::collection::vec(habit(6), 1..16),
        prop::collection::vec(habit(12), 1..4),
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
        let (habits, extractor_habits, (claims, max_claims), (panel, standby, fallbacks)) = models;
        let (least, total, at_once, model_timeout, deadline, (progress, explain), reader) = limits;
        // What the server sees to: no more are required or asked than there are.
        let min_required = least.min(u32::try_from(panel).unwrap()).max(2);
        let total = total.clamp(min_required as usize, panel.max(min_required as usize));
        Plan {
            habits,
            extractor_habits,
            claims,
            max_claims,
            panel,
            standby,
            fallbacks,
            min_required,
            total,
            at_once,
            model_timeout,
            deadline,
            progress,
            explain,
            reader,
        }
    })
}

/// Models of three providers, by turns.
fn names(kind: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("provider{}/{kind}-{n}", n % 3)).collect()
}

impl Plan {
    fn verifier(&self, world: &Arc<World>) -> Verifier {
        let mut general = Stage::new(|_| unreachable!("nobody asks the usual models")).settings.general;
        general.extractor = "provider0/extractor".to_owned();
        general.extractor_fallbacks = names("extractor", self.fallbacks);
        general.panel = names("panel", self.panel);
        general.standby = names("standby", self.standby);
        general.max_claims = self.max_claims;
        general.model_timeout = self.model_timeout;
        general.deadline = self.deadline;
        let settings = Settings { legal: general.clone(), general, max_concurrent: self.at_once };
        Verifier::asking(world.clone(), settings, Clock::manual(Time::from_unix_ms(1_795_202_760_123)))
    }

    fn job(&self) -> Job {
        Job {
            min_required: self.min_required,
            total_models: u32::try_from(self.total).unwrap(),
            explain: self.explain,
            model_progress: self.progress,
            ..Stage::new(|_| unreachable!()).job
        }
    }

    /// The run to its end, or until its reader has left.
    async fn run(&self) -> Run {
        let world = World::new(self.habits.clone(), self.extractor_habits.clone(), self.claims);
        let (verifier, store) = (self.verifier(&world), Store::in_memory(Time::from_unix_ms(0)).unwrap());
        let ledger = Ledger::new(store.clone());
        let account = Account {
            request_id: "ver_1".into(),
            app_id: "".into(),
            key_id: "".into(),
            service: Service::Verify,
            budget: Budget::default(),
        };
        let meter =
            Meter::new(account, Accounting::new(ledger.clone(), Clock::manual(Time::from_unix_ms(0))));
        let (sender, mut receiver) = mpsc::channel::<Box<Step>>(self.reader.room);
        let began = Instant::now();
        let reader = self.reader.clone();
        // He takes the channel with him.
        let read = async move {
            let mut steps: Vec<(Step, Instant)> = Vec::new();
            loop {
                if let Some((most, after)) = reader.leaves
                    && steps.len() >= most
                {
                    // What comes meanwhile he does not take.
                    tokio::time::sleep(after).await;
                    return steps;
                }
                let Some(step) = receiver.recv().await else { return steps };
                steps.push((*step, Instant::now()));
                tokio::time::sleep(reader.pause).await;
            }
        };
        let run = async {
            verifier.run(self.job(), &meter, sender).await;
            Instant::now()
        };
        let (ended, steps) = tokio::join!(run, read);
        ledger.flush().unwrap();
        let rows = store.attempts_of("ver_1").unwrap();
        Run { plan: self.clone(), steps, began, ended, rows, world }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_models_and_readers_do_every_promise_holds(plan in plan()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(plan.run()).check()?;
    }
}
