//! Tests of the state machine, by example and at random, and of the table of breakers.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const BASE: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_mins(5);
const AFTER_THREE: Threshold = Threshold { failures: 3, pause: BASE, max_pause: LONGEST };
const OVERLOADED: Failure = Failure::Overloaded { retry_after: None };

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Makes a call that fails, with the wait that its provider asks for.
fn fail(breaker: &mut Breaker, now: Instant, wait: Option<Duration>) -> Option<Transition> {
    let is_probe = breaker.admission(now) == Admission::Probe;
    breaker.begin_probe();
    breaker.record(Evidence::Unhealthy, is_probe, AFTER_THREE, Some(("cut", wait)), now, 0.0)
}

/// A breaker that has just opened.
fn opened(now: Instant) -> Breaker {
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, now, None);
    }
    assert_eq!(breaker.admission(now), Admission::Blocked(BASE));
    breaker
}

#[test]
fn only_consecutive_failures_open_a_breaker() {
    let (now, mut breaker) = (Instant::now(), Breaker::default());
    for _ in 0..5 {
        assert_eq!(fail(&mut breaker, now, None), None);
        assert_eq!(fail(&mut breaker, now, None), None);
        assert_eq!(breaker.record(Evidence::Neutral, false, AFTER_THREE, None, now, 0.0), None);
        assert!(!breaker.is_clean());
        assert_eq!(breaker.record(Evidence::Healthy, false, AFTER_THREE, None, now, 0.0), None);
        assert!(breaker.is_clean());
    }
    fail(&mut breaker, now, None);
    fail(&mut breaker, now, None);
    assert_eq!(fail(&mut breaker, now, None), Some(Transition::Opened { failures: 3, pause: BASE }));
}

#[test]
fn pauses_double_up_to_the_longest_and_a_success_resets_them() {
    let mut now = Instant::now();
    let mut breaker = opened(now);
    let mut pause = BASE;
    for expected in [20, 40, 80, 160, 300, 300] {
        assert_eq!(
            breaker.admission(now + pause - Duration::from_nanos(1)),
            Admission::Blocked(Duration::from_nanos(1))
        );
        now += pause;
        let Some(Transition::Opened { pause: next, .. }) = fail(&mut breaker, now, None) else {
            panic!("it did not open again");
        };
        assert_eq!(next, seconds(expected));
        pause = next;
    }
    now += pause;
    breaker.begin_probe();
    assert_eq!(
        breaker.record(Evidence::Healthy, true, AFTER_THREE, None, now, 0.0),
        Some(Transition::Closed)
    );
    assert_eq!(breaker, Breaker::default());
}

#[test]
fn a_pause_does_not_outlive_an_outage_by_more_than_the_longest() {
    let threshold = Threshold { failures: 1, pause: BASE, max_pause: seconds(20) };
    let (mut now, mut breaker) = (Instant::now(), Breaker::default());
    let mut paused = Vec::new();
    for (jitter, asked) in [(0.0, None), (1.0, None), (0.5, Some(seconds(86_400))), (0.0, None), (1.0, None)]
    {
        let is_probe = breaker.admission(now) == Admission::Probe;
        breaker.begin_probe();
        let failure = Some(("cut", asked));
        let opened = breaker.record(Evidence::Unhealthy, is_probe, threshold, failure, now, jitter);
        let Some(Transition::Opened { pause, .. }) = opened else { panic!("it did not open") };
        paused.push(pause.as_millis());
        now += pause;
    }
    // The third is what the provider asks for, up to the longest; a quarter of each other is left to chance.
    assert_eq!(paused, [10_000, 15_000, 20_000, 20_000, 15_000]);
    let longer_first = Threshold { failures: 1, pause: seconds(60), max_pause: seconds(20) };
    let opened = Breaker::default().record(Evidence::Unhealthy, false, longer_first, None, now, 0.0);
    assert_eq!(opened, Some(Transition::Opened { failures: 1, pause: seconds(60) }));
}

