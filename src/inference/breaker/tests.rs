//! The machine step by step and by chance, and the table that keeps several of them.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const BASE: Duration = Duration::from_secs(10);
const AFTER_THREE: Threshold = Threshold { failures: 3, pause: BASE };
const OVERLOADED: Failure = Failure::Overloaded { retry_after: None };

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A call that fails, and what its provider asks for.
fn fail(breaker: &mut Breaker, now: Instant, wait: Option<Duration>) -> Option<Change> {
    let is_probe = breaker.way(now) == Way::Probe;
    breaker.probe();
    breaker.settle(Verdict::Against, is_probe, AFTER_THREE, Some(("cut", wait)), now)
}

/// A breaker that has just opened.
fn opened(now: Instant) -> Breaker {
    let mut breaker = Breaker::default();
    for _ in 0..3 {
        fail(&mut breaker, now, None);
    }
    assert_eq!(breaker.way(now), Way::Barred(BASE));
    breaker
}

#[test]
fn only_failures_in_a_row_open() {
    let (now, mut breaker) = (Instant::now(), Breaker::default());
    for _ in 0..5 {
        assert_eq!(fail(&mut breaker, now, None), None);
        assert_eq!(fail(&mut breaker, now, None), None);
        assert_eq!(breaker.settle(Verdict::Neither, false, AFTER_THREE, None, now), None);
        assert!(!breaker.is_clean());
        assert_eq!(breaker.settle(Verdict::For, false, AFTER_THREE, None, now), None);
        assert!(breaker.is_clean());
    }
    fail(&mut breaker, now, None);
    fail(&mut breaker, now, None);
    assert_eq!(fail(&mut breaker, now, None), Some(Change::Opened { failures: 3, pause: BASE }));
}

#[test]
fn pauses_double_up_to_the_longest_and_a_success_forgets_them() {
    let mut now = Instant::now();
    let mut breaker = opened(now);
    let mut pause = BASE;
    for expected in [20, 40, 80, 160, 300, 300] {
        assert_eq!(breaker.way(now + pause - Duration::from_nanos(1)), Way::Barred(Duration::from_nanos(1)));
        now += pause;
        let Some(Change::Opened { pause: next, .. }) = fail(&mut breaker, now, None) else {
            panic!("it did not open again");
        };
        assert_eq!(next, seconds(expected));
        pause = next;
    }
    now += pause;
    breaker.probe();
    assert_eq!(breaker.settle(Verdict::For, true, AFTER_THREE, None, now), Some(Change::Closed));
    assert_eq!(breaker, Breaker::default());
}

#[test]
fn one_that_is_turned_off_does_not_pause_again() {
    const NEVER: Threshold = Threshold { failures: 0, pause: BASE };
    let now = Instant::now();
    let mut breaker = opened(now);
    assert_eq!(breaker.way(now + BASE), Way::Probe);
    breaker.probe();
    let change = breaker.settle(Verdict::Against, true, NEVER, Some(("cut", None)), now + BASE);
    assert_eq!(change, Some(Change::Closed));
    assert_eq!(breaker.way(now + BASE), Way::Free);
    for _ in 0..9 {
        assert_eq!(breaker.settle(Verdict::Against, false, NEVER, None, now + BASE), None);
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
        assert_eq!(breaker.way(now), Way::Barred(seconds(expected)));
        // What was asked for once is not doubled.
        let Some(Change::Opened { pause, .. }) = fail(&mut breaker, now + seconds(expected), None) else {
            panic!("it did not open again");
        };
        assert_eq!(pause, seconds(20));
    }
}

#[test]
fn calls_from_before_have_no_weight_while_it_is_open() {
    let now = Instant::now();
    let mut breaker = opened(now);
    for verdict in [Verdict::For, Verdict::Against, Verdict::Neither] {
        assert_eq!(breaker.settle(verdict, false, AFTER_THREE, None, now), None);
        assert_eq!(breaker.way(now), Way::Barred(BASE));
    }
    breaker.probe();
    assert_eq!(breaker.settle(Verdict::For, false, AFTER_THREE, None, now), None);
    assert_eq!(breaker.way(now + BASE), Way::Barred(Duration::ZERO));
}

#[test]
fn without_a_threshold_nothing_is_remembered() {
    let (now, mut breaker) = (Instant::now(), Breaker::default());
    let off = Threshold { failures: 0, pause: BASE };
    for _ in 0..100 {
        assert_eq!(breaker.settle(Verdict::Against, false, off, Some(("cut", None)), now), None);
        assert!(breaker.is_clean());
    }
}

