//! Sums equal what the attempts say, however they are grouped and whoever wrote them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::api::Service;
use crate::api::console::Dimension;
use crate::clock::Time;
use crate::storage::sqlite::tests::older_ledger;
use crate::storage::sqlite::{LEDGER_MIGRATIONS, migrate};
use crate::storage::{Store, UsageQuery, UsageSum};

const NOON: Time = Time::from_unix_ms(1_795_176_000_000);
const DAY_MS: i64 = 86_400_000;
const DIMENSIONS: [(Dimension, &str); 5] = [
    (Dimension::Day, "day"),
    (Dimension::App, "app_id"),
    (Dimension::Key, "key_id"),
    (Dimension::Model, "model"),
    (Dimension::Service, "service"),
];

/// A request: key, hours after noon, and its attempts (model, outcome, tokens, cost, hours later).
type Request = (u8, i64, Vec<(u8, u8, u64, Option<u64>, i64)>);

fn request() -> impl Strategy<Value = Request> {
    let attempt = (0_u8..3, 0_u8..4, 0_u64..50, prop::option::of(0_u64..1_000_000), 0_i64..14);
    (0_u8..4, -60_i64..60, prop::collection::vec(attempt, 1..6))
}

/// Rows as the meter would record them.
fn rows(requests: &[Request]) -> Vec<AttemptRow> {
    let mut rows = Vec::new();
    for (number, (key, hours, attempts)) in requests.iter().enumerate() {
        let mut models = Vec::new();
        for (model, outcome, tokens, cost, later) in attempts {
            rows.push(AttemptRow {
                at: Time::from_unix_ms(NOON.unix_ms() + (hours + later) * 3_600_000),
                request_id: format!("req_{number}").into(),
                app_id: format!("app_{}", key % 2).into(),
                key_id: format!("key_{key}").into(),
                service: if *key < 2 { Service::Verify } else { Service::Inference },
                model: format!("a/{model}").into(),
                outcome: ["ok", "cancelled", "provider_timeout", "provider_error"][usize::from(*outcome)]
                    .into(),
                prompt_tokens: *tokens,
                completion_tokens: tokens / 2,
                cached_tokens: 0,
                cache_write_tokens: 0,
                is_estimated: false,
                cost: cost.map(NanoUsd),
                latency_ms: 1,
                is_first: models.is_empty(),
                is_first_of_model: !models.contains(model),
                labels: None,
                call: None,
            });
            models.push(*model);
        }
    }
    rows
}

/// The same rows with what older versions do not know.
fn cached(rows: Vec<AttemptRow>) -> Vec<AttemptRow> {
    let cached = |row: AttemptRow| AttemptRow {
        cached_tokens: row.prompt_tokens / 2,
        cache_write_tokens: row.prompt_tokens / 4,
        is_estimated: row.completion_tokens > 5,
        outcome: if row.prompt_tokens == 0 { CACHED.into() } else { row.outcome },
        ..row
    };
    rows.into_iter().map(cached).collect()
}

