//! Scripted models, and scenarios that run a verification with them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, pending};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::api::Service;
use crate::api::verify::{ClaimResult, Event, VerifyResponse};
use crate::clock::{Clock, Time};
use crate::inference::{Answer, Chat, Failure, Finish, Prompt};
use crate::lock::Lock;
use crate::money::{NanoUsd, Price, Tokens};
use crate::usage::{Account, Accounting, Budget, Ledger, Meter, Purpose, Store};
use crate::verify::model_calls::calls::ModelClient;
use crate::verify::{EventResult, Job, PanelSettings, Settings, Verifier};

/// One nano-dollar per token.
const PRICE: Price = Price::new(NanoUsd(1_000_000), NanoUsd(1_000_000));

/// How a scripted model replies to a call.
pub(super) enum Reply {
    Text(String),
    /// An answer that is cut off or withheld.
    TextWithFinish(String, Finish),
    Fail(Failure),
    /// Never returns, whatever the deadline.
    Hang,
    /// The reply after a delay.
    After(Duration, Box<Self>),
    /// Answers once as many calls are open as the barrier requires.
    TextAfterBarrier(Arc<tokio::sync::Barrier>, String),
}

/// A call as seen by a script.
pub(super) struct Call<'a> {
    pub(super) model: &'a str,
    pub(super) purpose: Purpose,
    pub(super) chat: &'a Chat,
    /// How long the call may take.
    pub(super) time: Duration,
}

impl Call<'_> {
    pub(super) fn is_extraction(&self) -> bool {
        self.purpose == Purpose::Extraction
    }

    pub(super) fn is_audit(&self) -> bool {
        self.chat.schema.as_ref().is_some_and(|schema| schema.name == "audit")
    }

    /// Whether this is the repair attempt after a malformed answer.
    pub(super) fn is_repair(&self) -> bool {
        self.chat.messages.len() > 2
    }

    /// The question in the prompt.
    pub(super) fn question(&self) -> String {
        block(self.chat, "QUESTION")
    }

    /// The options in the prompt, with their letters.
    pub(super) fn options(&self) -> Vec<(String, String)> {
        let split = |line: &str| line.split_once(") ").map(|(key, text)| (key.to_owned(), text.to_owned()));
        block(self.chat, "OPTIONS").lines().filter_map(split).collect()
    }

    /// The reply that chooses this option.
    pub(super) fn choose(&self, option: &str) -> Reply {
        let options = self.options();
        let (key, _) = options.iter().find(|(_, text)| text == option).expect("the option is shown");
        Reply::Text(json!({"answer": key, "reason": format!("because {option}")}).to_string())
    }
}

/// The content of a fenced block.
pub(super) fn block(chat: &Chat, label: &str) -> String {
    let user = &chat.messages[1].content;
    let (_, rest) = user.split_once(&format!("BEGIN {label} ")).expect("a block");
    let (marker, rest) = rest.split_once('\n').expect("a marker");
    let (inside, _) = rest.split_once(&format!("\nEND {label} {marker}\n")).expect("its end");
    inside.to_owned()
}

type Script = Box<dyn Fn(&Call<'_>) -> Reply + Send + Sync>;

/// Models that follow a script and record every call.
pub(super) struct ScriptedModels {
    script: Script,
    pub(super) chats: Mutex<Vec<(String, Chat)>>,
}

impl ScriptedModels {
    /// What the script says to a call.
    pub(super) fn reply(&self, call: &Call<'_>) -> Reply {
        (self.script)(call)
    }
}

impl ModelClient for ScriptedModels {
    fn ask<'a>(
        &'a self,
        model: &'a str,
        prompt: &'a Prompt<'a>,
        purpose: Purpose,
        meter: &'a Meter,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        let chat = prompt.take();
        self.chats.locked().push((model.to_owned(), chat.clone()));
        let reply = (self.script)(&Call {
            model,
            purpose,
            chat: &chat,
            time: deadline.duration_since(Instant::now()),
        });
        Box::pin(async move {
            let mut attempt =
                meter
                    .attempt(model, purpose, Some(PRICE), Instant::now().into_std(), || Some(NanoUsd(13)))?;
            attempt.set_expected(Tokens::of_prompt(7));
            let mut reply = reply;
            while let Reply::After(delay, next) = reply {
                sleep(delay).await;
                reply = *next;
            }
            let (text, finish) = match reply {
                Reply::Text(text) => (text, Finish::Stop),
                Reply::TextWithFinish(text, finish) => (text, finish),
                Reply::Fail(failure) => {
                    attempt.finish(failure.code(), Tokens::of_prompt(5));
                    return Err(failure);
                }
                Reply::Hang | Reply::After(..) => pending().await,
                Reply::TextAfterBarrier(barrier, text) => {
                    barrier.wait().await;
                    (text, Finish::Stop)
                }
            };
            attempt.finish("ok", Tokens::new(10, 3));
            Ok(Answer { text, finish, usage: None, model: None })
        })
    }

    fn max_cost(&self, _: &str, _: &Chat) -> Option<NanoUsd> {
        Some(NanoUsd(13))
    }

    fn is_sandbox(&self, model: &str) -> bool {
        model.starts_with("sandbox/")
    }

    fn place(&self, _model: &str) -> Option<String> {
        None
    }

    fn max_concurrent_calls(&self, model: &str) -> Option<usize> {
        Some(if model.starts_with("single/") { 1 } else { 64 })
    }
}

