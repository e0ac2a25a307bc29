//! What the journal keeps of calls is booked once, whoever died or only seemed to.

use super::*;
use crate::api::Service;
use crate::money::NanoUsd;
use crate::storage::{SubjectMonth, UsageCounts, UsageQuery};

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
const DEAD: &str = "srv_dead";
const ALIVE: &str = "srv_alive";

/// A call that has used this many tokens of each kind, at a nano-dollar each, as it would be booked now.
fn call(server: &str, request: u64, number: Option<u64>, tokens: u64) -> AttemptRow {
    AttemptRow {
        at: NOW,
        request_id: format!("req_{request}").into(),
        app_id: "app_1".into(),
        key_id: "key_1".into(),
        service: Service::Inference,
        model: "a/b".into(),
        outcome: INTERRUPTED.into(),
        prompt_tokens: tokens,
        completion_tokens: tokens,
        cost: Some(NanoUsd(2 * tokens)),
        latency_ms: 1000,
        is_first: true,
        is_first_of_model: true,
        call: Some(Box::new(CallId { server: server.into(), request, number })),
    }
}

fn ended(row: &AttemptRow, outcome: &'static str) -> AttemptRow {
    AttemptRow { outcome: outcome.into(), ..row.clone() }
}

fn entry_count(store: &Store) -> i64 {
    let sql = "SELECT count(*) FROM calls_under_way WHERE attempt_id IS NULL";
    store.ledger().read(|db| db.query_row(sql, &[], |row| row.get(0))).unwrap().unwrap()
}

fn sums(store: &Store) -> UsageCounts {
    let day = NOW.utc_day();
    store.usage(&UsageQuery::days(day, day)).unwrap().first().map(|sum| sum.counts).unwrap_or_default()
}

fn spent(store: &Store) -> u64 {
    let of = SubjectMonth { subject: "key_1".to_owned(), month: NOW.utc_month() };
    store.spent(&[of]).unwrap()[0].0
}

/// The attempts of a request, without what the journal knows of them.
fn booked(store: &Store, request: u64) -> Vec<AttemptRow> {
    store.attempts_of(&format!("req_{request}")).unwrap()
}

#[test]
fn the_call_of_a_dead_server_is_booked_as_it_was_last_seen() {
    let store = Store::in_memory(NOW).unwrap();
    let first = call(DEAD, 1, Some(1), 5);
    store.add_usage(&[], std::slice::from_ref(&first)).unwrap();
    let later = NOW.plus(Duration::from_millis(2500));
    // Another call, begun later, shows how long the server has lived.
    let other = AttemptRow { at: later, request_id: "req_2".into(), ..call(DEAD, 2, Some(2), 9) };
    store.add_usage(&[], &[other]).unwrap();
    assert_eq!(store.adopt_calls(ALIVE, later).unwrap(), [], "it lives");
    store.let_servers_fall_silent();
    assert_eq!(store.adopt_calls(DEAD, later).unwrap(), [], "whoever asks lives");
    assert_eq!((sums(&store), entry_count(&store)), (UsageCounts::default(), 2));

    assert_eq!(store.adopt_calls(ALIVE, later).unwrap().len(), 2);
    assert_eq!(store.adopt_calls(ALIVE, later).unwrap(), []);
    assert_eq!(store.adopt_calls("srv_third", later).unwrap(), []);
    let expected = AttemptRow { at: later, latency_ms: 3500, call: None, ..first };
    assert_eq!(booked(&store, 1), [expected]);
    let counts = sums(&store);
    assert_eq!((counts.attempts, counts.requests, counts.errors), (2, 2, 0));
    assert_eq!((counts.prompt_tokens, counts.cost, spent(&store)), (14, NanoUsd(28), 28));
    assert_eq!(entry_count(&store), 0);
}

#[test]
fn a_call_that_ends_leaves_the_journal_with_its_row() {
    let store = Store::in_memory(NOW).unwrap();
    let (one, two) = (call(DEAD, 1, Some(1), 5), call(DEAD, 2, Some(2), 5));
    store.add_usage(&[], &[one.clone(), two]).unwrap();
    store.add_usage(&[], &[call(DEAD, 1, Some(1), 7)]).unwrap();
    assert_eq!(entry_count(&store), 2);
    store.add_attempts(&[ended(&call(DEAD, 1, Some(1), 8), "ok")]).unwrap();
    assert_eq!(entry_count(&store), 1);
    store.let_servers_fall_silent();
    assert_eq!(store.adopt_calls(ALIVE, NOW).unwrap().len(), 1);
    assert_eq!((sums(&store).prompt_tokens, booked(&store, 1).len()), (13, 1));
    assert_eq!(&*booked(&store, 1)[0].outcome, "ok");
}

#[test]
fn two_servers_that_find_a_dead_one_together_book_its_calls_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let calls: Vec<_> = (1..=50).map(|number| call(DEAD, number, Some(number), 1)).collect();
    store.add_usage(&[], &calls).unwrap();
    store.let_servers_fall_silent();
    let found: usize = std::thread::scope(|scope| {
        let adopters: Vec<_> = (0..4)
            .map(|number| {
                let store = Store::open(dir.path(), NOW).unwrap();
                scope.spawn(move || store.adopt_calls(&format!("srv_{number}"), NOW).unwrap().len())
            })
            .collect();
        adopters.into_iter().map(|adopter| adopter.join().unwrap()).sum()
    });
    assert_eq!((found, sums(&store).attempts, spent(&store)), (50, 50, 100));
}

