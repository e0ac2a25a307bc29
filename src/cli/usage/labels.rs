//! Names of apps and keys in one table, told apart for people where several have the same: a key was rotated, or an app
//! made anew under the name of a deleted one. Programs have ids.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::console::{Billing, Statement, UsageReport};
use crate::cli::desk::Desk;

/// Of an id, so many of its last digits tell it from others: the first ones are its time.
const ID_ENDING: usize = 6;

/// Something with an id, and the name it is shown by.
type Named<'a> = (&'a str, &'a mut String);

/// Changes names of a report that stand for several apps or keys.
pub(super) fn in_report(report: &mut UsageReport, desk: &Desk) {
    let mut all = Vec::new();
    for row in &mut report.data {
        all.extend(row.app_id.as_deref().zip(row.app.as_mut()));
        all.extend(row.key_id.as_deref().zip(row.key.as_mut()));
    }
    tell_apart(all, desk);
}

/// Changes names of a statement that stand for several keys.
pub(super) fn in_statement(statement: &mut Statement, desk: &Desk) {
    let all = statement.lines.iter_mut().map(|line| (line.key_id.as_str(), &mut line.key));
    tell_apart(all.collect(), desk);
}

/// Changes names of budgets that stand for several keys.
pub(super) fn in_budgets(billing: &mut Billing, desk: &Desk) {
    let all = billing.budgets.iter_mut().map(|line| (line.id.as_str(), &mut line.name));
    tell_apart(all.collect(), desk);
}

fn tell_apart(mut all: Vec<Named<'_>>, desk: &Desk) {
    let namesakes = namesakes(&all);
    if namesakes.is_empty() {
        return;
    }
    // By its last four characters people know a key. Where they are not to be had the id does as well: of a deleted
    // app's key, or while a server has no more requests to give.
    let keys = namesakes.iter().any(|id| id.starts_with("key_"));
    let keys = if keys { desk.keys(None, None).unwrap_or_default() } else { Vec::new() };
    let endings: BTreeMap<String, String> = keys.into_iter().map(|key| (key.id, key.last4)).collect();
    add(&mut all, &namesakes, |id| endings.get(id).map_or_else(|| short(id), |last4| format!("…{last4}")));
    // Four characters may be the same by chance.
    let still = self::namesakes(&all);
    add(&mut all, &still, short);
}

/// The ids of what has the name of something else of its kind.
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

/// What an id is of: `key_`, `app_`.
fn kind(id: &str) -> &str {
    id.find('_').map_or("", |at| &id[..=at])
}

/// An id as far as it tells one from another, as the dashboard has it: `key_…f3a802`.
pub(crate) fn short(id: &str) -> String {
    let ending: Vec<char> = id.chars().rev().take(ID_ENDING).collect();
    format!("{}…{}", kind(id), ending.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_shares_a_name_of_its_kind_gets_more() {
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
        assert_eq!(short("key_019aa0e7c2f47b1c8d3e5f60718293a4"), "key_…8293a4");
        assert_eq!(short("é"), "…é");
    }
}
