//! What the journal keeps of calls is booked once, whoever died or only seemed to.

use super::*;
use crate::api::Service;
use crate::api::console::Dimension;
use crate::money::NanoUsd;
use crate::storage::postgres::testing::waits;
use crate::storage::{CallId, SubjectMonth, UsageCounts, UsageQuery};

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
        cached_tokens: 0,
        cache_write_tokens: 0,
        is_estimated: tokens > 0,
        cost: Some(NanoUsd(2 * tokens)),
        latency_ms: 1000,
        is_first: true,
        is_first_of_model: true,
        labels: None,
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

/// Calls that this many requests make, one each, and that another server has booked.
fn booked_calls(store: &Store, requests: u64) -> Vec<AttemptRow> {
    let calls: Vec<_> = (1..=requests).map(|number| call(DEAD, number, Some(number), 5)).collect();
    store.add_usage(&[], &calls).unwrap();
    store.let_servers_fall_silent();
    assert_eq!(store.adopt_calls(ALIVE, NOW).unwrap().len(), calls.len());
    calls
}

#[test]
fn many_booked_calls_are_replaced_with_one_write_for_each_sum() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let changes = || store.ledger().write(|db| Ok(db.file().total_changes())).unwrap();
    let rows: Vec<_> = booked_calls(&store, 500).iter().map(|row| ended(row, "cut")).collect();
    let before = changes();
    store.add_attempts(&rows).unwrap();
    // Each call's entry and attempt; the sum of the day, and what the key and the app have spent.
    assert_eq!(changes() - before, 2 * 500 + 1 + 2);
    let counts = sums(&store);
    assert_eq!((counts.attempts, counts.errors, counts.cost.0, spent(&store)), (500, 500, 5000, 5000));
}

#[test]
#[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
fn a_server_waits_as_often_for_many_booked_calls_as_for_one() {
    let waits_for = |requests| {
        let store = Store::in_memory(NOW).unwrap();
        let rows: Vec<_> = booked_calls(&store, requests).iter().map(|row| ended(row, "cut")).collect();
        let before = waits();
        store.add_attempts(&rows).unwrap();
        let waited = waits() - before;
        assert_eq!((sums(&store).errors, spent(&store)), (requests, 10 * requests));
        waited
    };
    let of_one = waits_for(1);
    assert!(of_one > 0, "MK_TEST_DATABASE_URL");
    assert_eq!(waits_for(2000), of_one);
}

#[test]
fn calls_that_are_replaced_together_correct_the_sums_that_they_are_in() {
    let store = Store::in_memory(NOW).unwrap();
    let of_model = |model: &str, row: AttemptRow| AttemptRow { model: model.into(), ..row };
    // All names but one have a sum, and `b/x` and `b/y` are among the others.
    let many: Vec<_> =
        (0..199).map(|number| of_model(&format!("a/{number}"), call("", 0, None, 0))).collect();
    let many: Vec<_> = many.into_iter().map(|row| AttemptRow { call: None, ..row }).collect();
    store.add_attempts(&many).unwrap();
    let models = ["a/0", "a/0", "b/own", "b/x", "b/x", "b/y"];
    let begun: Vec<_> = (1..)
        .zip(models)
        .map(|(number, model)| of_model(model, call(DEAD, number, Some(number), 10 * number)))
        // What the fourth costs is only known in the end.
        .map(|row| AttemptRow { cost: row.cost.filter(|cost| cost.0 != 80), ..row })
        .collect();
    store.add_usage(&[], &begun).unwrap();
    store.let_servers_fall_silent();
    store.adopt_calls(ALIVE, NOW).unwrap();
    let sum = |model: &str| {
        let query = UsageQuery { by: vec![Dimension::Model], ..UsageQuery::days(0, i64::MAX) };
        let sums = store.usage(&query).unwrap();
        let counts = sums.into_iter().find(|sum| sum.model.as_deref() == Some(model)).unwrap().counts;
        (counts.prompt_tokens, counts.cost.0, counts.errors, counts.priced_attempts, counts.unpriced_attempts)
    };
    assert_eq!(sum("a/0"), (30, 60, 0, 3, 0));
    assert_eq!((sum("b/own"), sum("b/other")), ((30, 60, 0, 1, 0), (150, 220, 0, 2, 1)));

    // More and less, with and without errors; in one batch with a call that was never seen.
    let tokens = [(1, 11, "ok"), (2, 12, "cut"), (3, 40, "cut"), (4, 1, "ok"), (5, 2, "ok"), (6, 103, "cut")];
    let mut rows: Vec<_> = tokens
        .into_iter()
        .zip(models)
        .map(|((number, tokens, outcome), model)| {
            of_model(model, ended(&call(DEAD, number, Some(number), tokens), outcome))
        })
        .collect();
    rows.insert(3, of_model("a/0", ended(&call(DEAD, 7, Some(7), 1000), "ok")));
    store.add_attempts(&rows).unwrap();
    assert_eq!(sum("a/0"), (1023, 2046, 1, 4, 0));
    assert_eq!((sum("b/own"), sum("b/other")), ((40, 80, 1, 1, 0), (106, 212, 1, 3, 0)));
    assert_eq!((spent(&store), sums(&store).cost.0, sums(&store).attempts), (2338, 2338, 206));
}

