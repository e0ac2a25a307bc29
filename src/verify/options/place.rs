//! Which of six rivals are shown beside a number or a date (CONTRACT 4.11).
//!
//! Three rivals as an extractor gives them put the claimed value in the middle nearly always, so that whoever guesses the
//! middle is right half the time. Here the claimed value's rank among the four that are shown is as likely the first as any
//! other, and what the extractor believes right is always among them: a right answer that is listed and then dropped would
//! make "None of these" the right one.

use std::cmp::Ordering;

use crate::verify::values::Choice;

/// How many rivals are shown.
const SHOWN: usize = 3;

/// Three of the rivals, smallest first, by their positions. `best` is what the extractor believes right, by its position among the rivals;
/// `None` stands for the claimed value, or for no belief. `random` gives a number below its argument, each as likely.
///
/// With `best` the claimed value: 0 to 3 smaller ones, a quarter each. With a smaller `best`: 1, 2, 3 smaller ones at 25,
/// 25, 50 %; with a larger one mirrored. Where a side has too few, what is left of these is as likely as before. Rivals
/// without an order to the claimed value: `best` and the first ones, as given.
pub fn choose(
    claimed: &Choice<'_>,
    rivals: &[Choice<'_>],
    best: Option<usize>,
    random: &mut impl FnMut(usize) -> usize,
) -> Vec<usize> {
    let best = best.filter(|best| *best < rivals.len());
    let Some((smaller, larger)) = split(claimed, rivals) else {
        let others = (0..rivals.len()).filter(|at| Some(*at) != best);
        return best.into_iter().chain(others).take(SHOWN).collect();
    };
    let shown = SHOWN.min(smaller.len() + larger.len());
    // Of four parts: how many each number of smaller ones gets.
    let weights: [usize; SHOWN + 1] = match best {
        None => [1, 1, 1, 1],
        Some(best) if smaller.contains(&best) => [0, 1, 1, 2],
        Some(_) => [2, 1, 1, 0],
    };
    let can = |count: usize| count <= smaller.len() && count <= shown && shown - count <= larger.len();
    let weights: Vec<usize> =
        weights.iter().enumerate().map(|(count, weight)| if can(count) { *weight } else { 0 }).collect();
    let total: usize = weights.iter().sum();
    let count = if total == 0 {
        let least = usize::from(best.is_some_and(|best| smaller.contains(&best)));
        (least..=shown).find(|count| can(*count)).unwrap_or_else(|| smaller.len().min(shown))
    } else {
        let mut drawn = random(total);
        weights
            .iter()
            .position(|weight| {
                if drawn < *weight {
                    true
                } else {
                    drawn -= weight;
                    false
                }
            })
            .unwrap_or(0)
    };
    let mut chosen = draw(smaller, count, best, random);
    chosen.extend(draw(larger, shown - count, best, random));
    chosen
}

/// How many rivals are smaller and how many larger than the claimed value; `None` if one has no order to it.
pub fn sides(claimed: &Choice<'_>, rivals: &[Choice<'_>]) -> Option<(usize, usize)> {
    split(claimed, rivals).map(|(smaller, larger)| (smaller.len(), larger.len()))
}

/// The rivals on each side, each in order.
fn split(claimed: &Choice<'_>, rivals: &[Choice<'_>]) -> Option<(Vec<usize>, Vec<usize>)> {
    let (mut smaller, mut larger) = (Vec::new(), Vec::new());
    for (at, rival) in rivals.iter().enumerate() {
        match rival.order(claimed)? {
            Ordering::Less => smaller.push(at),
            Ordering::Greater => larger.push(at),
            Ordering::Equal => {}
        }
    }
    for side in [&mut smaller, &mut larger] {
        side.sort_by(|one, other| rivals[*one].order(&rivals[*other]).unwrap_or(Ordering::Equal));
    }
    Some((smaller, larger))
}

/// So many of a side, `best` among them if it is of that side, each other as likely, in their order.
fn draw(
    side: Vec<usize>,
    count: usize,
    best: Option<usize>,
    random: &mut impl FnMut(usize) -> usize,
) -> Vec<usize> {
    let mut left = side;
    while left.len() > count {
        let can_go: Vec<usize> = (0..left.len()).filter(|at| Some(left[*at]) != best).collect();
        if can_go.is_empty() {
            break;
        }
        left.remove(can_go[random(can_go.len()).min(can_go.len() - 1)]);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIVALS: [&str; 6] = ["1900", "1881", "1885", "1893", "1887", "1897"];

    /// How often the claimed value has each rank among the four shown, and `best` is shown, of all that can be drawn.
    fn ranks(best: Option<usize>) -> ([usize; 4], usize) {
        let (claimed, rivals) = (Choice::new("1889"), RIVALS.map(Choice::new));
        let (mut ranks, mut with_best) = ([0; 4], 0);
        // A generator of all draws in turn would be long: this one is even enough to count by.
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((state >> 33) % below as u64).unwrap()
        };
        for _ in 0..8_000 {
            let shown = choose(&claimed, &rivals, best, &mut random);
            assert_eq!(shown.len(), 3);
            assert!(shown.is_sorted_by_key(|at| RIVALS[*at]));
            ranks[shown.iter().filter(|at| RIVALS[**at] < "1889").count()] += 1;
            with_best += usize::from(best.is_none_or(|best| shown.contains(&best)));
        }
        (ranks, with_best)
    }

    #[test]
    fn each_rank_of_the_claimed_value_is_as_likely_as_said_and_best_is_always_shown() {
        for (best, expected) in
            [(None, [25, 25, 25, 25]), (Some(1), [0, 25, 25, 50]), (Some(0), [50, 25, 25, 0])]
        {
            let (ranks, with_best) = ranks(best);
            assert_eq!(with_best, 8_000);
            for (rank, percent) in ranks.iter().zip(expected) {
                assert!(rank.abs_diff(percent * 80) < 160, "{best:?}: {ranks:?}");
            }
        }
    }

    #[test]
    fn too_few_or_unordered_rivals_are_shown_as_they_are() {
        fn shown<'r>(claimed: &str, rivals: &[&'r str], best: Option<usize>) -> Vec<&'r str> {
            let choices: Vec<Choice<'_>> = rivals.iter().copied().map(Choice::new).collect();
            let chosen = choose(&Choice::new(claimed), &choices, best, &mut |below| below - 1);
            chosen.into_iter().map(|at| rivals[at]).collect()
        }
        assert_eq!(shown("5", &["6", "7", "8", "9"], Some(3)), ["6", "7", "9"]);
        assert_eq!(shown("5", &["4", "6"], None), ["4", "6"]);
        assert_eq!(shown("Paris", &["Rome", "Bonn", "Oslo", "Kyiv"], Some(3)), ["Kyiv", "Rome", "Bonn"]);
        assert_eq!(shown("5", &[], None), Vec::<&str>::new());
        let claimed = Choice::new("1889");
        assert_eq!(sides(&claimed, &RIVALS.map(Choice::new)), Some((3, 3)));
        assert_eq!(sides(&claimed, &[Choice::new("Paris")]), None);
    }
}
