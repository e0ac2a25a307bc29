//! Long calls are written down while they run, and whatever becomes of their server, they are booked once.

use std::collections::HashMap;

use super::*;
use crate::api::Service;
use crate::clock::{Clock, Time};
use crate::storage::{Store, UsageCounts, UsageQuery};
use crate::usage::{Account, Accounting, Attempt, Budget, Ledger, Meter, Purpose};

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
const OLD: Duration = Duration::from_secs(1);

fn meter(ledger: &Ledger, request: &str, clock: &Clock) -> Meter {
    let account = Account {
        request_id: request.into(),
        app_id: "app_1".into(),
        key_id: "key_1".into(),
        service: Service::Verify,
        budget: Budget::default(),
        trace: crate::traces::Parent::default(),
        labels: None,
    };
    Meter::new(account, Accounting::new(ledger.clone(), clock.clone()))
}

fn begin_at(meter: &Meter, begun: Instant) -> Attempt {
    meter.attempt("a/x", Purpose::Chat, None, begun, || None).unwrap()
}

fn begin(meter: &Meter) -> Attempt {
    begin_at(meter, Instant::now())
}

fn used(completion: u64) -> Tokens {
    Tokens::new(100, completion)
}

/// What another server books as if all had died.
fn booked_of_the_dead(store: &Store) -> Vec<AttemptRow> {
    store.let_servers_fall_silent();
    store.adopt_calls("srv_other", NOW).unwrap()
}

fn files() -> (tempfile::TempDir, Store, Clock) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    (dir, store, Clock::manual(NOW))
}

fn sums(store: &Store) -> UsageCounts {
    let day = NOW.utc_day();
    store.usage(&UsageQuery::days(day, day)).unwrap().first().map(|sum| sum.counts).unwrap_or_default()
}

#[test]
fn a_long_call_is_written_down_and_again_when_it_has_used_more() {
    let (_dir, store, clock) = files();
    let ledger = Ledger::new(store.clone());
    let mut attempt = begin(&meter(&ledger, "req_1", &clock));
    let begun = Instant::now();
    let written = || {
        ledger
            .journal()
            .lists
            .all()
            .flat_map(|list| {
                let calls = list.locked();
                let written = |call: &OpenCall| {
                    (call.written_at.load(Ordering::Relaxed) > 0).then(|| call.written.get().completion)
                };
                calls.iter().map(|(_, call)| written(call)).collect::<Vec<_>>()
            })
            .next()
            .unwrap()
    };
    attempt.set_expected(used(0));
    ledger.flush_at(begun).unwrap();
    assert_eq!(written(), None, "it may be short");
    ledger.flush_at(begun + MIN_AGE).unwrap();
    assert_eq!(written(), Some(0));
    attempt.set_expected(used(7));
    ledger.flush_at(begun + MIN_AGE).unwrap();
    assert_eq!(written(), Some(0), "not at once");
    ledger.flush_at(begun + 2 * MIN_AGE).unwrap();
    assert_eq!(written(), Some(7));

    let booked = booked_of_the_dead(&store);
    assert_eq!((booked.len(), &*booked[0].outcome), (1, INTERRUPTED));
    assert_eq!((booked[0].prompt_tokens, booked[0].completion_tokens), (100, 7));
    attempt.finish("ok", used(20));
    ledger.flush().unwrap();
    let rows = store.attempts_of("req_1").unwrap();
    assert_eq!((rows.len(), &*rows[0].outcome, rows[0].completion_tokens), (1, "ok", 20));
    assert_eq!((sums(&store).attempts, sums(&store).completion_tokens), (1, 20));
}

#[test]
fn short_calls_and_calls_that_have_ended_leave_nothing() {
    let (_dir, store, clock) = files();
    let ledger = Ledger::new(store.clone());
    let (one, two) = (begin(&meter(&ledger, "req_1", &clock)), begin(&meter(&ledger, "req_2", &clock)));
    one.finish("ok", used(1));
    ledger.flush_at(Instant::now() + OLD).unwrap();
    drop(two);
    ledger.flush_at(Instant::now() + OLD).unwrap();
    assert_eq!(booked_of_the_dead(&store), []);
    assert_eq!(sums(&store).attempts, 2);
    assert!(ledger.journal().lists.all().all(|list| list.locked().is_empty()));
}

#[test]
fn a_call_that_ends_while_it_is_written_down_is_booked_once() {
    let (_dir, store, clock) = files();
    let ledger = Ledger::new(store.clone());
    let attempt = begin(&meter(&ledger, "req_1", &clock));
    let due = ledger.journal().due(Instant::now() + OLD);
    attempt.finish("ok", used(1));
    store.add_usage(&[], &ledger.journal().rows(&due)).unwrap();
    ledger.flush().unwrap();
    assert_eq!(booked_of_the_dead(&store), []);
    assert_eq!(sums(&store).attempts, 1);
}

#[test]
fn a_call_that_uses_nothing_more_shows_that_its_server_lives() {
    let (_dir, store, clock) = files();
    let ledger = Ledger::new(store.clone());
    let _attempt = begin(&meter(&ledger, "req_1", &clock));
    let begun = Instant::now();
    let version = || ledger.journal().written_at.lock().unwrap().unwrap();
    ledger.flush_at(begun + OLD).unwrap();
    let first = version();
    ledger.flush_at(begun + OLD + SIGN_OF_LIFE / 2).unwrap();
    assert_eq!(version(), first, "nothing is to be said");
    clock.advance(SIGN_OF_LIFE);
    ledger.flush_at(begun + OLD + SIGN_OF_LIFE).unwrap();
    assert!(version() > first);
    assert_eq!(store.adopt_calls("srv_other", NOW.plus(Duration::from_millis(5500))).unwrap(), []);
}

