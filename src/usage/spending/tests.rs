//! The arithmetic of budgets, by examples and by properties.

use proptest::prelude::*;

use super::*;

const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

fn limit(scope: BudgetScope, subject: &str, budget: u64) -> Limit<'_> {
    Limit { scope, subject: subject.into(), budget: NanoUsd(budget), period: Period::Month }
}

fn month(subject: &str) -> SubjectMonth {
    SubjectMonth { subject: subject.to_owned(), month: NOW.utc_month() }
}

fn knowing(spent: &[(&str, u64)]) -> Spending {
    let mut spending = Spending::default();
    let answers: Vec<_> = spent.iter().map(|(subject, spent)| (month(subject), NanoUsd(*spent))).collect();
    assert!(spending.insert(&answers, 0));
    spending
}

fn reserve(spending: &mut Spending, limits: &[Limit<'_>], most: u64) -> Result<(), Box<BudgetShortage>> {
    spending.reserve(limits, NanoUsd(most), NOW)
}

#[test]
fn a_reservation_holds_until_it_is_released() {
    let mut spending = knowing(&[("k", 40)]);
    let limits = [limit(BudgetScope::Key, "k", 100)];
    reserve(&mut spending, &limits, 50).unwrap();
    let shortage = reserve(&mut spending, &limits, 11).unwrap_err();
    assert_eq!((shortage.spent, shortage.reserved, shortage.left()), (NanoUsd(40), NanoUsd(50), NanoUsd(10)));
    assert!(!shortage.is_used_up());
    spending.settle("k", NanoUsd(50), NanoUsd(20));
    let shortage = reserve(&mut spending, &limits, 41).unwrap_err();
    assert_eq!((shortage.spent, shortage.reserved), (NanoUsd(60), NanoUsd(0)), "what is over is spent");
    reserve(&mut spending, &limits, 40).unwrap();
    spending.refresh([(month("k"), NanoUsd(60))]);
    spending.release("k", NanoUsd(20), true);
    spending.release("k", NanoUsd(40), false);
    reserve(&mut spending, &limits, 40).unwrap();
    assert_eq!(reserve(&mut spending, &limits, 1).unwrap_err().left(), NanoUsd(0));
}

#[test]
fn entries_that_are_not_missing_are_kept_until_reserving() {
    let mut spending = knowing(&[("k", 40)]);
    let limits = [limit(BudgetScope::Key, "k", 100)];
    spending.drop_idle();
    assert_eq!(spending.missing(&limits, NOW).0, []);
    spending.drop_idle();
    assert_eq!(spending.missing(&limits, NOW).0, []);
    spending.drop_idle();
    spending.drop_idle();
    assert_eq!(spending.missing(&limits, NOW).0, [month("k")]);
}

#[test]
fn key_and_app_are_reserved_together_or_not_at_all() {
    let mut spending = knowing(&[("k", 0), ("a", 95)]);
    let both = [limit(BudgetScope::Key, "k", 100), limit(BudgetScope::App, "a", 100)];
    let shortage = reserve(&mut spending, &both, 6).unwrap_err();
    assert_eq!((shortage.scope, shortage.left()), (BudgetScope::App, NanoUsd(5)));
    reserve(&mut spending, &both[..1], 100).unwrap();
    let shortage = reserve(&mut spending, &both, 5).unwrap_err();
    assert_eq!((shortage.scope, shortage.left()), (BudgetScope::Key, NanoUsd(0)), "the one with less");
}

#[test]
fn what_costs_nothing_always_fits() {
    let mut spending = knowing(&[("k", 500)]);
    let limits = [limit(BudgetScope::Key, "k", 100)];
    reserve(&mut spending, &limits, 0).unwrap();
    assert!(reserve(&mut spending, &limits, 1).unwrap_err().is_used_up());
}

#[test]
fn a_new_month_is_loaded_and_calls_under_way_count_in_it() {
    let mut spending = knowing(&[("k", 90)]);
    let limits = [limit(BudgetScope::Key, "k", 100)];
    reserve(&mut spending, &limits, 10).unwrap();
    let next = SubjectMonth { subject: "k".to_owned(), month: NOW.utc_month() + 1 };
    let (unknown, as_of) = spending.missing(&limits, NOW.next_utc_month());
    assert_eq!(unknown, std::slice::from_ref(&next));
    assert!(spending.insert(&[(next.clone(), NanoUsd(0))], as_of));
    assert_eq!(reserve(&mut spending, &limits, 91).unwrap_err().reserved, NanoUsd(10));
    reserve(&mut spending, &limits, 90).unwrap();
    // What the ledger says about the old month no longer matters.
    spending.refresh([(month("k"), NanoUsd(95))]);
    assert_eq!(reserve(&mut spending, &limits, 1).unwrap_err().spent, NanoUsd(0));
}

#[test]
fn outdated_answers_are_ignored() {
    let mut spending = knowing(&[("k", 90)]);
    spending.refresh([(month("k"), NanoUsd(80))]);
    let limits = [limit(BudgetScope::Key, "k", 100)];
    assert_eq!(reserve(&mut spending, &limits, 11).unwrap_err().spent, NanoUsd(90));
    // Requested before the refresh, answered after it.
    assert!(!spending.insert(&[(month("other"), NanoUsd(0))], 0));
}

#[test]
fn unused_entries_are_dropped_unless_they_have_reservations() {
    let mut spending = knowing(&[("held", 0), ("idle", 0)]);
    reserve(&mut spending, &[limit(BudgetScope::Key, "held", 9)], 0).unwrap();
    spending.drop_idle();
    assert_eq!(spending.by_subject.len(), 2, "both were just used");
    spending.drop_idle();
    assert_eq!(spending.subjects(), [month("held")]);
    spending.release("held", NanoUsd(0), false);
    spending.drop_idle();
    assert_eq!(spending.subjects(), []);
}

#[test]
fn after_an_invalidation_the_ledger_is_read_again() {
    let mut spending = knowing(&[("k", 1)]);
    let limits = [limit(BudgetScope::Key, "k", 100)];
    assert_eq!(spending.missing(&limits, NOW).0, []);
    spending.invalidate();
    assert_eq!(spending.missing(&limits, NOW).0, [month("k")]);
}

/// The possible events: a call begins (with which key, for how much), it ends (having cost which part of that), or the
/// ledger is written and read.
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
    /// Three keys of one app: whatever happens, no admission lets spending and reservations exceed a budget, nothing
    /// that would fit is refused, and in the end all reservations are released.
    #[test]
    fn no_order_of_events_overruns_a_budget(
        budgets in prop::array::uniform4(0_u64..200),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        const KEYS: [&str; 3] = ["k0", "k1", "k2"];
        let limits_of = |key: usize| [
            limit(BudgetScope::Key, KEYS[key], budgets[key]),
            limit(BudgetScope::App, "a", budgets[3]),
        ];
        let mut spending = Spending::default();
        // The model: what the ledger holds, the calls under way, and those that have ended but are not written yet.
        let mut ledger: HashMap<&str, u64> = HashMap::new();
        let mut open: Vec<(usize, u64)> = Vec::new();
        let mut unwritten: Vec<(usize, u64)> = Vec::new();
        let end = Step::End { which: 0, percent: 50 };
        let all = steps.iter().chain(std::iter::repeat_n(&end, 120)).chain([&Step::Flush, &Step::Flush]);
        for step in all {
            match *step {
                Step::Begin { key, most } => {
                    let limits = limits_of(key);
                    let (unknown, as_of) = spending.missing(&limits, NOW);
                    let answers: Vec<_> = unknown
                        .into_iter()
                        .map(|of| { let spent = ledger.get(of.subject.as_str()).copied(); (of, NanoUsd(spent.unwrap_or(0))) })
                        .collect();
                    prop_assert!(spending.insert(&answers, as_of));
                    let fits = limits.iter().all(|limit| {
                        let of = |calls: &[(usize, u64)]| -> u64 {
                            let mine = calls.iter().filter(|(key, _)| limit.subject == "a" || KEYS[*key] == limit.subject);
                            mine.map(|(_, amount)| amount).sum()
                        };
                        let taken = ledger.get(&*limit.subject).copied().unwrap_or(0) + of(&open) + of(&unwritten);
                        most == 0 || taken + most <= limit.budget.0
                    });
                    prop_assert_eq!(reserve(&mut spending, &limits, most).is_ok(), fits);
                    if fits {
                        open.push((key, most));
                    }
                }
                Step::End { which, percent } if !open.is_empty() => {
                    let (key, most) = open.swap_remove(which % open.len());
                    let actual = most * percent / 100;
                    for limit in limits_of(key) {
                        spending.settle(&limit.subject, NanoUsd(most), NanoUsd(actual));
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
                    let heard: Vec<_> = spending
                        .subjects()
                        .into_iter()
                        .map(|of| { let spent = ledger.get(of.subject.as_str()).copied(); (of, NanoUsd(spent.unwrap_or(0))) })
                        .collect();
                    spending.refresh(heard);
                    for (key, cost) in unwritten.drain(..) {
                        for limit in limits_of(key) {
                            spending.release(&limit.subject, NanoUsd(cost), true);
                        }
                    }
                    spending.drop_idle();
                }
            }
        }
        prop_assert!(spending.by_subject.is_empty(), "{:?}", spending);
        for limit in (0..3).flat_map(limits_of) {
            prop_assert!(ledger.get(&*limit.subject).copied().unwrap_or(0) <= limit.budget.0);
        }
    }
}
