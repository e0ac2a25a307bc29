//! The order in which a model is shown the options of a claim.
//!
//! Options are shuffled for each claim and model, and answers mapped back, so that a model's preference for a letter
//! cannot produce a consensus. That includes "None of these", which is a vote. Only "Cannot be determined" keeps its
//! place at the end: a preference for the last letter merely produces abstentions. The order is derived from the ids,
//! so that a verification can be reproduced.

use sha2::{Digest, Sha256};

use crate::verify::claim::Claim;

/// The order in which a model is shown a claim's options, as positions in the claim's own order. `SHA-256` of the
/// ids drives a Fisher–Yates shuffle: its eight draws of 32 bits suffice for the seven options that move, and their
/// bias (below 2⁻²⁹) is negligible.
pub(super) fn option_order(request: &str, claim: &Claim, model: &str) -> Vec<usize> {
    let seed = Sha256::digest(format!("{request}\n{}\n{model}", claim.id));
    let mut order: Vec<usize> = (0..claim.options().len()).collect();
    for (draw, last) in seed.chunks_exact(4).zip((1..claim.undetermined()).rev()) {
        let random = draw.iter().fold(0_usize, |number, &byte| (number << 8) | usize::from(byte));
        order.swap(last, random % (last + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::verify::Span;
    use proptest::prelude::*;

    fn claim(rivals: usize) -> Claim {
        let rivals = (0..rivals).map(|n| format!("rival {n}")).collect();
        let text = |text: &str| text.to_owned();
        Claim::new(0, text("claim"), text("question"), text("claimed"), rivals, (0..0, Span::default()))
    }

    #[test]
    fn every_voting_option_is_shown_under_every_letter_about_equally_often() {
        let claim = claim(3);
        let mut counts = [[0_u32; 5]; 5];
        for n in 0..5_000 {
            let order = option_order(&format!("ver_{n}"), &claim, "a/b");
            assert_eq!(order[5], claim.undetermined());
            (0..5).for_each(|at| counts[order[at]][at] += 1);
        }
        assert!(counts.as_flattened().iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_order_depends_on_request_and_model_and_can_be_reproduced() {
        let claim = claim(5);
        let shown = |request: &str, model: &str| option_order(request, &claim, model);
        assert_eq!(shown("ver_1", "a/b"), shown("ver_1", "a/b"));
        assert_ne!(shown("ver_1", "a/b"), shown("ver_2", "a/b"));
        assert_ne!(shown("ver_1", "a/b"), shown("ver_1", "a/c"));
    }

    proptest! {
        #[test]
        fn an_order_is_a_permutation(request in any::<String>(), model in any::<String>(), rivals in 1_usize..6) {
            let claim = claim(rivals);
            let mut order = option_order(&request, &claim, &model);
            order.sort_unstable();
            prop_assert_eq!(order, (0..rivals + 3).collect::<Vec<_>>());
        }
    }
}
