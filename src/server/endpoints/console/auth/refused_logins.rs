//! Refused logins, in the audit log: who tries keys should be seen by those who read it.
//!
//! What must hold: however many logins are refused, and from however many addresses, the log grows by at most
//! [`MAX_ENTRIES`] entries an hour. An entry says how many before it were left out.

use std::sync::Mutex;
use std::time::Duration;

use super::write;
use crate::api::console::Channel;
use crate::clock::Time;
use crate::lock::Lock;
use crate::server::reply::ApiError;
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};

/// How many refused logins of an hour get an entry.
const MAX_ENTRIES: u32 = 60;
const HOUR: Duration = Duration::from_hours(1);

/// Counts the refused logins of the running hour.
#[derive(Debug, Default)]
pub(in crate::server) struct RefusedLogins(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// When the hour began.
    since: Option<Time>,
    entries: u32,
    left_out: u64,
}

impl RefusedLogins {
    /// Counts one; returns whether it gets an entry, with the number of those left out before it.
    fn count(&self, now: Time) -> Option<u64> {
        // Poisoning is ignored: the counts are right after every step.
        let mut counts = self.0.locked();
        if counts.since.is_none_or(|since| now >= since.plus(HOUR)) {
            (counts.since, counts.entries) = (Some(now), 0);
        }
        if counts.entries >= MAX_ENTRIES {
            counts.left_out += 1;
            return None;
        }
        counts.entries += 1;
        Some(std::mem::take(&mut counts.left_out))
    }
}

/// Writes an entry if this error refuses a login for the key or token that was presented.
pub(in crate::server::endpoints::console) async fn note(
    context: &ServerState,
    incoming: &Incoming,
    error: &ApiError,
) {
    let now = context.app.clock.now();
    if !error.is_denial() {
        return;
    }
    let Some(left_out) = context.refused_logins.count(now) else { return };
    let (actor, reason) = (gate::anonymous_actor(Channel::Dashboard, incoming), error.code().to_owned());
    let written = write(context, move |app| {
        let noted = app.store.acting_as(actor).note_refused_login(&reason, left_out, now);
        noted.map_err(|cause| ApiError::store_failed(&cause))
    });
    // The refusal stands all the same; that the store has failed is logged by then.
    let _ = written.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_grows_by_a_bounded_number_of_entries_an_hour() {
        let (logins, start) = (RefusedLogins::default(), Time::from_unix_ms(1_795_202_760_000));
        let noted = (0..1000).filter(|_| logins.count(start).is_some()).count();
        assert_eq!(noted, MAX_ENTRIES as usize);
        assert_eq!(logins.count(start.plus(HOUR.saturating_sub(Duration::from_millis(1)))), None);
        assert_eq!(logins.count(start.plus(HOUR)), Some(941));
        assert_eq!(logins.count(start.plus(HOUR)), Some(0));
    }
}