#[test]
fn what_speaks_against_whom() {
    use Verdict::{Against, For, Neither};
    let limited = |wait: Option<u64>| Failure::RateLimited { retry_after: wait.map(seconds) };
    let unsupported = Failure::Unsupported { param: String::new(), message: String::new() };
    for (failure, model, provider) in [
        (OVERLOADED, Against, For),
        (Failure::Broken { status: 500 }, Against, For),
        (Failure::Malformed, Against, For),
        (Failure::NoAnswer, Neither, For),
        (Failure::TooLarge { bytes: 9_000_000 }, Neither, For),
        (Failure::Cut, Against, For),
        (Failure::Timeout, Against, Neither),
        (Failure::Unauthorized, Against, For),
        (Failure::QuotaExhausted, Against, For),
        (Failure::Unreachable, Neither, Against),
        (Failure::NoDescriptors, Neither, Neither),
        (limited(None), Neither, For),
        (limited(Some(60)), Neither, For),
        (limited(Some(61)), Against, For),
        (Failure::Refused, For, For),
        (Failure::rejected(None, "no"), Neither, For),
        (Failure::ContextOverflow, Neither, For),
        (Failure::UnknownModel, Neither, For),
        (unsupported, Neither, Neither),
    ] {
        assert_eq!((of_model(&failure), of_provider(&failure)), (model, provider), "{failure:?}");
    }
}

/// One thing that happens to a breaker.
#[derive(Clone, Debug)]
enum Happening {
    Passes(u64),
    Begins,
    Ends(usize, Verdict),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let verdict = prop_oneof![Just(Verdict::For), Just(Verdict::Against), Just(Verdict::Neither)];
    let verdict = prop_oneof![verdict, Just(Verdict::Against)];
    prop::collection::vec(
        prop_oneof![
            (0_u64..400).prop_map(Happening::Passes),
            Just(Happening::Begins),
            Just(Happening::Begins),
            (any::<usize>(), verdict).prop_map(|(which, verdict)| Happening::Ends(which, verdict)),
        ],
        0..200,
    )
}

proptest! {
    #[test]
    fn whatever_happens_one_call_probes_at_a_time_and_pauses_are_kept(
        happenings in happenings(),
        failures in 0_u32..5,
        pause in 1_u64..400,
    ) {
        let threshold = Threshold { failures, pause: seconds(pause) };
        let mut now = Instant::now();
        let mut breaker = Breaker::default();
        // Calls under way, by whether they probe.
        let mut calls: Vec<bool> = Vec::new();
        // As told when it last opened; `None` while it is closed.
        let mut paused_until: Option<Instant> = None;
        let mut in_a_row = 0;
        for happening in happenings {
            match happening {
                Happening::Passes(span) => now += seconds(span),
                Happening::Begins => match breaker.way(now) {
                    Way::Free => {
                        prop_assert_eq!(paused_until, None);
                        calls.push(false);
                    }
                    Way::Probe => {
                        prop_assert!(paused_until.is_some_and(|until| until <= now));
                        prop_assert!(!calls.contains(&true), "two probes at once");
                        breaker.probe();
                        calls.push(true);
                    }
                    Way::Barred(wait) => {
                        prop_assert!(wait <= MAX_BREAKER_PAUSE);
                        prop_assert!(calls.contains(&true) || paused_until == Some(now + wait));
                    }
                },
                Happening::Ends(which, verdict) if !calls.is_empty() => {
                    let is_probe = calls.swap_remove(which % calls.len());
                    let counts = paused_until.is_none() || is_probe;
                    let told = (verdict == Verdict::Against).then_some(("cut", None));
                    match breaker.settle(verdict, is_probe, threshold, told, now) {
                        Some(Change::Opened { pause, .. }) => {
                            prop_assert!(counts && verdict == Verdict::Against && failures > 0);
                            prop_assert!(is_probe || in_a_row + 1 == failures);
                            prop_assert!(pause >= threshold.pause.min(MAX_BREAKER_PAUSE));
                            prop_assert!(pause <= MAX_BREAKER_PAUSE);
                            paused_until = Some(now + pause);
                            in_a_row = 0;
                        }
                        Some(Change::Closed) => {
                            prop_assert!(is_probe && verdict == Verdict::For);
                            paused_until = None;
                            in_a_row = 0;
                        }
                        None if counts && !is_probe => match verdict {
                            Verdict::For => in_a_row = 0,
                            Verdict::Against => in_a_row += 1,
                            Verdict::Neither => {}
                        },
                        None => prop_assert!(!is_probe || verdict == Verdict::Neither),
                    }
                    prop_assert!(failures == 0 || in_a_row < failures);
                }
                Happening::Ends(..) => {}
            }
        }
    }
}