/// A verification with scripted models; its fields may be changed before it runs.
pub(super) struct Scenario {
    pub(super) models: Arc<ScriptedModels>,
    pub(super) settings: Settings,
    pub(super) job: Job,
    pub(super) channel_capacity: usize,
}

impl Scenario {
    /// Panel `a/1`, `b/1`, `c/1`, standby `d/1`, extractor `x/1` with fallback `y/1`; 2 of 3 must agree.
    pub(super) fn new(script: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static) -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let general = PanelSettings {
            extractor: "x/1".to_owned(),
            extractor_fallbacks: names(&["y/1"]),
            panel: names(&["a/1", "b/1", "c/1"]),
            standby: names(&["d/1"]),
            ..PanelSettings::default()
        };
        Self {
            models: Arc::new(ScriptedModels { script: Box::new(script), chats: Mutex::default() }),
            settings: Settings { legal: general.clone(), general, max_concurrent: 64 },
            job: Job {
                id: "ver_1".to_owned(),
                fact: statement(1),
                as_of: Time::parse("2026-11-20").expect("a date"),
                ..Job::blank()
            },
            channel_capacity: 1,
        }
    }

    /// Like [`Scenario::new`], with an extractor that finds this many claims.
    pub(super) fn with_claims(
        claims: usize,
        answer: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let mut scenario =
            Self::new(
                move |call| if call.is_extraction() { Reply::Text(extraction(claims)) } else { answer(call) },
            );
        scenario.job.fact = statement(claims);
        scenario
    }

    pub(super) fn verifier(&self) -> Verifier {
        let clock = Clock::manual(Time::from_unix_ms(1_795_202_760_123));
        Verifier::with_client(self.models.clone(), self.settings.clone(), clock)
    }

    /// Runs it; returns all events.
    pub(super) async fn run(&self) -> Vec<EventResult> {
        self.run_with(&self.verifier()).await
    }

    /// Runs it with a verifier that other runs use as well; returns all events.
    pub(super) async fn run_with(&self, verifier: &Verifier) -> Vec<EventResult> {
        let meter = meter();
        let (sender, mut receiver) = mpsc::channel::<Box<EventResult>>(self.channel_capacity);
        let read = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                events.push(*event);
            }
            events
        };
        let ((), events) = tokio::join!(verifier.run(&self.job, &meter, sender), read);
        events
    }

    /// Runs it; returns the result of the run, which must complete.
    pub(super) async fn complete(&self) -> VerifyResponse {
        completed(self.run().await)
    }

    /// Runs it; returns the result of the only claim of the run, which must complete.
    pub(super) async fn only_claim(&self) -> ClaimResult {
        let [result] = <[_; 1]>::try_from(self.complete().await.results).expect("one claim");
        result
    }

    /// The models called so far, in order.
    pub(super) fn called_models(&self) -> Vec<String> {
        self.chats().into_iter().map(|(model, _)| model).collect()
    }

    pub(super) fn chats(&self) -> Vec<(String, Chat)> {
        self.models.chats.locked().clone()
    }
}

/// The result of a run that must have completed.
pub(super) fn completed(mut events: Vec<EventResult>) -> VerifyResponse {
    match events.pop() {
        Some(Ok(Event::Completed(response))) => *response,
        other => panic!("not completed: {other:?}"),
    }
}

pub(super) fn meter() -> Meter {
    let clock = Clock::manual(Time::from_unix_ms(0));
    let store = Store::in_memory(clock.now()).expect("a store");
    let account = Account {
        request_id: "ver_1".into(),
        app_id: "".into(),
        key_id: "".into(),
        service: Service::Verify,
        budget: Budget::default(),
        trace: crate::traces::Parent::default(),
        labels: None,
    };
    Meter::new(account, Accounting::new(Ledger::new(store), clock))
}

/// An extraction of this many claims; of claim `N`, `yes N` is the claimed answer and `no N` a rival.
pub(super) fn extraction(claims: usize) -> String {
    let claim = |n: usize| {
        json!({
            "quote": format!("Claim number {n} is, as everybody says, yes {n}."),
            "claim": format!("Claim number {n} is, as everybody says, yes {n}."),
            "question": format!("What is claim {n}?"),
            "claimed_answer": format!("yes {n}"),
            "rivals": [format!("no {n}"), format!("maybe {n}"), format!("never {n}")],
        })
    };
    let claims: Vec<Value> = (0..claims).map(claim).collect();
    json!({"claims": claims, "skipped": [{"quote": "How nice it is.", "reason": "opinion"}]}).to_string()
}

/// The statement of which [`extraction`] is the extraction.
pub(super) fn statement(claims: usize) -> String {
    let claims: Vec<String> =
        (0..claims).map(|n| format!("Claim number {n} is, as everybody says, yes {n}. ")).collect();
    claims.concat() + "How nice it is."
}

/// The names of events, see [`name`].
pub(super) fn names(events: &[EventResult]) -> Vec<&'static str> {
    events.iter().map(name).collect()
}

/// The name of an event; `error` for an error.
pub(super) fn name(event: &EventResult) -> &'static str {
    event.as_ref().map_or("error", Event::name)
}

/// Whether this ends a run.
pub(super) fn is_terminal(event: &EventResult) -> bool {
    event.as_ref().map_or(true, Event::is_terminal)
}
