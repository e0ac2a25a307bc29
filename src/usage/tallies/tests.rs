//! The arithmetic of budgets, by examples and at random.

use proptest::prelude::*;

use super::*;

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

fn limit(of: BudgetOf, subject: &str, budget: u64) -> Limit<'_> {
    Limit { of, subject, budget: NanoUsd(budget) }
}

fn month(subject: &str) -> MonthOf {
    MonthOf { subject: subject.to_owned(), month: NOW.utc_month() }
}

fn knowing(spent: &[(&str, u64)]) -> Tallies {
    let mut tallies = Tallies::default();
    let answers: Vec<_> = spent.iter().map(|(subject, spent)| (month(subject), NanoUsd(*spent))).collect();
    assert!(tallies.take_over(&answers, 0));
    tallies
}

fn take(tallies: &mut Tallies, limits: &[Limit<'_>], most: u64) -> Result<(), Box<Shortage>> {
    tallies.take(limits, NanoUsd(most), NOW)
}

#[test]
fn what_is_reserved_is_taken_until_it_is_given_back() {
    let mut tallies = knowing(&[("k", 40)]);
    let limits = [limit(BudgetOf::Key, "k", 100)];
    take(&mut tallies, &limits, 50).unwrap();
    let shortage = take(&mut tallies, &limits, 11).unwrap_err();
    assert_eq!((shortage.spent, shortage.reserved, shortage.left()), (NanoUsd(40), NanoUsd(50), NanoUsd(10)));
    assert!(!shortage.is_used_up());
    tallies.settle("k", NanoUsd(50), NanoUsd(20));
    let shortage = take(&mut tallies, &limits, 41).unwrap_err();
    assert_eq!((shortage.spent, shortage.reserved), (NanoUsd(60), NanoUsd(0)), "what is over is spent");
    take(&mut tallies, &limits, 40).unwrap();
    tallies.refresh([(month("k"), NanoUsd(60))]);
    tallies.give_back("k", NanoUsd(20), true);
    tallies.give_back("k", NanoUsd(40), false);
    take(&mut tallies, &limits, 40).unwrap();
    assert_eq!(take(&mut tallies, &limits, 1).unwrap_err().left(), NanoUsd(0));
}

#[test]
fn whoever_asks_what_is_missing_finds_it_known_when_taking() {
    let mut tallies = knowing(&[("k", 40)]);
    let limits = [limit(BudgetOf::Key, "k", 100)];
    tallies.drop_idle();
    assert_eq!(tallies.missing(&limits, NOW.utc_month()).0, []);
    tallies.drop_idle();
    assert_eq!(tallies.missing(&limits, NOW.utc_month()).0, []);
    tallies.drop_idle();
    tallies.drop_idle();
    assert_eq!(tallies.missing(&limits, NOW.utc_month()).0, [month("k")]);
}

#[test]
fn key_and_app_are_taken_together_or_not_at_all() {
    let mut tallies = knowing(&[("k", 0), ("a", 95)]);
    let both = [limit(BudgetOf::Key, "k", 100), limit(BudgetOf::App, "a", 100)];
    let shortage = take(&mut tallies, &both, 6).unwrap_err();
    assert_eq!((shortage.of, shortage.left()), (BudgetOf::App, NanoUsd(5)));
    take(&mut tallies, &both[..1], 100).unwrap();
    let shortage = take(&mut tallies, &both, 5).unwrap_err();
    assert_eq!((shortage.of, shortage.left()), (BudgetOf::Key, NanoUsd(0)), "the one with less");
}

#[test]
fn what_costs_nothing_always_fits() {
    let mut tallies = knowing(&[("k", 500)]);
    let limits = [limit(BudgetOf::Key, "k", 100)];
    take(&mut tallies, &limits, 0).unwrap();
    assert!(take(&mut tallies, &limits, 1).unwrap_err().is_used_up());
}

#[test]
fn a_new_month_is_asked_for_and_calls_under_way_count_in_it() {
    let mut tallies = knowing(&[("k", 90)]);
    let limits = [limit(BudgetOf::Key, "k", 100)];
    take(&mut tallies, &limits, 10).unwrap();
    let next = MonthOf { subject: "k".to_owned(), month: NOW.utc_month() + 1 };
    let (unknown, asked_at) = tallies.missing(&limits, next.month);
    assert_eq!(unknown, std::slice::from_ref(&next));
    assert!(tallies.take_over(&[(next.clone(), NanoUsd(0))], asked_at));
    assert_eq!(take(&mut tallies, &limits, 91).unwrap_err().reserved, NanoUsd(10));
    take(&mut tallies, &limits, 90).unwrap();
    // What is said of the old month now concerns nobody.
    tallies.refresh([(month("k"), NanoUsd(95))]);
    assert_eq!(take(&mut tallies, &limits, 1).unwrap_err().spent, NanoUsd(0));
}

#[test]
fn what_was_overtaken_is_not_believed() {
    let mut tallies = knowing(&[("k", 90)]);
    tallies.refresh([(month("k"), NanoUsd(80))]);
    let limits = [limit(BudgetOf::Key, "k", 100)];
    assert_eq!(take(&mut tallies, &limits, 11).unwrap_err().spent, NanoUsd(90));
    // Asked before the ledger was read, answered behind it.
    assert!(!tallies.take_over(&[(month("other"), NanoUsd(0))], 0));
}

#[test]
fn what_nobody_uses_is_dropped_and_what_somebody_holds_is_not() {
    let mut tallies = knowing(&[("held", 0), ("idle", 0)]);
    take(&mut tallies, &[limit(BudgetOf::Key, "held", 9)], 0).unwrap();
    tallies.drop_idle();
    assert_eq!(tallies.by_subject.len(), 2, "both were just used");
    tallies.drop_idle();
    assert_eq!(tallies.watched(), [month("held")]);
    tallies.give_back("held", NanoUsd(0), false);
    tallies.drop_idle();
    assert_eq!(tallies.watched(), []);
}

#[test]
fn in_doubt_the_ledger_is_asked_again() {
    let mut tallies = knowing(&[("k", 1)]);
    let limits = [limit(BudgetOf::Key, "k", 100)];
    assert_eq!(tallies.missing(&limits, NOW.utc_month()).0, []);
    tallies.invalidate();
    assert_eq!(tallies.missing(&limits, NOW.utc_month()).0, [month("k")]);
}

/// What may happen: a call begins (of which keys, for how much), ends (with which part of it), or the ledger is
/// written and read.
#[derive(Clone, Debug)]
enum Step {
    Begin { key: usize, most: u64 },
    End { which: usize, percent: u64 },
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..3, 0_u64..60).prop_map(|(key, most)| Step::Begin { key, most }),
        4 => (any::<usize>(), 0_u64..=100).prop_map(|(which, percent)| Step::End { which, percent }),
        1 => Just(Step::Flush),
    ]
}