/// The sums computed from the attempts themselves, and the number of distinct requests in each.
fn sums_of_attempts(db: &Db<'_>, query: &UsageQuery) -> BTreeMap<[String; 5], (UsageCounts, u64)> {
    let columns = DIMENSIONS.map(|(dimension, name)| {
        let column = if query.by.contains(&dimension) { name } else { "''" };
        format!("CAST({column} AS TEXT)")
    });
    let sums = [
        "sum(is_first)",
        "sum(is_first_of_model)",
        "count(*) FILTER (WHERE outcome <> 'cached')",
        "count(*) FILTER (WHERE outcome NOT IN ('ok', 'cancelled', 'cached'))",
        "sum(prompt_tokens)",
        "sum(completion_tokens)",
        "coalesce(sum(cost_nano_usd), 0)",
        "count(cost_nano_usd)",
        "count(*) FILTER (WHERE cost_nano_usd IS NULL AND prompt_tokens + completion_tokens > 0)",
        "count(DISTINCT request_id)",
        "sum(cached_tokens)",
        "sum(cache_write_tokens)",
        "sum(is_estimated)",
    ]
    .map(|sum| format!("CAST({sum} AS BIGINT)"));
    let sql = format!(
        "SELECT {}, {}
         FROM (SELECT at / {DAY_MS} AS day, attempts.* FROM attempts) AS dated
         WHERE day BETWEEN ?1 AND ?2 AND app_id = coalesce(?3, app_id) AND model = coalesce(?4, model)
         GROUP BY 1, 2, 3, 4, 5",
        columns.join(", "),
        sums.join(", ")
    );
    let parameters = params![query.first_day, query.last_day, query.app_id, query.model];
    let sums = db.query(&sql, parameters, |row| {
        let number = |at: usize| row.get::<i64>(at).map(i64::unsigned_abs);
        let counts = UsageCounts {
            requests: number(5)?,
            model_requests: number(6)?,
            attempts: number(7)?,
            errors: number(8)?,
            prompt_tokens: number(9)?,
            completion_tokens: number(10)?,
            cost: NanoUsd(number(11)?),
            priced_attempts: number(12)?,
            unpriced_attempts: number(13)?,
            cached_tokens: number(15)?,
            cache_write_tokens: number(16)?,
            estimated_attempts: number(17)?,
        };
        Ok(([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?], (counts, number(14)?)))
    });
    sums.unwrap().into_iter().collect()
}

fn dimensions_of(sum: UsageSum) -> [String; 5] {
    let day = sum.day.map(|day| day.to_string());
    [day, sum.app_id, sum.key_id, sum.model, sum.service].map(Option::unwrap_or_default)
}

/// Queries every subset of dimensions and compares the sums with the attempts.
fn compare(store: &Store, query: &UsageQuery) {
    for subset in 0..1_u32 << DIMENSIONS.len() {
        let chosen = DIMENSIONS.iter().enumerate().filter(|(at, _)| subset & (1 << at) != 0);
        let by: Vec<Dimension> = chosen.map(|(_, (dimension, _))| *dimension).collect();
        let query = UsageQuery { by: by.clone(), ..query.clone() };
        let expected = store.ledger().read(|db| Ok(sums_of_attempts(db, &query))).unwrap();
        let summed: BTreeMap<_, _> = store
            .usage(&query)
            .unwrap()
            .into_iter()
            .map(|sum| (dimensions_of(sum.clone()), sum.counts))
            .collect();
        let wanted: BTreeMap<_, _> = expected
            .iter()
            .map(|(of, (counts, _))| (of.clone(), *counts))
            .filter(|(_, counts)| *counts != UsageCounts::default())
            .collect();
        assert_eq!(summed, wanted, "{query:?}");

        let is_of_all_days = !by.contains(&Dimension::Day) && query.last_day - query.first_day > 20;
        for (of, (counts, different)) in expected.iter().filter(|_| is_of_all_days) {
            let is_by_model = by.contains(&Dimension::Model) || query.model.is_some();
            let requests = if is_by_model { counts.model_requests } else { counts.requests };
            assert_eq!(requests, *different, "{of:?}: {query:?}");
        }
    }
}