#[test]
fn a_breaker_that_is_turned_off_does_not_pause_again() {
    const NEVER: Threshold = Threshold { failures: 0, pause: BASE, max_pause: LONGEST };
    let now = Instant::now();
    let mut breaker = opened(now);
    assert_eq!(breaker.admission(now + BASE), Admission::Probe);
    breaker.begin_probe();
    let change = breaker.record(Evidence::Unhealthy, true, NEVER, Some(("cut", None)), now + BASE, 0.0);
    assert_eq!(change, Some(Transition::Closed));
    assert_eq!(breaker.admission(now + BASE), Admission::Allowed);
    for _ in 0..9 {
        assert_eq!(breaker.record(Evidence::Unhealthy, false, NEVER, None, now + BASE, 0.0), None);
    }
    assert!(breaker.is_clean());
}

#[test]
fn a_provider_may_ask_for_a_longer_pause_within_reason() {
    for (wait, expected) in [(1, 10), (30, 30), (86_400, 300)] {
        let (now, mut breaker) = (Instant::now(), Breaker::default());
        fail(&mut breaker, now, None);
        fail(&mut breaker, now, None);
        fail(&mut breaker, now, Some(seconds(wait)));
        assert_eq!(breaker.admission(now), Admission::Blocked(seconds(expected)));
        // What doubles is our own pause, not the wait that the provider asked for.
        let Some(Transition::Opened { pause, .. }) = fail(&mut breaker, now + seconds(expected), None) else {
            panic!("it did not open again");
        };
        assert_eq!(pause, seconds(20));
    }
}

#[test]
fn calls_from_before_do_not_count_while_it_is_open() {
    let now = Instant::now();
    let mut breaker = opened(now);
    for evidence in [Evidence::Healthy, Evidence::Unhealthy, Evidence::Neutral] {
        assert_eq!(breaker.record(evidence, false, AFTER_THREE, None, now, 0.0), None);
        assert_eq!(breaker.admission(now), Admission::Blocked(BASE));
    }
    breaker.begin_probe();
    assert_eq!(breaker.record(Evidence::Healthy, false, AFTER_THREE, None, now, 0.0), None);
    assert_eq!(breaker.admission(now + BASE), Admission::Blocked(Duration::ZERO));
}

#[test]
fn without_a_threshold_nothing_is_recorded() {
    let (now, mut breaker) = (Instant::now(), Breaker::default());
    let off = Threshold { failures: 0, pause: BASE, max_pause: LONGEST };
    for _ in 0..100 {
        assert_eq!(breaker.record(Evidence::Unhealthy, false, off, Some(("cut", None)), now, 0.0), None);
        assert!(breaker.is_clean());
    }
}

#[test]
fn each_failure_counts_against_whoever_could_be_at_fault() {
    use Evidence::{Healthy, Neutral, Unhealthy};
    let limited = |wait: Option<u64>| Failure::RateLimited { retry_after: wait.map(seconds) };
    let unsupported = Failure::Unsupported { param: String::new(), message: String::new() };
    for (failure, model, provider) in [
        (OVERLOADED, Unhealthy, Healthy),
        (Failure::Broken { status: 500, retry_after: None }, Unhealthy, Healthy),
        (Failure::Malformed, Unhealthy, Healthy),
        (Failure::NoAnswer, Neutral, Healthy),
        (Failure::TooLarge { bytes: 9_000_000 }, Neutral, Healthy),
        (Failure::Cut, Unhealthy, Healthy),
        (Failure::Timeout, Unhealthy, Neutral),
        (Failure::Unauthorized, Unhealthy, Healthy),
        (Failure::QuotaExhausted, Unhealthy, Healthy),
        (Failure::Unreachable, Neutral, Unhealthy),
        (Failure::NoDescriptors, Neutral, Neutral),
        (limited(None), Neutral, Healthy),
        (limited(Some(60)), Neutral, Healthy),
        (limited(Some(61)), Unhealthy, Healthy),
        (Failure::Refused, Healthy, Healthy),
        (Failure::rejected(None, "no"), Neutral, Healthy),
        (Failure::ContextOverflow { words: None }, Neutral, Healthy),
        (Failure::UnknownModel, Neutral, Healthy),
        (unsupported, Neutral, Neutral),
    ] {
        assert_eq!((model_evidence(&failure), provider_evidence(&failure)), (model, provider), "{failure:?}");
    }
}

