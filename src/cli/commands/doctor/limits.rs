//! Is the store of rate limits usable?

use std::time::Duration;

use super::check::Check;
use super::clock::{self, ClockReading};
use crate::clock::Clock;
use crate::config::StorePlace;
use crate::limits::{LimitsStore, StoreCondition, examine_store};
use crate::os_error;

pub(super) const NAME: &str = "limits store";

/// The slowest response that is fine; each request with a key waits for one.
const SLOW_RESPONSE: Duration = Duration::from_millis(20);

/// Asks the store as a server would; without a shared store nothing can fail. `database` is its place, if known.
pub(super) async fn examine(
    store: &LimitsStore,
    database: Option<&StorePlace>,
) -> (Vec<Check>, Option<ClockReading>) {
    let LimitsStore::Shared(address) = store else {
        let check = match database {
            Some(StorePlace::Postgres(_)) => Check::note(NAME, "in the server's memory")
                .hint("if several servers use this database, set `limits_url` to share their limits"),
            _ => Check::ok(NAME, "in the server's memory; day counts are kept in ledger.db"),
        };
        return (vec![check], None);
    };
    match examine_store(address).await {
        Ok(condition) => {
            let shown = address.to_string();
            let is_on_this_machine = shown.contains("unix://") || clock::is_on_this_machine(&shown);
            let who = "the limits store".to_owned();
            let reference = ClockReading {
                who,
                theirs: condition.clock,
                ours: Clock::system().now(),
                is_on_this_machine,
            };
            (vec![judge(&shown, &condition)], Some(reference))
        }
        Err(reason) => {
            let reason = os_error::without_numbers(reason);
            let check = Check::failed(NAME, format!("{address} cannot be used: {reason}"))
                .hint("until then, each server applies the same limits on its own")
                .hint("check `limits_url` in server.toml or MK_LIMITS_URL (redis:// without TLS, rediss:// with \
                    it), that the store runs, and that its user has the rights listed in `mk help clustering`");
            (vec![check], None)
        }
    }
}

fn judge(address: &str, condition: &StoreCondition) -> Check {
    let took = condition.took;
    let message = format!("{address} answers after {:.1} ms", took.as_secs_f64() * 1000.0);
    if let Some(policy) = &condition.evicts_by {
        let message =
            format!("{message}, but may drop counts when its memory is full (maxmemory-policy {policy})");
        return Check::warning(NAME, message).hint("set maxmemory-policy to noeviction there");
    }
    if took > SLOW_RESPONSE {
        return Check::warning(NAME, message)
            .hint("every request with a key waits for it: move it closer to this server");
    }
    Check::ok(NAME, message)
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;
    use crate::clock::Time;

    #[test]
    fn a_store_that_is_slow_or_evicts_gets_a_warning() {
        let condition = |took: u64, policy: Option<&str>| StoreCondition {
            took: Duration::from_micros(took),
            clock: Time::from_unix_ms(0),
            evicts_by: policy.map(str::to_owned),
        };
        let quick = judge("redis://db:6379", &condition(150, None));
        assert_eq!((quick.state, &*quick.message), (Status::Ok, "redis://db:6379 answers after 0.1 ms"));
        assert_eq!(judge("", &condition(30_000, None)).state, Status::Warning);
        let forgets = judge("", &condition(150, Some("allkeys-lru")));
        assert_eq!(forgets.state, Status::Warning);
        assert!(forgets.message.contains("allkeys-lru"), "{forgets:?}");
    }
}