fn all_days() -> UsageQuery {
    UsageQuery::days(NOON.utc_day() - 20, NOON.utc_day() + 20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_sums_equal_the_attempts_however_they_are_grouped(
        requests in prop::collection::vec(request(), 0..30),
        batch in 1_usize..20,
        days in (-3_i64..1, 0_i64..3),
    ) {
        let store = Store::in_memory(NOON).unwrap();
        for batch in cached(rows(&requests)).chunks(batch) {
            store.add_attempts(batch).unwrap();
        }
        compare(&store, &all_days());
        let today = NOON.utc_day();
        let few_days = UsageQuery::days(today + days.0, today + days.1);
        compare(&store, &UsageQuery { app_id: Some("app_1".to_owned()), ..few_days });
        compare(&store, &UsageQuery { model: Some("a/1".to_owned()), ..all_days() });
    }

    #[test]
    fn rows_of_older_versions_are_summed_alike(requests in prop::collection::vec(request(), 0..30)) {
        let dir = tempfile::tempdir().unwrap();
        let older = older_ledger(dir.path(), 2);
        let rows = rows(&requests);
        for row in &rows {
            let insert = "
                INSERT INTO attempts (at, request_id, app_id, key_id, service, model, outcome, prompt_tokens,
                    completion_tokens, cost_nano_usd, latency_ms)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1)";
            let AttemptRow { request_id, app_id, key_id, model, outcome, .. } = row;
            let cost = row.cost.map(|cost| count(cost.0));
            let (prompt, completion) = (count(row.prompt_tokens), count(row.completion_tokens));
            let service = row.service.as_str();
            older
                .execute(insert, params![
                    row.at.unix_ms(), request_id, app_id, key_id, service, model, outcome, prompt, completion, cost
                ])
                .unwrap();
        }
        drop(older);

        let store = Store::open(dir.path(), NOON).unwrap();
        for row in &rows {
            prop_assert!(store.attempts_of(&row.request_id).unwrap().contains(row), "{:?}", row);
        }
        compare(&store, &all_days());
    }
}

#[test]
fn invented_models_of_a_key_are_summed_together_beyond_a_limit() {
    const INVENTED: u64 = 500;
    let store = Store::in_memory(NOON).unwrap();
    let attempt = |key: u8, day: i64, model: &str| {
        let mut row = rows(&[(key, day * 24, vec![(0, 0, 2, Some(3), 0)])]).remove(0);
        row.model = model.into();
        row
    };
    store.add_attempts(&[attempt(0, 0, "a/used"), attempt(0, 0, "b/other")]).unwrap();
    let invented: Vec<_> =
        (0..INVENTED).map(|number| attempt(0, 0, &format!("a/invented-{number}"))).collect();
    // In one batch as well as one by one.
    store.add_attempts(&invented[..400]).unwrap();
    for row in &invented[400..] {
        store.add_attempts(std::slice::from_ref(row)).unwrap();
    }
    store.add_attempts(&[attempt(0, 0, "a/used"), attempt(0, 0, "b/late")]).unwrap();
    store.add_attempts(&[attempt(1, 0, "a/late"), attempt(0, 1, "a/late")]).unwrap();

    let sums = |by: &[Dimension]| {
        let query = UsageQuery { by: by.to_vec(), ..all_days() };
        let sums = store.usage(&query).unwrap().into_iter();
        sums.map(|sum| (dimensions_of(sum.clone()), sum.counts)).collect::<BTreeMap<_, _>>()
    };
    let of_key: BTreeMap<_, _> = sums(&[Dimension::Day, Dimension::Key, Dimension::Model])
        .into_iter()
        .filter(|([day, _, key, ..], _)| *key == "key_0" && *day == NOON.utc_day().to_string())
        .map(|([.., model, _], counts)| (model, counts))
        .collect();
    assert_eq!(of_key.len() as u64, u64::from(MAX_MODELS) + 1, "the last is that of all others");
    assert_eq!(of_key["a/used"].attempts, 2, "a known name keeps its sum");
    assert_eq!(of_key["b/other"].attempts, 2);
    let own = u64::from(MAX_MODELS) - 2;
    let together = of_key["a/other"];
    assert_eq!(together.attempts, INVENTED - own);
    assert_eq!((together.model_requests, together.prompt_tokens), (INVENTED - own, 2 * (INVENTED - own)));
    assert_eq!(sums(&[Dimension::Model]).values().filter(|counts| counts.attempts == 2).count(), 3);

    let total = sums(&[])[&<[String; 5]>::default()];
    assert_eq!((total.attempts, total.cost), (INVENTED + 6, NanoUsd(3 * (INVENTED + 6))));
    for (dimension, _) in DIMENSIONS {
        let summed = sums(&[dimension]).into_values().fold(UsageCounts::default(), UsageCounts::plus);
        assert_eq!(summed, total, "{dimension:?}");
    }
    for number in [0, INVENTED - 1] {
        let kept = store.attempts_of("req_0").unwrap();
        assert!(
            kept.contains(&invented[usize::try_from(number).unwrap()]),
            "single attempts keep their names"
        );
    }
}