#[test]
fn a_server_that_only_seemed_dead_replaces_what_was_booked() {
    // What the provider says may be less than what was estimated.
    for (tokens, outcome, errors) in [(9, "ok", 0), (3, "ok", 0), (0, "cut", 1)] {
        let store = Store::in_memory(NOW).unwrap();
        let begun = call(DEAD, 1, Some(1), 5);
        store.add_usage(&[], std::slice::from_ref(&begun)).unwrap();
        store.let_servers_fall_silent();
        store.adopt_calls(ALIVE, NOW).unwrap();
        // It goes on, unaware, and may be looked at again.
        store.add_usage(&[], &[call(DEAD, 1, Some(1), 6)]).unwrap();
        store.let_servers_fall_silent();
        assert_eq!(store.adopt_calls(ALIVE, NOW).unwrap(), []);
        assert_eq!(sums(&store).prompt_tokens, 5);

        let last = AttemptRow { latency_ms: 60_000, ..ended(&call(DEAD, 1, Some(1), tokens), outcome) };
        store.add_attempts(std::slice::from_ref(&last)).unwrap();
        assert_eq!(booked(&store, 1), [AttemptRow { call: None, ..last }]);
        let counts = sums(&store);
        assert_eq!((counts.attempts, counts.requests, counts.model_requests), (1, 1, 1));
        assert_eq!((counts.errors, counts.priced_attempts, counts.unpriced_attempts), (errors, 1, 0));
        assert_eq!((counts.prompt_tokens, counts.completion_tokens), (tokens, tokens));
        assert_eq!((counts.cost.0, spent(&store)), (2 * tokens, 2 * tokens));
    }
}

#[test]
fn a_model_without_a_sum_of_its_own_is_corrected_among_the_others() {
    let store = Store::in_memory(NOW).unwrap();
    let many: Vec<_> = (0..200)
        .map(|number| AttemptRow { model: format!("a/{number}").into(), call: None, ..call("", 0, None, 0) })
        .collect();
    store.add_attempts(&many).unwrap();
    store.add_usage(&[], &[call(DEAD, 1, Some(1), 5)]).unwrap();
    store.let_servers_fall_silent();
    store.adopt_calls(ALIVE, NOW).unwrap();
    store.add_attempts(&[ended(&call(DEAD, 1, Some(1), 9), "ok")]).unwrap();
    assert_eq!((sums(&store).prompt_tokens, sums(&store).cost), (9, NanoUsd(18)));
}

#[test]
fn a_request_with_several_calls_is_counted_once() {
    let store = Store::in_memory(NOW).unwrap();
    let other_model = |row: AttemptRow| AttemptRow { model: "a/c".into(), ..row };
    let panel = [
        call(DEAD, 1, Some(1), 1),
        call(DEAD, 1, Some(2), 1),
        other_model(call(DEAD, 1, Some(3), 1)),
        // Of a request whose first attempt is booked before the server dies.
        call(DEAD, 4, Some(4), 1),
        call(DEAD, 4, Some(5), 1),
    ];
    store.add_usage(&[], &panel).unwrap();
    store.add_attempts(&[ended(&call(DEAD, 4, Some(4), 1), "ok")]).unwrap();
    store.let_servers_fall_silent();
    store.adopt_calls(ALIVE, NOW).unwrap();
    let counts = sums(&store);
    assert_eq!((counts.attempts, counts.requests, counts.model_requests), (5, 2, 3));

    // The server comes back and books: one call of its own that nobody has seen, and those that were booked.
    let rows = [
        ended(&call(DEAD, 1, None, 1), "overloaded"),
        ended(&call(DEAD, 1, Some(2), 1), "ok"),
        ended(&call(DEAD, 1, Some(1), 1), "ok"),
    ];
    for row in rows {
        store.add_attempts(&[row]).unwrap();
    }
    let counts = sums(&store);
    assert_eq!((counts.attempts, counts.requests, counts.model_requests), (6, 2, 3));
    let firsts = booked(&store, 1).iter().filter(|row| row.is_first).count();
    assert_eq!((firsts, booked(&store, 1).len()), (1, 4));
}

#[test]
fn without_dead_servers_and_long_calls_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let version = store.ledger().version().unwrap();
    store.add_usage(&[], &[]).unwrap();
    assert_eq!(store.adopt_calls(ALIVE, NOW).unwrap(), []);
    assert_eq!(store.ledger().version().unwrap(), version);
}

#[test]
fn a_clock_that_was_set_back_hides_no_dead_server() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    store.add_usage(&[], &[call(DEAD, 1, Some(1), 5)]).unwrap();
    let before = NOW.minus(Duration::from_hours(1));
    assert_eq!(store.adopt_calls(ALIVE, before).unwrap().len(), 1);
}

#[test]
fn booked_entries_are_forgotten_after_a_week() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let adopt = |number, at: Time| {
        store.add_usage(&[], &[AttemptRow { at, ..call(DEAD, number, Some(number), 5) }]).unwrap();
        assert_eq!(store.adopt_calls(ALIVE, at.plus(2 * SILENCE)).unwrap().len(), 1);
        let sql = "SELECT count(*) FROM calls_under_way";
        store.ledger().read(|db| db.query_row(sql, &[], |row| row.get::<i64>(0))).unwrap()
    };
    assert_eq!(adopt(1, NOW), Some(1));
    assert_eq!(adopt(2, NOW.plus(KEPT / 2)), Some(2));
    assert_eq!(adopt(3, NOW.plus(KEPT)), Some(2));
}