fn table() -> Arc<Table> {
    Arc::new(Table::new("acme".to_owned(), AFTER_THREE))
}

fn enter<'a>(table: &Arc<Table>, model: &'a str, now: Instant) -> Result<Ticket<'a>, Failure> {
    table.enter(model, AFTER_THREE, Span { asked: now, deadline: now + seconds(60) }, now)
}

fn fail_three_times(table: &Arc<Table>, model: &str, failure: &Failure, now: Instant) {
    (0..3).for_each(|_| enter(table, model, now).unwrap().failed(failure, now));
}

fn reported(table: &Table, now: Instant) -> Vec<(Option<String>, BreakerState)> {
    table.report(now).into_iter().map(|report| (report.model, report.state)).collect()
}

fn of(model: &str, state: BreakerState) -> (Option<String>, BreakerState) {
    (Some(model.to_owned()), state)
}

#[test]
fn a_model_is_paused_alone_and_an_unreachable_provider_whole() {
    let (table, start) = (table(), Instant::now());
    fail_three_times(&table, "m", &OVERLOADED, start);
    let paused = Failure::Paused { whole_provider: false, because: "overloaded", retry_after: BASE };
    assert_eq!(table.refusal("m", start), Some(paused.clone()));
    assert_eq!(enter(&table, "m", start).err(), Some(paused));
    assert_eq!(reported(&table, start), [of("m", BreakerState::Open)]);
    let later = start + seconds(4);
    fail_three_times(&table, "n", &Failure::Unreachable, later);
    for model in ["m", "n", "never-asked"] {
        // The longer of both pauses counts.
        let paused = Failure::Paused { whole_provider: true, because: "unreachable", retry_after: BASE };
        assert_eq!(enter(&table, model, later).err(), Some(paused), "{model}");
    }
    let end = later + BASE;
    assert_eq!(reported(&table, end), [(None, BreakerState::HalfOpen), of("m", BreakerState::HalfOpen)]);
    let probe = enter(&table, "m", end).unwrap();
    assert!(enter(&table, "m", end).is_err() && enter(&table, "n", end).is_err(), "one probe at a time");
    probe.succeeded();
    assert_eq!(reported(&table, end), []);
    assert!(enter(&table, "n", end).is_ok());
}

#[test]
fn a_probe_that_tells_nothing_makes_room_for_the_next() {
    let (table, start) = (table(), Instant::now());
    fail_three_times(&table, "m", &OVERLOADED, start);
    let end = start + BASE;
    drop(enter(&table, "m", end).unwrap());
    enter(&table, "m", end).unwrap().failed(&Failure::RateLimited { retry_after: None }, end);
    // A stream that has begun is all that a probe is for.
    let stream = enter(&table, "m", end).unwrap().under_way();
    assert!(enter(&table, "m", end).is_ok());
    assert_eq!(reported(&table, end), []);
    stream.failed(&Failure::Cut, end);
    assert_eq!(reported(&table, end), [of("m", BreakerState::Closed)]);
}

#[test]
fn time_that_others_used_up_is_not_held_against_a_model() {
    let (table, asked) = (table(), Instant::now());
    let at_once = Threshold { failures: 1, pause: BASE };
    let span = Span { asked, deadline: asked + seconds(60) };
    let enter = |waited| table.enter("m", at_once, span, asked + seconds(waited)).unwrap();
    let end = asked + seconds(60);
    enter(31).failed(&Failure::Timeout, end);
    enter(0).under_way().failed(&Failure::Timeout, end);
    assert_eq!(reported(&table, end), []);
    for (waited, lasted) in [(29, 60), (50, 59)] {
        enter(waited).failed(&Failure::Timeout, asked + seconds(lasted));
        assert_eq!(reported(&table, asked + seconds(lasted)), [of("m", BreakerState::Open)]);
        enter(100).succeeded();
    }
}

#[test]
fn a_table_is_bounded_and_keeps_what_is_paused() {
    let (table, now) = (table(), Instant::now());
    fail_three_times(&table, "paused", &OVERLOADED, now);
    for n in 0..5_000 {
        enter(&table, &format!("m{n}"), now).unwrap().failed(&Failure::Cut, now);
        if n % 500 == 0 {
            assert!(reported(&table, now).len() <= 1000);
        }
    }
    assert!(enter(&table, "paused", now).is_err());
    for n in 0..2_000 {
        fail_three_times(&table, &format!("m{n}"), &Failure::Cut, now);
    }
    assert_eq!(reported(&table, now).len(), 1000);
    assert!(enter(&table, "paused", now).is_err());
}
