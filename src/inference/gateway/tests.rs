//! Calls with retries, deadlines and accounting, to a scripted provider over real sockets.

use std::time::Duration;

use super::*;
use crate::api::Service;
use crate::clock::Time;
use crate::metrics::Readings;
use crate::providers::scripted::{Scripted, Step, completion, response};
use crate::providers::{Effort, Kind, Message, ModelSettings, Role, Settings};
use crate::storage::Store;
use crate::usage::{Account, Accounting, Budget, Ledger, ModelTotal};

/// A dollar for a million prompt tokens, two for a million completion tokens.
const PRICE: Price = Price::new(NanoUsd(1_000_000_000), NanoUsd(2_000_000_000));
const FREE: Price = Price::new(NanoUsd(0), NanoUsd(0));

fn gateway(base_url: &str, change: impl FnOnce(&mut Settings)) -> Gateway {
    let mut settings = Settings::new("acme", Kind::OpenAi, base_url);
    let priced = ModelSettings { price: Some(PRICE), ..ModelSettings::default() };
    settings.models.insert("m/1".to_owned(), priced);
    change(&mut settings);
    let sandbox = Settings::new("sandbox", Kind::Sandbox, "");
    Gateway::new(vec![settings, sandbox], Clock::system()).unwrap()
}

fn meter() -> Meter {
    meter_of("", None, accounting())
}

fn accounting() -> Arc<Accounting> {
    let store = Store::in_memory(Time::from_unix_ms(0)).unwrap();
    Accounting::new(Ledger::new(store), Clock::system())
}

fn meter_of(key_id: &str, budget: Option<NanoUsd>, accounting: Arc<Accounting>) -> Meter {
    let account = Account {
        request_id: "req_1".into(),
        app_id: "".into(),
        key_id: key_id.into(),
        service: Service::Verify,
        budget: Budget { key: budget, ..Budget::default() },
        trace: crate::traces::Parent::default(),
        labels: None,
    };
    Meter::new(account, accounting)
}

/// A prompt with an estimate of 14 tokens.
fn chat() -> Chat {
    let content = "x".repeat(40);
    let messages = vec![Message { role: Role::User, content: content.into() }];
    Chat { messages, temperature: None, max_tokens: None, schema: None, effort: Effort::Lowest }
}

async fn ask(gateway: &Gateway, meter: &Meter, timeout: Duration) -> Result<String, Failure> {
    let deadline = Instant::now() + timeout;
    let answer = gateway.ask("acme/m/1", &chat().into(), Purpose::Verification, meter, deadline).await;
    answer.map(|answer| answer.text)
}

fn total(prompt_tokens: u64, completion_tokens: u64) -> Vec<ModelTotal> {
    vec![ModelTotal {
        model: "acme/m/1".into(),
        purpose: Purpose::Verification,
        prompt_tokens,
        completion_tokens,
        cost: Some(PRICE.of(Tokens::new(prompt_tokens, completion_tokens))),
    }]
}

const MINUTE: Duration = Duration::from_mins(1);

/// Thousands of calls may wait at once. Above 896 bytes, each would take the allocator's size class of 1,024 or 1,280.
#[test]
fn the_future_of_a_call_is_small() {
    let (gateway, meter, chat) = (gateway("http://localhost", |_| {}), meter(), chat().into());
    let call = gateway.ask("acme/m/1", &chat, Purpose::Verification, &meter, Instant::now());
    let size = size_of_val(&call);
    assert!(size <= 896, "{size}");
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_respected() {
    let server = Scripted::start(vec![response(503, "retry-after-ms: 150\r\n", ""), completion("4")]).await;
    let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
    let began = Instant::now();
    assert_eq!(ask(&gateway, &meter, MINUTE).await, Ok("4".to_owned()));
    assert!(began.elapsed() >= Duration::from_millis(150));
    assert_eq!(meter.totals(), total(20, 5));
}

#[tokio::test]
async fn a_rate_limit_is_left_to_the_caller() {
    let server = Scripted::start(vec![response(429, "retry-after-ms: 150\r\n", ""), completion("4")]).await;
    let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
    let retry_after = Some(Duration::from_millis(150));
    assert_eq!(ask(&gateway, &meter, MINUTE).await, Err(Failure::RateLimited { retry_after }));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn retries_are_limited() {
    let busy = || response(503, "", "");
    let server = Scripted::start(vec![busy(), busy(), busy(), completion("4")]).await;
    let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
    let failure = ask(&gateway, &meter, MINUTE).await.unwrap_err();
    assert_eq!(failure, Failure::Overloaded { retry_after: None });
    assert_eq!(server.requests().len(), 3);
    assert_eq!(meter.totals(), total(0, 0));
}

#[tokio::test]
async fn what_no_retry_fixes_is_called_once() {
    for (status, failure) in
        [(401, Failure::Unauthorized), (404, Failure::UnknownModel), (402, Failure::QuotaExhausted)]
    {
        let server = Scripted::start(vec![response(status, "", ""), completion("4")]).await;
        let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
        assert_eq!(ask(&gateway, &meter, MINUTE).await, Err(failure));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_or_a_minute_fails_at_once() {
    for (wait, timeout) in [("30", Duration::from_secs(5)), ("61", 10 * MINUTE)] {
        let header = format!("retry-after: {wait}\r\n");
        let server = Scripted::start(vec![response(503, &header, ""), completion("4")]).await;
        let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
        let began = Instant::now();
        let failure = ask(&gateway, &meter, timeout).await.unwrap_err();
        assert_eq!(failure.code(), "overloaded");
        assert!(began.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test]
async fn the_deadline_ends_a_call_and_its_prompt_is_booked() {
    let server = Scripted::start(vec![vec![Step::Hang]]).await;
    let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
    let failure = ask(&gateway, &meter, Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(failure, Failure::Timeout);
    assert_eq!(meter.totals(), total(14, 0));
}

#[tokio::test]
async fn a_cut_answer_is_booked_and_retried() {
    let cut = vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec())];
    let server = Scripted::start(vec![cut, completion("4")]).await;
    let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
    assert_eq!(ask(&gateway, &meter, MINUTE).await, Ok("4".to_owned()));
    assert_eq!(meter.totals(), total(14 + 20, 5));
}

#[tokio::test]
async fn a_retry_that_the_budget_does_not_cover_is_not_made() {
    let cut = vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec())];
    let server = Scripted::start(vec![cut, completion("4")]).await;
    let gateway = gateway(&server.base_url, |_| {});
    let once = gateway.max_cost("acme/m/1", &chat()).unwrap();
    let accounting = accounting();
    let meter = meter_of("key_1", Some(once), accounting.clone());
    assert_eq!(ask(&gateway, &meter, MINUTE).await, Err(Failure::Cut));
    assert_eq!(server.requests().len(), 1);
    let page = accounting.metrics().page(&Readings::default()).unwrap();
    assert!(!page.contains("mk_retries_total{"), "{page}");
}

#[tokio::test]
async fn usage_that_a_provider_does_not_report_is_estimated() {
    // Reasoning is charged like the answer.
    for said in ["four, I think", "<think>4?</think>"] {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"{said}"}},"finish_reason":"stop"}}]}}"#);
        let server = Scripted::start(vec![response(200, "", &body)]).await;
        let (gateway, meter) = (gateway(&server.base_url, |_| {}), meter());
        assert!(ask(&gateway, &meter, MINUTE).await.is_ok());
        assert_eq!(meter.totals(), total(14, estimate::text_tokens(said)), "{said}");
    }
}