/// Something that happens to a breaker.
#[derive(Clone, Debug)]
enum Event {
    TimePasses(u64),
    CallBegins,
    CallEnds(usize, Evidence),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let evidence = prop_oneof![Just(Evidence::Healthy), Just(Evidence::Unhealthy), Just(Evidence::Neutral)];
    let evidence = prop_oneof![evidence, Just(Evidence::Unhealthy)];
    prop::collection::vec(
        prop_oneof![
            (0_u64..400).prop_map(Event::TimePasses),
            Just(Event::CallBegins),
            Just(Event::CallBegins),
            (any::<usize>(), evidence).prop_map(|(which, evidence)| Event::CallEnds(which, evidence)),
        ],
        0..200,
    )
}

proptest! {
    #[test]
    fn whatever_happens_one_call_probes_at_a_time_and_pauses_are_respected(
        events in events(),
        failures in 0_u32..5,
        pause in 1_u64..400,
        max_pause in 1_u64..400,
        jitter in 0.0..1.0,
    ) {
        let threshold = Threshold { failures, pause: seconds(pause), max_pause: seconds(max_pause) };
        let longest = seconds(pause.max(max_pause));
        let mut now = Instant::now();
        let mut breaker = Breaker::default();
        // For each call in progress, whether it is a probe.
        let mut calls: Vec<bool> = Vec::new();
        // As reported when it last opened; `None` while it is closed.
        let mut paused_until: Option<Instant> = None;
        let mut consecutive = 0;
        for event in events {
            match event {
                Event::TimePasses(time) => now += seconds(time),
                Event::CallBegins => match breaker.admission(now) {
                    Admission::Allowed => {
                        prop_assert_eq!(paused_until, None);
                        calls.push(false);
                    }
                    Admission::Probe => {
                        prop_assert!(paused_until.is_some_and(|until| until <= now));
                        prop_assert!(!calls.contains(&true), "two probes at once");
                        breaker.begin_probe();
                        calls.push(true);
                    }
                    Admission::Blocked(wait) => {
                        prop_assert!(wait <= longest);
                        prop_assert!(calls.contains(&true) || paused_until == Some(now + wait));
                    }
                },
                Event::CallEnds(which, evidence) if !calls.is_empty() => {
                    let is_probe = calls.swap_remove(which % calls.len());
                    let counts = paused_until.is_none() || is_probe;
                    let failure = (evidence == Evidence::Unhealthy).then_some(("cut", None));
                    match breaker.record(evidence, is_probe, threshold, failure, now, jitter) {
                        Some(Transition::Opened { pause, .. }) => {
                            prop_assert!(counts && evidence == Evidence::Unhealthy && failures > 0);
                            prop_assert!(is_probe || consecutive + 1 == failures);
                            prop_assert!(pause >= threshold.pause.mul_f64(0.75) && pause <= longest);
                            paused_until = Some(now + pause);
                            consecutive = 0;
                        }
                        Some(Transition::Closed) => {
                            prop_assert!(is_probe && evidence == Evidence::Healthy);
                            paused_until = None;
                            consecutive = 0;
                        }
                        None if counts && !is_probe => match evidence {
                            Evidence::Healthy => consecutive = 0,
                            Evidence::Unhealthy => consecutive += 1,
                            Evidence::Neutral => {}
                        },
                        None => prop_assert!(!is_probe || evidence == Evidence::Neutral),
                    }
                    prop_assert!(failures == 0 || consecutive < failures);
                }
                Event::CallEnds(..) => {}
            }
        }
    }
}

fn table() -> Arc<BreakerTable> {
    Arc::new(BreakerTable::new("acme".to_owned(), AFTER_THREE))
}

fn admit<'a>(table: &Arc<BreakerTable>, model: &'a str, now: Instant) -> Result<Ticket<'a>, Failure> {
    table.admit(model, AFTER_THREE, CallTime { requested: now, deadline: now + seconds(60) }, now)
}

fn fail_three_times(table: &Arc<BreakerTable>, model: &str, failure: &Failure, now: Instant) {
    (0..3).for_each(|_| admit(table, model, now).unwrap().failed(failure, now));
}

fn reported(table: &BreakerTable, now: Instant) -> Vec<(Option<String>, BreakerState)> {
    table.report(now).into_iter().map(|report| (report.model, report.state)).collect()
}

