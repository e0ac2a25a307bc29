//! Usage sums by end user and tag, beside those of all requests.
//!
//! Both are texts of callers, who may invent any number of them. What must hold: once an app has [`MAX_ROWS`] of these
//! sums on a day, for end users or for tags, further ones are summed together, under one name ([`OTHER`]). Who has a sum
//! keeps it. A model has the name here that it has among the sums of all requests, so that these can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rusqlite::params;

use super::{
    OTHER, SUMMED_MODEL, additions_of_excluded, changes, columns, counts, differences, figures, other_model,
    parameters, with_figures,
};
use crate::storage::db::Db;
use crate::storage::{AttemptRow, Error, UsageCounts};

/// The kind of sums by end user.
pub(in crate::storage::queries) const USER: &str = "user";

/// The kind of sums by tag.
pub(in crate::storage::queries) const TAG: &str = "tag";

/// The number of sums of one day, app and kind from which on no further label gets one of its own.
const MAX_ROWS: i64 = 10_000;

/// A label: the day, the app, the kind and its text.
type Label<'r> = (i64, &'r str, &'static str, &'r str);

/// What else a sum is of: key, service and model.
type Rest<'r> = (&'r str, &'static str, &'r str);

/// Adds a batch of attempts to the sums of their labels.
pub(super) fn add(db: &Db<'_>, rows: &[AttemptRow]) -> Result<(), Error> {
    let all = || rows.iter().flat_map(|row| labels(row, row).map(move |label| (label, row)));
    let named: BTreeSet<Label<'_>> = all().map(|(label, _)| label).collect();
    if named.is_empty() {
        return Ok(());
    }
    let with_sums = with_sums(db, named)?;
    let mut sums: BTreeMap<(Label<'_>, Rest<'_>), UsageCounts> = BTreeMap::new();
    for (label, row) in all() {
        let (day, app, kind, _) = label;
        let label = if with_sums.contains(&label) { label } else { (day, app, kind, OTHER) };
        let sum = sums.entry((label, rest(row))).or_default();
        *sum = sum.plus(counts(row));
    }
    db.execute_each(&INSERT, sums, |(((day, app_id, kind, label), (key_id, service, model)), sum), run| {
        let (other, figures) = (other_model(model), figures(sum));
        let of = params![day, app_id, key_id, service, model, other, kind, label];
        run(&with_figures(of, &figures))
    })
}

/// Corrects the sums of labels as [`super::replace`] does; what was replaced is of the labels of what replaces it.
pub(super) fn replace(db: &Db<'_>, replaced: &[(AttemptRow, AttemptRow)]) -> Result<(), Error> {
    let mut sums: BTreeMap<_, (UsageCounts, UsageCounts)> = BTreeMap::new();
    for (old, new) in replaced {
        for label in labels(old, new) {
            let (before, after) = sums.entry((label, rest(old))).or_default();
            *before = before.plus(counts(old));
            *after = after.plus(counts(new));
        }
    }
    let sql = format!(
        "UPDATE usage_labels SET {}
         WHERE day = ?1 AND app_id = ?2 AND kind = ?7 AND key_id = ?3 AND service = ?4 AND model = {SUMMED_MODEL}
             AND label = CASE
                 WHEN EXISTS (SELECT 1 FROM usage_labels
                              WHERE day = ?1 AND app_id = ?2 AND kind = ?7 AND label = ?8) THEN ?8
                 ELSE '{OTHER}'
             END",
        changes(9)
    );
    db.execute_each(
        &sql,
        sums,
        |(((day, app_id, kind, label), (key_id, service, model)), (before, after)), run| {
            let (other, changes) = (other_model(model), differences(before, after));
            let of = params![day, app_id, key_id, service, model, other, kind, label];
            run(&with_figures(of, &changes))
        },
    )
}

/// Inserts a sum or adds to one.
static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO usage_labels (day, app_id, key_id, service, model, kind, label, {})
         SELECT ?1, ?2, ?3, ?4, {SUMMED_MODEL}, ?7, ?8, {}
         WHERE true
         ON CONFLICT (day, app_id, kind, label, key_id, service, model) DO UPDATE SET {}",
        columns(),
        parameters(9),
        additions_of_excluded("usage_labels")
    )
});

/// Those that have a sum, or get one.
fn with_sums<'r>(db: &Db<'_>, named: BTreeSet<Label<'r>>) -> Result<BTreeSet<Label<'r>>, Error> {
    let known = db.query_each(
        "SELECT 1 FROM usage_labels WHERE day = ?1 AND app_id = ?2 AND kind = ?3 AND label = ?4 LIMIT 1",
        &named,
        |(day, app_id, kind, label), run| run(params![day, app_id, kind, label]),
        |_| Ok(()),
    )?;
    let (mut with_sums, mut new) = (BTreeSet::new(), Vec::new());
    for (label, known) in named.into_iter().zip(known) {
        match known {
            Some(()) => drop(with_sums.insert(label)),
            None => new.push(label),
        }
    }
    for of_kind in new.chunk_by(|one, other| (one.0, one.1, one.2) == (other.0, other.1, other.2)) {
        let (day, app_id, kind, _) = of_kind[0];
        let rows = db.query_row(
            "SELECT count(*) FROM (SELECT 1 FROM usage_labels
                                   WHERE day = ?1 AND app_id = ?2 AND kind = ?3 LIMIT ?4) AS those",
            params![day, app_id, kind, MAX_ROWS],
            |row| row.get::<i64>(0),
        )?;
        let room = usize::try_from(MAX_ROWS - rows.unwrap_or(0)).unwrap_or(0);
        with_sums.extend(of_kind.iter().take(room));
    }
    Ok(with_sums)
}