proptest! {
    /// Three keys of one app: whatever happens, no admission lets spent and reserved exceed a budget, nothing that
    /// would fit is refused, and in the end all that is held is given back.
    #[test]
    fn no_order_of_events_overruns_a_budget(
        budgets in prop::array::uniform4(0_u64..200),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        const KEYS: [&str; 3] = ["k0", "k1", "k2"];
        let limits_of = |key: usize| [
            limit(BudgetOf::Key, KEYS[key], budgets[key]),
            limit(BudgetOf::App, "a", budgets[3]),
        ];
        let mut tallies = Tallies::default();
        // The model: what the ledger holds, calls that are open, and those that are over but not written.
        let mut ledger: HashMap<&str, u64> = HashMap::new();
        let mut open: Vec<(usize, u64)> = Vec::new();
        let mut unwritten: Vec<(usize, u64)> = Vec::new();
        let end = Step::End { which: 0, percent: 50 };
        let all = steps.iter().chain(std::iter::repeat_n(&end, 120)).chain([&Step::Flush, &Step::Flush]);
        for step in all {
            match *step {
                Step::Begin { key, most } => {
                    let limits = limits_of(key);
                    let (unknown, asked_at) = tallies.missing(&limits, NOW.utc_month());
                    let answers: Vec<_> = unknown
                        .into_iter()
                        .map(|of| { let spent = ledger.get(of.subject.as_str()).copied(); (of, NanoUsd(spent.unwrap_or(0))) })
                        .collect();
                    prop_assert!(tallies.take_over(&answers, asked_at));
                    let fits = limits.iter().all(|limit| {
                        let of = |calls: &[(usize, u64)]| -> u64 {
                            let mine = calls.iter().filter(|(key, _)| limit.subject == "a" || KEYS[*key] == limit.subject);
                            mine.map(|(_, amount)| amount).sum()
                        };
                        let taken = ledger.get(limit.subject).copied().unwrap_or(0) + of(&open) + of(&unwritten);
                        most == 0 || taken + most <= limit.budget.0
                    });
                    prop_assert_eq!(take(&mut tallies, &limits, most).is_ok(), fits);
                    if fits {
                        open.push((key, most));
                    }
                }
                Step::End { which, percent } if !open.is_empty() => {
                    let (key, most) = open.swap_remove(which % open.len());
                    let actual = most * percent / 100;
                    for limit in limits_of(key) {
                        tallies.settle(limit.subject, NanoUsd(most), NanoUsd(actual));
                    }
                    unwritten.push((key, actual));
                }
                Step::End { .. } => {}
                Step::Flush => {
                    for (key, cost) in &unwritten {
                        for subject in [KEYS[*key], "a"] {
                            *ledger.entry(subject).or_default() += cost;
                        }
                    }
                    let heard: Vec<_> = tallies
                        .watched()
                        .into_iter()
                        .map(|of| { let spent = ledger.get(of.subject.as_str()).copied(); (of, NanoUsd(spent.unwrap_or(0))) })
                        .collect();
                    tallies.refresh(heard);
                    for (key, cost) in unwritten.drain(..) {
                        for limit in limits_of(key) {
                            tallies.give_back(limit.subject, NanoUsd(cost), true);
                        }
                    }
                    tallies.drop_idle();
                }
            }
        }
        prop_assert!(tallies.by_subject.is_empty(), "{:?}", tallies);
        for limit in (0..3).flat_map(limits_of) {
            prop_assert!(ledger.get(limit.subject).copied().unwrap_or(0) <= limit.budget.0);
        }
    }
}
