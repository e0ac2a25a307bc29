//! Examines the limits store, for operators.

use std::time::{Duration, Instant};

use super::{Answer, PROBES, StoreAddress, StoreError, connect, probe};
use crate::clock::Time;

/// The condition of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCondition {
    /// The time from a query to its answer.
    pub took: Duration,
    /// The time on its clock at the answer.
    pub clock: Time,
    /// Its eviction policy, if it may evict counts when its memory is full.
    pub evicts_by: Option<String>,
}

/// Probes the store by counting requests of keys that do not exist, and reads its condition.
///
/// # Errors
/// Why it cannot be used.
pub async fn examine(address: &StoreAddress) -> Result<StoreCondition, String> {
    let mut connection = connect(address).await.map_err(|fault| fault.to_string())?;
    // The script may have to be uploaded the first time.
    probe(&mut connection).await.map_err(|fault| fault.to_string())?;
    let begun = Instant::now();
    let answer = probe(&mut connection).await.map_err(|fault| fault.to_string())?;
    let took = begun.elapsed() / PROBES;
    let Answer::Decided { decision, .. } = answer else { return Err(StoreError::InvalidReply.to_string()) };
    // Without the permission for this command, nothing is reported about memory.
    let memory: Option<String> =
        redis::cmd("INFO").arg("memory").query_async(&mut connection).await.unwrap_or_default();
    let evicts_by = memory.as_deref().and_then(eviction);
    let clock = Time::from_unix_ms(decision.state().now.saturating_mul(1000));
    Ok(StoreCondition { took, clock, evicts_by })
}

/// The policy that evicts keys still in use, if there is one.
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
    fn a_store_that_may_evict_counts_is_detected() {
        let memory = |bytes: u32, policy: &str| {
            format!("# Memory\r\nmaxmemory:{bytes}\r\nmaxmemory_human:0B\r\nmaxmemory_policy:{policy}\r\n")
        };
        assert_eq!(eviction(&memory(1000, "allkeys-lru")), Some("allkeys-lru".to_owned()));
        assert_eq!(eviction(&memory(0, "allkeys-lru")), None);
        assert_eq!(eviction(&memory(1000, "noeviction")), None);
        assert_eq!(eviction(""), None);
    }
}
