//! How the limits' store is, for whoever looks after it.

use std::time::{Duration, Instant};

use super::{Answer, Fault, PROBES, StoreAddress, connect, probe};
use crate::clock::Time;

/// How the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCondition {
    /// From a question to its answer.
    pub took: Duration,
    /// Its time of day, at the answer.
    pub clock: Time,
    /// Its policy, if it may drop counts when its memory is full.
    pub evicts_by: Option<String>,
}

/// Counts a request that nobody has made, and asks how the store is.
///
/// # Errors
/// Why it cannot be used.
pub async fn examine(address: &StoreAddress) -> Result<StoreCondition, String> {
    let mut connection = connect(address).await.map_err(|fault| fault.to_string())?;
    // The first time the script may have to be sent.
    probe(&mut connection).await.map_err(|fault| fault.to_string())?;
    let begun = Instant::now();
    let answer = probe(&mut connection).await.map_err(|fault| fault.to_string())?;
    let took = begun.elapsed() / PROBES;
    let Answer::Decided { decision, .. } = answer else { return Err(Fault::Senseless.to_string()) };
    // Who may not ask this is told nothing of it.
    let memory: Option<String> =
        redis::cmd("INFO").arg("memory").query_async(&mut connection).await.unwrap_or_default();
    let evicts_by = memory.as_deref().and_then(eviction);
    let clock = Time::from_unix_ms(decision.state().now.saturating_mul(1000));
    Ok(StoreCondition { took, clock, evicts_by })
}

/// The policy by which keys are dropped that somebody still needs, if there is one.
fn eviction(memory: &str) -> Option<String> {
    let field = |name: &str| {
        memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let policy = field("maxmemory_policy")?;
    let is_bounded = field("maxmemory").is_some_and(|bytes| bytes != "0");
    (is_bounded && policy != "noeviction").then(|| policy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_may_drop_counts_is_noticed() {
        let memory = |bytes: u32, policy: &str| {
            format!("# Memory\r\nmaxmemory:{bytes}\r\nmaxmemory_human:0B\r\nmaxmemory_policy:{policy}\r\n")
        };
        assert_eq!(eviction(&memory(1000, "allkeys-lru")), Some("allkeys-lru".to_owned()));
        assert_eq!(eviction(&memory(0, "allkeys-lru")), None);
        assert_eq!(eviction(&memory(1000, "noeviction")), None);
        assert_eq!(eviction(""), None);
    }
}
