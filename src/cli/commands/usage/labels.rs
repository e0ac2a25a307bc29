//! Makes the names of apps and keys in a table unique for people: a key may have been rotated, or an app created under
//! the name of a deleted one. Programs have ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::console::{Billing, Statement, UsageReport};
use crate::cli::target::admin::Admin;

/// How many of an id's last digits tell it from others; the first ones encode its time.
const ID_ENDING: usize = 6;

/// An id with its displayed name.
type Named<'a> = (&'a str, &'a mut String);

/// Extends names in a report that stand for several apps or keys.
pub(super) fn in_report(report: &mut UsageReport, admin: &Admin) {
    let mut all = Vec::new();
    for row in &mut report.data {
        all.extend(row.app_id.as_deref().zip(row.app.as_mut()));
        all.extend(row.key_id.as_deref().zip(row.key.as_mut()));
    }
    disambiguate(all, admin);
}

/// Extends names in a statement that stand for several keys.
pub(super) fn in_statement(statement: &mut Statement, admin: &Admin) {
    let all = statement.lines.iter_mut().map(|line| (line.key_id.as_str(), &mut line.key));
    disambiguate(all.collect(), admin);
}

/// Extends names of budgets that stand for several keys.
pub(super) fn in_budgets(billing: &mut Billing, admin: &Admin) {
    let all = billing.budgets.iter_mut().map(|line| (line.id.as_str(), &mut line.name));
    disambiguate(all.collect(), admin);
}

fn disambiguate(mut all: Vec<Named<'_>>, admin: &Admin) {
    let namesakes = namesakes(&all);
    if namesakes.is_empty() {
        return;
    }
    // People know a key by its last four characters. If those are not available, the id serves as well: for a key of a
    // deleted app, or while a server allows no more requests.
    let keys = namesakes.iter().any(|id| id.starts_with("key_"));
    let keys = if keys { admin.keys(None, None).unwrap_or_default() } else { Vec::new() };
    let endings: BTreeMap<String, String> = keys.into_iter().map(|key| (key.id, key.last4)).collect();
    add(&mut all, &namesakes, |id| {
        endings.get(id).map_or_else(|| shortened(id), |last4| format!("…{last4}"))
    });
    // Four characters may coincide.
    let still = self::namesakes(&all);
    add(&mut all, &still, shortened);
}

/// The ids that share their name with another one of their kind.
fn namesakes(all: &[Named<'_>]) -> BTreeSet<String> {
    let mut ids: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (id, name) in all {
        ids.entry((kind(id), name)).or_default().insert(id);
    }
    ids.into_values().filter(|ids| ids.len() > 1).flatten().map(str::to_owned).collect()
}

fn add(all: &mut [Named<'_>], to: &BTreeSet<String>, more: impl Fn(&str) -> String) {
    for (id, name) in all.iter_mut().filter(|(id, _)| to.contains(*id)) {
        name.push(' ');
        name.push_str(&more(id));
    }
}

/// The prefix of an id: `key_`, `app_`.
fn kind(id: &str) -> &str {
    id.find('_').map_or("", |at| &id[..=at])
}

/// An id shortened to what tells it from others, in the dashboard's format: `key_…f3a802`.
pub(crate) fn shortened(id: &str) -> String {
    let ending: Vec<char> = id.chars().rev().take(ID_ENDING).collect();
    format!("{}…{}", kind(id), ending.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_shared_within_a_kind_are_extended() {
        let rows = [("key_1", "ci"), ("key_2", "ci"), ("key_1", "ci"), ("app_3", "ci"), ("key_4", "till")];
        let mut names: Vec<String> = rows.iter().map(|(_, name)| (*name).to_owned()).collect();
        let mut all: Vec<Named<'_>> = rows.iter().map(|(id, _)| *id).zip(&mut names).collect();
        let found = namesakes(&all);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["key_1", "key_2"]);
        add(&mut all, &found, |id| format!("…{id}"));
        assert_eq!(names, ["ci …key_1", "ci …key_2", "ci …key_1", "ci", "till"]);
    }

    #[test]
    fn ids_are_shortened_to_what_differs() {
        assert_eq!(shortened("key_019aa0e7c2f47b1c8d3e5f60718293a4"), "key_…8293a4");
        assert_eq!(shortened("é"), "…é");
    }
}