#[test]
fn a_booked_call_that_uses_nothing_more_shows_that_its_server_lives() {
    let (_dir, store, clock) = files();
    let ledger = Ledger::new(store.clone());
    let begun = Instant::now();
    let _old = begin_at(&meter(&ledger, "req_1", &clock), begun);
    ledger.flush_at(begun + OLD).unwrap();
    assert_eq!(booked_of_the_dead(&store).len(), 1);
    // Calls are listed in the order they began in, and the first is what a sign of life writes.
    let _new = begin_at(&meter(&ledger, "req_2", &clock), begun);
    for second in 1..=8 {
        clock.advance(SIGN_OF_LIFE);
        ledger.flush_at(begun + OLD + SIGN_OF_LIFE * second).unwrap();
        assert_eq!(store.adopt_calls("srv_other", clock.now()).unwrap(), []);
    }
}

#[test]
fn a_write_that_fails_is_made_up_for() {
    let (dir, store, clock) = files();
    let ledger = Ledger::new(store.clone());
    let attempt = begin(&meter(&ledger, "req_1", &clock));
    let breaker = rusqlite::Connection::open(dir.path().join("ledger.db")).unwrap();
    breaker.execute_batch("ALTER TABLE calls_under_way RENAME TO hidden").unwrap();
    assert!(ledger.flush_at(Instant::now() + OLD).is_err());
    breaker.execute_batch("ALTER TABLE hidden RENAME TO calls_under_way").unwrap();
    ledger.flush_at(Instant::now() + OLD).unwrap();
    drop(attempt);
    ledger.flush().unwrap();
    assert_eq!(booked_of_the_dead(&store), []);
    assert_eq!(sums(&store).attempts, 1);
}

/// Random numbers, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Whatever servers do and seem to do, and whenever they die: a call is booked once, with all that was used if its
/// server lived, a request is counted once, and sums are those of the attempts.
#[test]
fn whoever_dies_or_seems_to_nothing_is_booked_twice() {
    for seed in 0..40 {
        one_history(Dice(seed));
    }
}

fn one_history(mut dice: Dice) {
    let (store, clock) = (Store::in_memory(NOW).unwrap(), Clock::manual(NOW));
    let ledgers: Vec<_> = (0..3).map(|_| Ledger::new(store.clone())).collect();
    let mut requests: Vec<(usize, String, Meter)> = Vec::new();
    let mut running: Vec<(usize, Attempt)> = Vec::new();
    let mut begun: HashMap<String, usize> = HashMap::new();
    let start = Instant::now();
    for step in 0..120_u32 {
        let later = start + OLD * (step + 1);
        match dice.below(8) {
            0 => {
                let server = dice.below(ledgers.len());
                let name = format!("req_{server}_{step}");
                let meter = meter(&ledgers[server], &name, &clock);
                requests.push((server, name, meter));
            }
            1 | 2 if !requests.is_empty() => {
                let (server, name, meter) = &requests[dice.below(requests.len())];
                *begun.entry(name.clone()).or_default() += 1;
                // Some are short: they are never seen by a flush.
                let age = if dice.below(3) == 0 { OLD * 1000 } else { Duration::ZERO };
                running.push((*server, begin_at(meter, start + age)));
            }
            3 if !running.is_empty() => {
                let place = dice.below(running.len());
                running[place].1.set_expected(used(u64::from(step)));
            }
            4 | 5 if !running.is_empty() => {
                let (_, attempt) = running.swap_remove(dice.below(running.len()));
                let completion = dice.below(100) as u64;
                attempt.finish("ok", used(completion));
            }
            6 => ledgers[dice.below(ledgers.len())].flush_at(later).unwrap(),
            _ => {
                let who = &ledgers[dice.below(ledgers.len())];
                store.let_servers_fall_silent();
                who.adopt(NOW).unwrap();
            }
        }
    }
    // The first dies, and the others end in order.
    let (dead, alive): (Vec<_>, Vec<_>) = running.into_iter().partition(|(server, _)| *server == 0);
    for (_, attempt) in alive {
        attempt.finish("ok", used(1));
    }
    for ledger in &ledgers[1..] {
        ledger.flush().unwrap();
    }
    booked_of_the_dead(&store);
    let mut of_all = UsageCounts::default();
    for (server, name, meter) in &requests {
        let rows = store.attempts_of(name).unwrap();
        let count = |is: fn(&AttemptRow) -> bool| rows.iter().filter(|row| is(row)).count();
        let firsts = (count(|row| row.is_first), count(|row| row.is_first_of_model));
        let once = usize::from(!rows.is_empty());
        if *server == 0 {
            assert!(firsts.0 <= once && firsts.1 <= once);
            assert!(rows.len() <= begun.get(name).copied().unwrap_or(0));
        } else {
            assert_eq!(firsts, (once, once));
            assert_eq!(rows.len(), usize::try_from(meter.sum().attempts).unwrap());
            assert_eq!(count(|row| &*row.outcome != "ok"), 0);
        }
        for row in &rows {
            of_all.attempts += 1;
            of_all.requests += u64::from(row.is_first);
            of_all.completion_tokens += row.completion_tokens;
        }
    }
    let counts = sums(&store);
    assert_eq!(
        (counts.attempts, counts.requests, counts.completion_tokens, counts.errors),
        (of_all.attempts, of_all.requests, of_all.completion_tokens, 0)
    );
    drop(dead);
}
