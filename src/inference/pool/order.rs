//! The order of a pool's targets for one request: a pure function of what is random or measured.

use std::cmp::Ordering;

use super::{Balance, Pool};

/// The targets in the order in which they are to be called. `chance` draws a number from 0 to 1 for a target, `load` is
/// the number of calls under way there, and `has_home` says that `chance` follows from the conversation.
pub(super) fn targets(
    pool: &Pool,
    has_home: bool,
    chance: impl Fn(&str) -> f64,
    load: impl Fn(&str) -> usize,
) -> Vec<&str> {
    let targets = pool.targets.iter().map(String::as_str);
    if pool.balance == Balance::First && !has_home {
        return targets.collect();
    }
    let is_by_load = pool.balance == Balance::LeastBusy && !has_home;
    let mut ranked: Vec<(usize, f64, &str)> = targets
        .enumerate()
        .map(|(at, id)| {
            let weight = pool.weights.get(at).copied().unwrap_or(1);
            (if is_by_load { load(id) } else { 0 }, rank(chance(id), weight), id)
        })
        .collect();
    ranked.sort_by(|one, other| one.0.cmp(&other.0).then_with(|| ascending(one.1, other.1)));
    ranked.into_iter().map(|(_, _, id)| id).collect()
}

/// The smallest rank comes first, with a probability that is proportional to its weight, if `chance` is uniform: the
/// first arrival of processes of these rates (Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006).
fn rank(chance: f64, weight: u32) -> f64 {
    if weight == 0 { f64::INFINITY } else { -chance.max(f64::MIN_POSITIVE).ln() / f64::from(weight) }
}

fn ascending(one: f64, other: f64) -> Ordering {
    one.total_cmp(&other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::Conversation;
    use crate::json::fields::Fields;

    fn pool(balance: Balance, weights: &[u32]) -> Pool {
        let targets = ["a/m", "b/m", "c/m", "d/m"].map(str::to_owned).to_vec();
        Pool { targets, balance, weights: weights.to_vec(), ..Pool::default() }
    }

    fn conversations(count: usize) -> impl Iterator<Item = Conversation> {
        (0..count).map(|number| {
            let body = format!(r#"{{"user":"{number}"}}"#);
            Conversation::of(&Fields::parse(&body).unwrap(), None).unwrap()
        })
    }

    /// How many of 4,000 conversations have each target first.
    fn shares(pool: &Pool) -> [u32; 4] {
        let mut shares = [0; 4];
        for conversation in conversations(4000) {
            let first = targets(pool, true, |id| conversation.chance(id), |_| 0)[0];
            shares[pool.targets.iter().position(|id| id == first).unwrap()] += 1;
        }
        shares
    }

    #[test]
    fn without_balance_the_order_is_the_operators() {
        assert_eq!(targets(&pool(Balance::First, &[]), false, |_| 0.5, |_| 9), ["a/m", "b/m", "c/m", "d/m"]);
    }

    #[test]
    fn the_least_busy_comes_first_and_chance_decides_between_equals() {
        let load = |id: &str| if id == "b/m" || id == "c/m" { 1 } else { 3 };
        let chance = |id: &str| if id == "c/m" { 0.9 } else { 0.1 };
        let pool = pool(Balance::LeastBusy, &[]);
        let order = targets(&pool, false, chance, load);
        assert_eq!(order[..2], ["c/m", "b/m"]);
    }

    #[test]
    fn conversations_are_spread_evenly_or_by_weight() {
        for share in shares(&pool(Balance::LeastBusy, &[])) {
            assert!((850..1150).contains(&share), "{share}");
        }
        let [one, two, five, none] = shares(&pool(Balance::Weighted, &[1, 2, 5, 0]));
        assert!((400..600).contains(&one) && (850..1150).contains(&two), "{one}, {two}");
        assert!((2350..2650).contains(&five) && none == 0, "{five}, {none}");
    }

    /// What rendezvous hashing promises.
    #[test]
    fn only_the_conversations_of_a_removed_target_move() {
        let all = pool(Balance::First, &[]);
        let mut fewer = all.clone();
        fewer.targets.retain(|id| id != "b/m");
        for conversation in conversations(200) {
            let chance = |id: &str| conversation.chance(id);
            let mut before = targets(&all, true, chance, |_| 0);
            before.retain(|id| *id != "b/m");
            assert_eq!(targets(&fewer, true, chance, |_| 0), before);
        }
    }
}