#[test]
fn corrected_sums_stay_in_their_range() {
    let store = Store::in_memory(NOW).unwrap();
    let of = |number, amount| AttemptRow {
        prompt_tokens: amount,
        completion_tokens: amount,
        cost: Some(NanoUsd(amount)),
        ..call(DEAD, number, Some(number), 0)
    };
    let book = |begun: &[AttemptRow]| {
        store.add_usage(&[], begun).unwrap();
        store.let_servers_fall_silent();
        store.adopt_calls(ALIVE, NOW).unwrap();
    };
    let replace = |rows: &[AttemptRow]| {
        store.add_attempts(rows).unwrap();
        (sums(&store).prompt_tokens, sums(&store).completion_tokens, sums(&store).cost.0, spent(&store))
    };
    let (most, same) =
        (u64::try_from(crate::storage::queries::values::MAX_SUM).unwrap(), |sum| (sum, sum, sum, sum));
    book(&[of(1, 3)]);
    assert_eq!(replace(&[of(1, u64::MAX)]), same(most));
    book(&[of(2, 3), of(3, 3)]);
    assert_eq!(replace(&[of(2, u64::MAX), of(3, u64::MAX)]), same(most));
    // What was beyond the range is lost.
    book(&[of(4, u64::MAX)]);
    assert_eq!(replace(&[of(4, 3)]), same(3));
    book(&[of(5, u64::MAX), of(6, u64::MAX)]);
    assert_eq!(replace(&[of(5, 3), of(6, 3)]), same(6));

    book(&[of(7, 3)]);
    for sums in [
        "usage_days SET prompt_tokens = 1, completion_tokens = 1, cost_nano_usd = 1",
        "spend SET nano_usd = 1",
    ] {
        store.ledger().write(|db| db.execute(&format!("UPDATE {sums}"), &[])).unwrap();
    }
    assert_eq!(replace(&[of(7, 0)]), same(0));
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

#[test]
fn a_booked_call_tells_that_its_server_lives_and_changes_in_nothing_else() {
    let store = Store::in_memory(NOW).unwrap();
    let old = call(DEAD, 1, Some(1), 5);
    let adopted = || {
        let rows = store.adopt_calls(ALIVE, NOW).unwrap();
        rows.iter().map(|row| row.request_id.to_string()).collect::<Vec<_>>()
    };
    let entry = || store.ledger().read(|db| entries(db, DEAD)).unwrap().remove(0);
    store.add_usage(&[], std::slice::from_ref(&old)).unwrap();
    store.let_servers_fall_silent();
    assert_eq!(adopted(), ["req_1"]);
    let before = entry();

    // A new call waits, and all that its server has to write is the old one.
    store.add_usage(&[], &[call(DEAD, 2, Some(2), 7)]).unwrap();
    for _ in 0..3 {
        store.let_servers_fall_silent();
        let sign = AttemptRow {
            at: NOW.plus(Duration::from_millis(1)),
            latency_ms: 9000,
            is_first: false,
            is_first_of_model: false,
            ..call(DEAD, 1, Some(1), 6)
        };
        store.add_usage(&[], &[sign]).unwrap();
        assert!(adopted().is_empty());
    }
    assert_eq!((entry().row, entry().attempt_id), (before.row, before.attempt_id));
    store.let_servers_fall_silent();
    assert_eq!(adopted(), ["req_2"]);
    assert!(adopted().is_empty(), "there is nothing left to book");
}

#[test]
fn a_time_from_before_a_clock_was_set_back_tells_nothing_of_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    store.add_usage(&[], &[call(DEAD, 1, Some(1), 5)]).unwrap();
    let before = NOW.minus(Duration::from_hours(1));
    assert_eq!(store.adopt_calls(ALIVE, before).unwrap().len(), 1);
    // It lives, and the booked call is not written again.
    store.add_usage(&[], &[AttemptRow { at: before, ..call(DEAD, 2, Some(2), 5) }]).unwrap();
    assert_eq!(store.adopt_calls(ALIVE, before).unwrap(), []);
    assert_eq!(store.adopt_calls(ALIVE, before.plus(2 * SILENCE)).unwrap().len(), 1);
}

#[test]
fn the_booked_entry_of_a_call_under_way_is_not_forgotten_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOW).unwrap();
    let write = |row: AttemptRow, at: Time| store.add_usage(&[], &[AttemptRow { at, ..row }]).unwrap();
    let later = NOW.plus(KEPT + 2 * SILENCE);
    write(call("srv_long", 1, Some(1), 5), NOW);
    assert_eq!(store.adopt_calls(ALIVE, NOW.plus(2 * SILENCE)).unwrap().len(), 1);
    write(call("srv_long", 1, Some(1), 6), later);
    write(call(DEAD, 2, Some(2), 5), later);
    assert_eq!(store.adopt_calls(ALIVE, later.plus(2 * SILENCE)).unwrap().len(), 1);
    store.add_attempts(&[ended(&call("srv_long", 1, Some(1), 7), "ok")]).unwrap();
    assert_eq!(booked(&store, 1).len(), 1);
}