fn absurd() -> AttemptRow {
    let mut row = rows(&[(0, 0, vec![(0, 0, 1, None, 0)])]).remove(0);
    (row.prompt_tokens, row.completion_tokens, row.cost) = (u64::MAX, u64::MAX, Some(NanoUsd(u64::MAX)));
    row
}

#[test]
fn sums_saturate() {
    let store = Store::in_memory(NOON).unwrap();
    for day in 0..4 {
        let row = AttemptRow { at: Time::from_unix_ms(NOON.unix_ms() + day * DAY_MS), ..absurd() };
        for _ in 0..3 {
            store.add_attempts(&[row.clone(), row.clone()]).unwrap();
        }
    }
    let counts = store.usage(&all_days()).unwrap()[0].counts;
    assert_eq!(counts.attempts, 24);
    for sum in [counts.prompt_tokens, counts.completion_tokens, counts.cost.0] {
        assert!(sum > u64::MAX / 2, "{counts:?}");
    }
}

#[test]
fn a_ledger_with_absurd_figures_is_migrated_too() {
    let mut ledger = Connection::open_in_memory().unwrap();
    migrate(&mut ledger, &LEDGER_MIGRATIONS[..2]).unwrap();
    let insert = "
        INSERT INTO attempts (at, request_id, app_id, key_id, service, model, outcome, prompt_tokens,
            completion_tokens, cost_nano_usd, latency_ms)
        VALUES (0, '', '', '', '', '', '', ?1, ?1, ?1, ?1)";
    for _ in 0..5 {
        ledger.execute(insert, [i64::MAX]).unwrap();
    }
    migrate(&mut ledger, LEDGER_MIGRATIONS).unwrap();
    let kept: (i64, i64) = ledger
        .query_row("SELECT cost_nano_usd, attempts FROM usage_days", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(kept, (MAX_SUM, 5));
}

#[test]
fn old_attempts_are_deleted_in_batches_and_their_sums_stay() {
    let store = Store::in_memory(NOON).unwrap();
    let old = rows(&[(0, -240, vec![(0, 0, 8, Some(5), 0); 25]), (1, 0, vec![(1, 0, 8, Some(5), 0)])]);
    store.add_attempts(&old).unwrap();
    let before = Time::from_unix_ms(NOON.unix_ms() - 9 * DAY_MS);
    let sums = store.usage(&all_days()).unwrap();
    let deleted: Vec<_> = (0..4).map(|_| store.forget_attempts(before, 10).unwrap()).collect();
    assert_eq!(deleted, [10, 10, 5, 0]);
    assert_eq!(store.attempts_of("req_0").unwrap(), []);
    assert_eq!(store.attempts_of("req_1").unwrap().len(), 1);
    assert_eq!(store.usage(&all_days()).unwrap(), sums);
    assert_eq!(store.first_usage_day().unwrap(), Some(NOON.utc_day() - 10));
}

/// The number of rows that the store's writer has changed.
fn changes(store: &Store) -> u64 {
    store.ledger().write(|db| Ok(db.file().total_changes())).unwrap()
}

#[test]
fn a_batch_is_one_write_for_each_combination() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), NOON).unwrap();
    let batch: Vec<_> =
        (0..500_u16).map(|number| (u8::from(number % 2 == 0), 0, vec![(0, 0, 1, Some(1), 0)])).collect();
    let written = |rows: &[AttemptRow]| {
        let before = changes(&store);
        store.add_attempts(rows).unwrap();
        changes(&store) - before
    };
    // A row for each attempt; for each of the two keys and their apps a daily sum, and what they have spent.
    assert_eq!(written(&rows(&batch)), 500 + 2 + 4);
}
