//! Models that limit the rate of their calls: no vote is lost while there is time, and nobody is hammered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::support::{Call, Reply, Scenario, completed, extraction};
use crate::api::verify::{Assessment, ReasonCode, VerifyResponse};
use crate::inference::Failure;
use crate::verify::Error;

/// When calls to `a/1` arrived, in paused time.
#[derive(Clone)]
struct Arrivals {
    since: Instant,
    times: Arc<Mutex<Vec<Duration>>>,
}

impl Arrivals {
    fn new() -> Self {
        Self { since: Instant::now(), times: Arc::default() }
    }

    /// Notes a call; returns how many there were before.
    fn note(&self) -> usize {
        let mut times = self.times.lock().unwrap();
        times.push(self.since.elapsed());
        times.len() - 1
    }

    fn times(&self) -> Vec<Duration> {
        self.times.lock().unwrap().clone()
    }

    /// The times in seconds; a timer may be a millisecond late.
    fn seconds(&self) -> Vec<u128> {
        self.times().iter().map(|time| (time.as_millis().saturating_sub(2)).div_ceil(1000)).collect()
    }

    /// The shortest time between two calls after the first `burst` ones.
    fn shortest_space(&self, burst: usize) -> Duration {
        let times = self.times();
        times[burst..].windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().unwrap_or(Duration::MAX)
    }
}

fn limited(retry_after: Option<u64>) -> Reply {
    Reply::Fail(Failure::RateLimited { retry_after: retry_after.map(Duration::from_secs) })
}

fn agree(call: &Call<'_>) -> Reply {
    call.choose(&call.question().replace("What is claim", "yes").replace('?', ""))
}