/// The labels of an attempt, which is `of` the day and app of another.
fn labels<'r>(of: &'r AttemptRow, row: &'r AttemptRow) -> impl Iterator<Item = Label<'r>> {
    let (day, app_id) = (of.at.utc_day(), &*of.app_id);
    row.labels.iter().flat_map(move |labels| {
        let user = labels.end_user.iter().map(|user| (USER, user.name.as_str()));
        user.chain(labels.tags.iter().map(|tag| (TAG, tag.as_str())))
            .map(move |(kind, label)| (day, app_id, kind, label))
    })
}

fn rest(row: &AttemptRow) -> Rest<'_> {
    (&row.key_id, row.service.as_str(), &row.model)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::Service;
    use crate::api::console::Dimension;
    use crate::clock::Time;
    use crate::money::NanoUsd;
    use crate::storage::{Labels, Store, UsageQuery};

    const NOON: Time = Time::from_unix_ms(1_795_176_000_000);

    fn attempt(user: Option<&str>, tags: &[(&str, &str)]) -> AttemptRow {
        AttemptRow {
            at: NOON,
            request_id: "req_1".into(),
            app_id: "app_1".into(),
            key_id: "key_1".into(),
            service: Service::Inference,
            model: "a/b".into(),
            outcome: "ok".into(),
            prompt_tokens: 1,
            completion_tokens: 0,
            cached_tokens: 0,
            cache_write_tokens: 0,
            is_estimated: false,
            cost: Some(NanoUsd(3)),
            latency_ms: 1,
            is_first: true,
            is_first_of_model: true,
            labels: Labels::new("app_1", user, true, tags.iter().copied()),
            call: None,
        }
    }

    fn by(store: &Store, dimension: Dimension) -> BTreeMap<String, UsageCounts> {
        let today = NOON.utc_day();
        let query = UsageQuery { by: vec![dimension], ..UsageQuery::days(today, today) };
        let sums = store.usage(&query).unwrap().into_iter();
        sums.map(|sum| (sum.label.unwrap_or_default(), sum.counts)).collect()
    }

    #[test]
    fn invented_names_are_summed_together_beyond_a_limit() {
        let store = Store::in_memory(NOON).unwrap();
        store.add_attempts(&[attempt(Some("known"), &[("team", "search")]), attempt(None, &[])]).unwrap();
        let beyond = 50;
        let count = usize::try_from(MAX_ROWS).unwrap() - 1 + beyond;
        let invented: Vec<_> =
            (0..count).map(|number| attempt(Some(&format!("invented-{number}")), &[])).collect();
        for batch in invented.chunks(4096) {
            store.add_attempts(batch).unwrap();
        }
        store.add_attempts(&[attempt(Some("known"), &[]), attempt(Some("late"), &[])]).unwrap();
        let other_app = AttemptRow { app_id: "app_2".into(), ..attempt(Some("late"), &[]) };
        store.add_attempts(&[other_app]).unwrap();
        let sums = by(&store, Dimension::User);
        assert_eq!(sums.len(), count - beyond + 1 + 2, "the known, that of all others, another app's");
        assert_eq!((sums["known"].attempts, sums["late"].attempts), (2, 1), "who has a sum keeps it");
        assert_eq!(sums[OTHER].attempts, beyond as u64 + 1);
        assert_eq!(by(&store, Dimension::Tag)["team=search"].attempts, 1);
        let all = sums.into_values().fold(UsageCounts::default(), UsageCounts::plus);
        assert_eq!(all.attempts, by(&store, Dimension::Model)[""].attempts - 1);
    }

    #[test]
    fn a_request_counts_for_each_of_its_tags_and_spending_for_its_user() {
        let store = Store::in_memory(NOON).unwrap();
        let row = attempt(Some("ann"), &[("team", "search"), ("run", "7")]);
        let retry = AttemptRow { is_first: false, is_first_of_model: false, ..row.clone() };
        store.add_attempts(&[row.clone(), retry]).unwrap();
        let tags = by(&store, Dimension::Tag);
        assert_eq!(tags.keys().collect::<Vec<_>>(), ["run=7", "team=search"]);
        assert_eq!((tags["run=7"].requests, tags["run=7"].attempts), (1, 2));

        let user = row.labels.unwrap().end_user.clone().unwrap();
        let spent = |store: &Store| {
            let of = [(user.month_subject(), NOON.utc_month()), (user.day_subject(), NOON.utc_day())];
            store.spent(&of.map(|(subject, month)| crate::storage::SubjectMonth { subject, month })).unwrap()
        };
        assert_eq!(spent(&store), [NanoUsd(6), NanoUsd(6)]);
        store.forget_counts(NOON.utc_day()).unwrap();
        assert_eq!(spent(&store), [NanoUsd(6), NanoUsd(6)], "of today");
        store.forget_counts(NOON.utc_day() + 1).unwrap();
        assert_eq!(spent(&store), [NanoUsd(6), NanoUsd(0)], "the month goes on");
        assert_eq!(
            store.forget_end_user("ann", Some("app_x"), NOON).unwrap_err().to_string(),
            crate::storage::Error::NotFound.to_string()
        );
        assert_eq!(store.forget_end_user("ann", None, NOON).unwrap(), 1);
        assert_eq!(by(&store, Dimension::User), BTreeMap::new());
    }
}
