//! Matches the ledger's rows of one request with the calls on the provider's list.
//!
//! Calls of one request run concurrently, so the order of neither says which belong together. A pairing is sought in
//! which each call has a row with the expected contents; whatever is left over is wrong.

use super::ledger::Row;
use crate::provider::Called;

/// The calls without a row, and the rows without a call, in the best possible pairing.
pub(super) fn left_over<'a>(
    calls: &[&'a Called],
    rows: &[&'a Row],
    is_cancellable: impl Fn(&Called) -> bool,
) -> (Vec<&'a Called>, Vec<&'a Row>) {
    let mut call_of_row: Vec<Option<usize>> = vec![None; rows.len()];
    let fits = |call| rows.iter().map(|row| fits(call, row, is_cancellable(call))).collect();
    let fits: Vec<Vec<bool>> = calls.iter().map(|call| fits(call)).collect();
    let unpaired: Vec<&Called> = (0..calls.len())
        .filter(|call| !pair(*call, &fits, &mut call_of_row, &mut vec![false; rows.len()]))
        .map(|call| calls[call])
        .collect();
    let free = rows.iter().zip(&call_of_row).filter(|(_, call)| call.is_none());
    (unpaired, free.map(|(row, _)| *row).collect())
}

/// Finds a row for a call, if necessary by finding another one for the call that has it (Kuhn's algorithm).
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

/// Whether a row has the contents that a call requires. For a call that the server cancelled, because its caller left,
/// its key was revoked, its response did not resume a broken stream, or its vote was no longer needed, the row says
/// `cancelled` and the tokens until then, which only the server knows.
fn fits(call: &Called, row: &Row, is_cancellable: bool) -> bool {
    if call.model != row.model {
        return false;
    }
    let is_as_expected = row.outcome == call.expected.outcome && row.tokens == call.expected.tokens;
    let (prompt, completion) = row.tokens;
    let is_cancelled =
        row.outcome == "cancelled" && (1..=call.most.0).contains(&prompt) && completion <= call.most.1;
    is_as_expected || (is_cancellable && is_cancelled)
}
