//! The minute windows of client addresses, in bounded memory.
//!
//! An IPv6 client has at least a /64 to itself and may use a new address for every request, so the /64 is what is
//! counted. When a shard is full, idle addresses are evicted first, then those that were quiet for the longest time: a
//! flood of addresses gains at most fresh windows, never our memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use super::window::Windows;
use super::{Decision, LimitState, Quota};
use crate::clock::Time;

/// The capacity for addresses of one kind in one shard; over 64 shards about 100,000.
const MAX_PER_SHARD: usize = 1_563;

/// The addresses of one kind in one shard.
#[derive(Default)]
pub(super) struct Addresses {
    windows: HashMap<IpAddr, Windows>,
}

/// The address that is counted as one client: an IPv4 address, or the /64 of an IPv6 address.
pub(super) fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

impl Addresses {
    /// Counts a request of `client` (as [`client_of`] returns it), or refuses it.
    pub(super) fn take(&mut self, client: IpAddr, quota: Quota, now: Time) -> Decision {
        self.windows_of(client, now).take(quota, now)
    }

    /// Records a decision of the shared store.
    pub(super) fn record(
        &mut self,
        client: IpAddr,
        quota: Quota,
        now: Time,
        is_admitted: bool,
        day: (i64, u32),
    ) {
        self.windows_of(client, now).record(quota, now, is_admitted, day);
    }

    /// The state without counting.
    pub(super) fn peek(&mut self, client: IpAddr, quota: Quota, now: Time) -> LimitState {
        match self.windows.get_mut(&client) {
            Some(windows) => windows.peek(quota, now),
            None => Windows::new(now).peek(quota, now),
        }
    }

    fn windows_of(&mut self, client: IpAddr, now: Time) -> &mut Windows {
        if self.windows.len() >= MAX_PER_SHARD && !self.windows.contains_key(&client) {
            self.make_room(now);
        }
        self.windows.entry(client).or_insert_with(|| Windows::new(now))
    }

    /// Drops addresses without a request in the last minute.
    pub(super) fn drop_idle(&mut self, now: Time) {
        self.windows.retain(|_, windows| !windows.is_idle(now));
    }

    /// Drops the idle addresses, or else the quietest quarter: a batch, so that a flood does not trigger a search per
    /// address.
    fn make_room(&mut self, now: Time) {
        self.drop_idle(now);
        if self.windows.len() < MAX_PER_SHARD {
            return;
        }
        let mut quiet: Vec<u32> = self.windows.values().map(Windows::quiet_ms).collect();
        let kept = quiet.len() - quiet.len() / 4;
        let (_, too_quiet, _) = quiet.select_nth_unstable(kept);
        let too_quiet = *too_quiet;
        self.windows.retain(|_, windows| windows.quiet_ms() < too_quiet);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const QUOTA: Quota = Quota { per_minute: 2, per_day: 0 };

    fn client(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    fn remaining(addresses: &mut Addresses, number: u32, now: Time) -> u32 {
        addresses.peek(client(number), QUOTA, now).headline().remaining
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let of = |text: &str| client_of(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
    }

    #[test]
    fn a_flood_of_addresses_stays_bounded_and_evicts_the_quietest() {
        let mut addresses = Addresses::default();
        let flood = u32::try_from(MAX_PER_SHARD).unwrap() * 20;
        for number in 0..flood {
            let now = NOW.plus(Duration::from_millis(u64::from(number)));
            addresses.take(client(number), QUOTA, now);
            assert!(addresses.windows.len() <= MAX_PER_SHARD);
        }
        let end = NOW.plus(Duration::from_millis(u64::from(flood)));
        assert_eq!(remaining(&mut addresses, flood - 1, end), 1, "the latest is remembered");
        assert_eq!(remaining(&mut addresses, 0, end), 2, "the first is forgotten");
    }

    #[test]
    fn idle_addresses_are_evicted_first() {
        let mut addresses = Addresses::default();
        let full = u32::try_from(MAX_PER_SHARD).unwrap();
        addresses.take(client(0), QUOTA, NOW.plus(Duration::from_secs(30)));
        for number in 1..full {
            addresses.take(client(number), QUOTA, NOW);
        }
        let later = NOW.plus(Duration::from_secs(65));
        addresses.take(client(full), QUOTA, later);
        assert_eq!(addresses.windows.len(), 2);
        assert_eq!(remaining(&mut addresses, 0, later), 1);
    }

    #[test]
    fn peeking_stores_nothing() {
        let mut addresses = Addresses::default();
        assert_eq!(remaining(&mut addresses, 1, NOW), 2);
        assert!(addresses.windows.is_empty());
    }
}