#[tokio::test]
async fn a_retry_that_gets_no_permit_reports_the_failure_before_it() {
    let busy = response(503, "retry-after-ms: 100\r\n", "");
    let server = Scripted::start(vec![busy, vec![Step::Hang]]).await;
    let gateway = gateway(&server.base_url, |settings| settings.max_concurrent = 1);
    let meter = meter();
    let failure = tokio::select! {
        biased;
        answer = ask(&gateway, &meter, Duration::from_secs(2)) => answer.unwrap_err(),
        answer = ask(&gateway, &meter, MINUTE) => panic!("the permit is taken: {answer:?}"),
    };
    assert_eq!(failure.code(), "overloaded");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn no_more_concurrent_calls_than_configured() {
    let slow = || {
        let mut steps = vec![Step::Pause(Duration::from_millis(40))];
        steps.extend(completion("4"));
        steps
    };
    let server = Scripted::start((0..6).map(|_| slow()).collect()).await;
    let gateway = gateway(&server.base_url, |settings| settings.max_concurrent = 2);
    let meter = meter();
    let calls = (0..6).map(|_| ask(&gateway, &meter, MINUTE));
    let answers = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(server.most_at_once(), 2);
}

#[test]
fn simulated_models_may_be_given_a_price() {
    let mut sandbox = Settings::new("sandbox", Kind::Sandbox, "");
    let priced = ModelSettings { price: Some(PRICE), ..ModelSettings::default() };
    sandbox.models.insert("alpha".to_owned(), priced);
    let gateway = Gateway::new(vec![sandbox], Clock::system()).unwrap();
    let price = |id: &str| gateway.target(id).unwrap().price;
    assert_eq!((price("sandbox/alpha"), price("sandbox/beta")), (Some(PRICE), Some(FREE)));
}

#[tokio::test]
async fn identifiers_name_provider_and_model() {
    let gateway = gateway("http://127.0.0.1:9/v1", |_| {});
    let target = gateway.target("acme/some/new-model").unwrap();
    assert_eq!((target.provider.as_str(), target.sandbox, target.price), ("acme", false, None));
    assert_eq!(gateway.target("acme/m/1").unwrap().price, Some(PRICE));
    let sandbox = gateway.target("sandbox/alpha").unwrap();
    assert_eq!((sandbox.sandbox, sandbox.price), (true, Some(FREE)));
    for id in ["", "acme", "acme/", "/m", "other/m", "sandbox/omega"] {
        assert!(gateway.target(id).is_none(), "{id}");
        let deadline = Instant::now() + MINUTE;
        let answer = gateway.ask(id, &chat().into(), Purpose::Extraction, &meter(), deadline).await;
        assert_eq!(answer, Err(Failure::UnknownModel));
    }
}

#[test]
fn a_provider_name_can_be_used_once() {
    let settings = || Settings::new("acme", Kind::OpenAi, "https://api.example.com/v1");
    let error = Gateway::new(vec![settings(), settings()], Clock::system()).err().unwrap();
    assert!(error.to_string().contains("twice"), "{error}");
}