fn model(model: &str, state: BreakerState) -> (Option<String>, BreakerState) {
    (Some(model.to_owned()), state)
}

#[test]
fn a_failing_model_is_paused_alone_and_an_unreachable_provider_as_a_whole() {
    let (table, start) = (table(), Instant::now());
    fail_three_times(&table, "m", &OVERLOADED, start);
    let paused = table.paused("m", start);
    let is_jittered = |wait: Duration| wait > BASE.mul_f64(0.74) && wait <= BASE;
    assert!(
        matches!(&paused, Some(Failure::Paused { whole_provider: false, because: "overloaded", retry_after })
            if is_jittered(*retry_after)),
        "{paused:?}"
    );
    assert_eq!(admit(&table, "m", start).err(), paused);
    assert_eq!(reported(&table, start), [model("m", BreakerState::Open)]);
    let later = start + seconds(4);
    fail_three_times(&table, "n", &Failure::Unreachable, later);
    for model in ["m", "n", "never-asked"] {
        // The longer of the two pauses counts.
        let paused = admit(&table, model, later).err();
        assert!(
            matches!(&paused, Some(Failure::Paused { whole_provider: true, because: "unreachable", retry_after })
                if is_jittered(*retry_after)),
            "{model}: {paused:?}"
        );
    }
    let end = later + BASE;
    assert_eq!(reported(&table, end), [(None, BreakerState::HalfOpen), model("m", BreakerState::HalfOpen)]);
    let probe = admit(&table, "m", end).unwrap();
    assert!(admit(&table, "m", end).is_err() && admit(&table, "n", end).is_err(), "one probe at a time");
    probe.succeeded();
    assert_eq!(reported(&table, end), []);
    assert!(admit(&table, "n", end).is_ok());
}

#[test]
fn an_inconclusive_probe_makes_way_for_the_next() {
    let (table, start) = (table(), Instant::now());
    fail_three_times(&table, "m", &OVERLOADED, start);
    let end = start + BASE;
    drop(admit(&table, "m", end).unwrap());
    admit(&table, "m", end).unwrap().failed(&Failure::RateLimited { retry_after: None }, end);
    // A probe has succeeded as soon as its stream has begun.
    let stream = admit(&table, "m", end).unwrap().into_streaming();
    assert!(admit(&table, "m", end).is_ok());
    assert_eq!(reported(&table, end), []);
    stream.failed(&Failure::Cut, end);
    assert_eq!(reported(&table, end), [model("m", BreakerState::Closed)]);
}

#[test]
fn time_that_others_used_up_does_not_count_against_a_model() {
    let (table, requested) = (table(), Instant::now());
    let at_once = Threshold { failures: 1, pause: BASE, max_pause: LONGEST };
    let time = CallTime { requested, deadline: requested + seconds(60) };
    let admit = |waited| table.admit("m", at_once, time, requested + seconds(waited)).unwrap();
    let end = requested + seconds(60);
    admit(31).failed(&Failure::Timeout, end);
    admit(0).into_streaming().failed(&Failure::Timeout, end);
    assert_eq!(reported(&table, end), []);
    for (waited, lasted) in [(29, 60), (50, 59)] {
        admit(waited).failed(&Failure::Timeout, requested + seconds(lasted));
        assert_eq!(reported(&table, requested + seconds(lasted)), [model("m", BreakerState::Open)]);
        admit(100).succeeded();
    }
}

#[test]
fn a_table_is_bounded_and_keeps_paused_models() {
    let (table, now) = (table(), Instant::now());
    fail_three_times(&table, "paused", &OVERLOADED, now);
    for n in 0..5_000 {
        admit(&table, &format!("m{n}"), now).unwrap().failed(&Failure::Cut, now);
        if n % 500 == 0 {
            assert!(reported(&table, now).len() <= 1000);
        }
    }
    assert!(admit(&table, "paused", now).is_err());
    for n in 0..2_000 {
        fail_three_times(&table, &format!("m{n}"), &Failure::Cut, now);
    }
    assert_eq!(reported(&table, now).len(), 1000);
    assert!(admit(&table, "paused", now).is_err());
}