/// A scenario without standby models in which `a/1` replies like this, and the others agree with every claim. The
/// number is that of the calls to it before.
fn with_model(
    claims: usize,
    arrivals: &Arrivals,
    reply: impl Fn(&Call<'_>, usize) -> Reply + Send + Sync + 'static,
) -> Scenario {
    let arrivals = arrivals.clone();
    let mut scenario = Scenario::with_claims(claims, move |call| match call.model {
        "a/1" => reply(call, arrivals.note()),
        _ => agree(call),
    });
    scenario.settings.general.standby.clear();
    scenario
}

/// Like this, with a model that admits one call a second and takes `latency` for an answer.
fn one_a_second(claims: usize, arrivals: &Arrivals, latency: Duration, retry_after: Option<u64>) -> Scenario {
    let admitted = Mutex::new(None::<Instant>);
    with_model(claims, arrivals, move |call, _| {
        let (now, mut last) = (Instant::now(), admitted.lock().unwrap());
        if last.is_some_and(|last| now - last < Duration::from_secs(1)) {
            return Reply::After(latency.min(Duration::from_millis(100)), Box::new(limited(retry_after)));
        }
        *last = Some(now);
        Reply::After(latency, Box::new(agree(call)))
    })
}

fn votes(response: &VerifyResponse) -> usize {
    response.results.iter().map(|result| result.model_answers.len()).sum()
}

#[tokio::test(start_paused = true)]
async fn of_a_model_of_one_call_a_second_no_vote_is_lost_and_few_calls_are_in_vain() {
    // Calls that take time are all under way before the first is refused.
    for (latency, burst) in [(0, 2), (100, 20), (5_000, 20)] {
        for retry_after in [None, Some(1)] {
            let arrivals = Arrivals::new();
            let scenario = one_a_second(20, &arrivals, Duration::from_millis(latency), retry_after);
            let response = scenario.complete().await;
            assert_eq!(votes(&response), 60, "{latency} {retry_after:?}");
            let calls = arrivals.times().len();
            let in_vain = calls - burst - 19;
            assert!(in_vain <= 3, "{latency} {retry_after:?}: {:?}", arrivals.times());
            assert!(latency > 0 || calls < 40);
            assert!(arrivals.shortest_space(burst) >= Duration::from_millis(499), "{:?}", arrivals.times());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_verifications_share_the_pace() {
    let arrivals = Arrivals::new();
    let scenario = one_a_second(10, &arrivals, Duration::from_millis(100), None);
    let verifier = scenario.verifier();
    let (one, two) = tokio::join!(scenario.run_with(&verifier), scenario.run_with(&verifier));
    assert_eq!(votes(&completed(one)) + votes(&completed(two)), 60);
    assert!(arrivals.times().len() <= 20 + 19 + 3, "{:?}", arrivals.times());
    assert!(arrivals.shortest_space(20) >= Duration::from_millis(499), "{:?}", arrivals.times());

    // What the first verification has found out spares the second the refusals.
    let arrivals = Arrivals::new();
    let scenario = with_model(3, &arrivals, |call, n| if n == 0 { limited(Some(9)) } else { agree(call) });
    let verifier = scenario.verifier();
    let late = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        scenario.run_with(&verifier).await
    };
    let (one, two) = tokio::join!(scenario.run_with(&verifier), late);
    assert_eq!(votes(&completed(one)) + votes(&completed(two)), 18);
    assert_eq!(arrivals.seconds()[..4], [0, 9, 10, 11]);
    assert_eq!(arrivals.times().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_provider_asks_for_is_kept_exactly() {
    let arrivals = Arrivals::new();
    let scenario = with_model(1, &arrivals, |call, n| if n == 0 { limited(Some(17)) } else { agree(call) });
    assert_eq!(votes(&scenario.complete().await), 3);
    let times = arrivals.times();
    assert_eq!(times.len(), 2);
    let late = times[1].checked_sub(Duration::from_secs(17)).expect("not too early");
    assert!(late <= Duration::from_millis(1), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_ends_the_call_at_once() {
    for latency in [0, 100] {
        let arrivals = Arrivals::new();
        let scenario = with_model(20, &arrivals, move |_, _| {
            Reply::After(Duration::from_millis(latency), Box::new(limited(Some(121))))
        });
        let response = scenario.complete().await;
        assert!(arrivals.since.elapsed() < Duration::from_secs(1));
        assert_eq!(arrivals.times().len(), if latency == 0 { 1 } else { 20 });
        for result in &response.results {
            assert_eq!((result.assessment, result.model_errors.len()), (Assessment::True, 1));
            assert_eq!(result.model_errors[0].code, "rate_limited");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_absurd_wait_costs_the_vote_and_nothing_else() {
    for seconds in [86_400, u64::MAX / 2, u64::MAX] {
        let arrivals = Arrivals::new();
        let scenario = with_model(2, &arrivals, move |_, _| limited(Some(seconds)));
        let response = scenario.complete().await;
        assert!(arrivals.since.elapsed() < Duration::from_secs(1));
        for result in &response.results {
            assert_eq!(result.model_errors[0].code, "rate_limited");
        }
    }
}

/// Those that were given up stand before it in the line.
#[tokio::test(start_paused = true)]
async fn a_vote_that_is_still_needed_does_not_wait_for_those_that_are_not() {
    let arrivals = Arrivals::new();
    let since = arrivals.since;
    let scenario = with_model(20, &arrivals, move |call, _| {
        if since.elapsed() < Duration::from_secs(40) { limited(None) } else { agree(call) }
    });
    let (agreeing, settings) = (Arc::clone(&scenario.models), scenario.settings.clone());
    let mut scenario = Scenario::with_claims(20, move |call| match call.model {
        "b/1" if call.question().contains("19") => call.choose("Cannot be determined"),
        _ => agreeing.reply(call),
    });
    scenario.settings = settings;
    let response = scenario.complete().await;
    let votes: Vec<usize> = response.results.iter().map(|result| result.model_answers.len()).collect();
    assert_eq!((&votes[..19], votes[19]), ([2; 19].as_slice(), 3));
    // Pauses of 1, 2, 4 and 8 s, up to a quarter longer.
    assert!(since.elapsed() < Duration::from_secs(50), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn those_in_line_give_up_as_soon_as_the_wait_becomes_too_long_for_them() {
    // The two calls in line wait behind that of a verification with more time.
    let arrivals = Arrivals::new();
    let mut patient = with_model(1, &arrivals, |_, n| limited(Some([5, 100][n.min(1)])));
    patient.settings.general.deadline = Duration::from_secs(200);
    let (long, waits) = (patient.verifier(), arrivals.since);
    patient.settings.general.deadline = Duration::from_secs(20);
    let short = patient.verifier().replacing(&long, |_| true);
    let run_short = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let events = patient.run_with(&short).await;
        (completed(events), waits.elapsed())
    };
    let (_, (response, ended)) = tokio::join!(patient.run_with(&long), run_short);
    assert_eq!(response.results[0].model_errors[0].code, "rate_limited");
    assert!((5..7).contains(&ended.as_secs()), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_standby_model_is_asked_instead_while_there_is_one() {
    let arrivals = Arrivals::new();
    let mut scenario = with_model(20, &arrivals, |_, _| limited(Some(1)));
    scenario.settings.general.standby = vec!["d/1".to_owned()];
    let response = scenario.complete().await;
    assert!(arrivals.since.elapsed() < Duration::from_millis(10));
    assert_eq!(arrivals.times().len(), 1, "the others know that it is of no use");
    for result in &response.results {
        let answered: Vec<_> = result.model_answers.iter().map(|answer| answer.model.as_str()).collect();
        assert_eq!(answered, ["b/1", "c/1", "d/1"]);
        assert_eq!(result.model_errors[0].code, "rate_limited");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_standby_model_is_waited_for() {
    let arrivals = Arrivals::new();
    let mut scenario =
        with_model(1, &arrivals, |call, n| if n == 0 { limited(Some(3)) } else { agree(call) });
    scenario.settings.general.panel = ["down/1", "b/1", "c/1"].map(str::to_owned).to_vec();
    scenario.settings.general.standby = vec!["a/1".to_owned()];
    let down = |call: &Call<'_>| call.model == "down/1";
    let script = Arc::clone(&scenario.models);
    let mut replaced =
        Scenario::new(
            move |call| {
                if down(call) { Reply::Fail(Failure::Unreachable) } else { script.reply(call) }
            },
        );
    replaced.settings = scenario.settings.clone();
    let result = replaced.only_claim().await;
    let answered: Vec<_> = result.model_answers.iter().map(|answer| answer.model.as_str()).collect();
    assert_eq!(answered, ["b/1", "c/1", "a/1"]);
    assert_eq!(arrivals.seconds(), [0, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_stops_refusing_is_asked_ever_less_often_until_the_deadline() {
    let arrivals = Arrivals::new();
    let mut scenario = with_model(20, &arrivals, |_, _| limited(None));
    scenario.job.min_required = 3;
    let response = scenario.complete().await;
    assert!(arrivals.since.elapsed() >= Duration::from_secs(100));
    // 1, 2 and 4 s, then 8 s each, all up to a quarter longer.
    let calls = arrivals.times().len();
    assert!((14..=18).contains(&calls), "{:?}", arrivals.times());
    for result in &response.results {
        assert_eq!(result.reason_code, Some(ReasonCode::InsufficientAnswers));
        assert_eq!(result.model_errors[0].code, "rate_limited");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_dropped_hold_up_nobody() {
    let arrivals = Arrivals::new();
    let scenario = with_model(3, &arrivals, |call, n| match n {
        0 => limited(Some(1)),
        1 => Reply::Hang,
        _ => agree(call),
    });
    let verifier = scenario.verifier();
    // One call is under way, and two wait in line.
    let cut_off = timeout(Duration::from_secs(5), scenario.run_with(&verifier)).await;
    assert!(cut_off.is_err());
    assert_eq!(arrivals.seconds(), [0, 1]);
    let before = Instant::now();
    assert_eq!(votes(&completed(scenario.run_with(&verifier).await)), 9);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", arrivals.times());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_while_it_is_paced_holds_up_the_others_no_longer_than_a_call() {
    let arrivals = Arrivals::new();
    let mut scenario = with_model(2, &arrivals, |call, n| match n {
        0 => limited(Some(1)),
        1 => Reply::After(call.time, Box::new(Reply::Fail(Failure::Timeout))),
        _ => agree(call),
    });
    scenario.job.min_required = 3;
    assert_eq!(votes(&scenario.complete().await), 5);
    assert_eq!(arrivals.seconds(), [0, 1, 31]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_their_turn_hold_no_permit() {
    let arrivals = Arrivals::new();
    let mut scenario =
        with_model(5, &arrivals, |call, n| if n == 0 { limited(Some(60)) } else { agree(call) });
    scenario.settings.max_concurrent = 1;
    scenario.job.min_required = 3;
    let (verifier, others) = (scenario.verifier(), scenario.models.clone());
    let look = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        others
            .chats
            .lock()
            .unwrap()
            .iter()
            .filter(|(model, _)| ["b/1", "c/1"].contains(&model.as_str()))
            .count()
    };
    let (events, done) = tokio::join!(scenario.run_with(&verifier), look);
    assert_eq!(done, 10);
    assert_eq!(votes(&completed(events)), 15);
}

#[tokio::test(start_paused = true)]
async fn only_rate_limits_are_waited_for() {
    for failure in [
        Failure::QuotaExhausted,
        Failure::Overloaded { retry_after: Some(Duration::from_secs(1)) },
        Failure::Unreachable,
        Failure::Paused { whole_provider: false, because: "timeout", retry_after: Duration::from_secs(1) },
    ] {
        let (arrivals, code) = (Arrivals::new(), failure.code());
        let scenario = with_model(1, &arrivals, move |_, _| Reply::Fail(failure.clone()));
        assert_eq!(scenario.only_claim().await.model_errors[0].code, code);
        assert_eq!(arrivals.times().len(), 1);
    }
    // A breaker that opened because of a rate limit says the same as the limit itself.
    let arrivals = Arrivals::new();
    let mut scenario = with_model(1, &arrivals, |call, n| match n {
        0 => {
            let retry_after = Duration::from_secs(70);
            Reply::Fail(Failure::Paused { whole_provider: false, because: "rate_limited", retry_after })
        }
        _ => agree(call),
    });
    scenario.job.min_required = 3;
    assert_eq!(votes(&scenario.complete().await), 3);
    assert_eq!(arrivals.seconds(), [0, 70]);
}

#[tokio::test(start_paused = true)]
async fn an_extractor_is_waited_for_if_there_is_no_other() {
    let run = async |fallbacks: &[&str], retry_after: u64| {
        let began = Instant::now();
        let mut scenario = Scenario::new(move |call| match (call.is_extraction(), call.model) {
            (true, "x/1") if began.elapsed() < Duration::from_secs(retry_after) => limited(Some(retry_after)),
            (true, _) => Reply::Text(extraction(1)),
            _ => call.choose("yes 0"),
        });
        scenario.settings.general.extractor_fallbacks =
            fallbacks.iter().map(|&fallback| fallback.to_owned()).collect();
        let mut events = scenario.run().await;
        (events.pop().expect("an end"), began.elapsed().as_secs(), scenario.called_models())
    };
    let (end, seconds, called) = run(&[], 60).await;
    assert!(end.is_ok());
    assert_eq!((seconds, &called[..3]), (60, ["x/1", "x/1", "a/1"].map(str::to_owned).as_slice()));

    let (end, seconds, called) = run(&["y/1"], 60).await;
    assert!(end.is_ok());
    assert_eq!((seconds, &called[..3]), (0, ["x/1", "y/1", "a/1"].map(str::to_owned).as_slice()));

    // This would leave the panel less than the time of a vote.
    let (end, seconds, _) = run(&[], 91).await;
    let failure = Failure::RateLimited { retry_after: Some(Duration::from_secs(91)) };
    assert_eq!((end, seconds), (Err(Error::Extraction { model: "x/1".to_owned(), failure }), 0));
}

/// A model that refuses for good must not hold up what the others have decided.
#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_change_the_outcome_is_waited_for_as_long_as_a_call_may_take() {
    for (disagrees, seconds, assessment) in
        [(false, 30..=30, Assessment::True), (true, 100..=120, Assessment::NoConsensus)]
    {
        let arrivals = Arrivals::new();
        let mut scenario = Scenario::with_claims(3, {
            let arrivals = arrivals.clone();
            move |call| match call.model {
                "a/1" => {
                    arrivals.note();
                    limited(None)
                }
                "b/1" if disagrees => call.choose("Cannot be determined"),
                _ => agree(call),
            }
        });
        scenario.settings.general.standby.clear();
        let response = scenario.complete().await;
        let took = arrivals.since.elapsed().as_secs();
        assert!(seconds.contains(&took), "{took}");
        for result in &response.results {
            assert_eq!(result.assessment, assessment);
            assert_eq!(result.model_errors[0].code, "rate_limited");
        }
        let calls = arrivals.times().len();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(arrivals.times().len(), calls, "nobody asks any more");
    }
}
