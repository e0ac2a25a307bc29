//! Which row of the ledger is which call of the provider's list, for one request.
//!
//! Calls of one request run side by side, so that neither order tells. A pairing is looked for in which each call has
//! a row that says of it what has to be said; whatever is left over then is wrong.

use super::ledger::Row;
use crate::provider::Called;

/// Calls without a row, and rows without a call, in the best pairing that there is.
pub(super) fn left_over<'a>(
    calls: &[&'a Called],
    rows: &[&'a Row],
    is_given_up: bool,
) -> (Vec<&'a Called>, Vec<&'a Row>) {
    let mut call_of_row: Vec<Option<usize>> = vec![None; rows.len()];
    let fits: Vec<Vec<bool>> =
        calls.iter().map(|call| rows.iter().map(|row| fits(call, row, is_given_up)).collect()).collect();
    let unpaired: Vec<&Called> = (0..calls.len())
        .filter(|call| !pair(*call, &fits, &mut call_of_row, &mut vec![false; rows.len()]))
        .map(|call| calls[call])
        .collect();
    let free = rows.iter().zip(&call_of_row).filter(|(_, call)| call.is_none());
    (unpaired, free.map(|(row, _)| *row).collect())
}

/// Finds a row for a call, if need be by finding another one for the call that has it (Kuhn's algorithm).
fn pair(call: usize, fits: &[Vec<bool>], call_of_row: &mut [Option<usize>], was_tried: &mut [bool]) -> bool {
    for row in 0..call_of_row.len() {
        if !fits[call][row] || was_tried[row] {
            continue;
        }
        was_tried[row] = true;
        let is_free = match call_of_row[row] {
            None => true,
            Some(other) => pair(other, fits, call_of_row, was_tried),
        };
        if is_free {
            call_of_row[row] = Some(call);
            return true;
        }
    }
    false
}

/// Whether a row says of a call what has to be said. Of one that the server gave up, because its caller left, its
/// key was revoked, or it did not go on where a stream broke, it says `cancelled` and what had come until then, which
/// nobody else knows.
fn fits(call: &Called, row: &Row, is_given_up: bool) -> bool {
    if call.model != row.model {
        return false;
    }
    let is_as_expected = row.outcome == call.expected.outcome && row.tokens == call.expected.tokens;
    let (prompt, completion) = row.tokens;
    let is_cancelled =
        row.outcome == "cancelled" && (1..=call.most.0).contains(&prompt) && completion <= call.most.1;
    is_as_expected || (is_given_up && is_cancelled)
}
