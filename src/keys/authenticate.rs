//! Authentication: decides whether the bearer of a key is admitted.
//!
//! The order of checks is fixed, so that a key with several faults is always refused for the same one. A malformed key
//! is refused without a look-up, with the same response as an unknown one.
//!
//! Nothing here compares in constant time, and nothing needs to: the look-up compares SHA-256 hashes, and learning from
//! its timing how far two hashes agree does not help to find a key with that hash.

use std::net::IpAddr;
use std::sync::Arc;

use super::{addresses, mint, service_of, state_of};
use crate::api::Service;
use crate::api::console::KeyState;
use crate::clock::Time;
use crate::storage::{Error, KeyRow, Store};

/// Why a key is refused, in the order of checks.
#[derive(Debug)]
pub enum Denied {
    /// No key was sent.
    Missing,
    /// Malformed or unknown; callers cannot tell the two apart.
    Invalid,
    /// Revoked, whatever else is wrong with it.
    Revoked,
    /// Past its expiry.
    Expired,
    /// For another service.
    WrongService,
    /// Not allowed from this address.
    AddressNotAllowed,
    /// The session does not exist or has ended.
    InvalidSession,
    /// The store could not be read.
    Unavailable(Error),
}

impl From<Error> for Denied {
    fn from(cause: Error) -> Self {
        Self::Unavailable(cause)
    }
}

/// Decides whether the bearer of `presented` may use `service` from `address`. An empty string counts as no key.
pub async fn authenticate(
    store: &Store,
    presented: Option<&str>,
    service: Service,
    address: IpAddr,
    now: Time,
) -> Result<Arc<KeyRow>, Denied> {
    let row = look_up(store, presented).await?;
    admit(&row, Some(service), address, now)?;
    Ok(row)
}

/// Decides whether the bearer of `presented` may ask about this very key, whatever service it is for.
pub async fn identify(
    store: &Store,
    presented: Option<&str>,
    address: IpAddr,
    now: Time,
) -> Result<Arc<KeyRow>, Denied> {
    let row = look_up(store, presented).await?;
    admit(&row, None, address, now)?;
    Ok(row)
}

async fn look_up(store: &Store, presented: Option<&str>) -> Result<Arc<KeyRow>, Denied> {
    let key = presented.filter(|text| !text.is_empty()).ok_or(Denied::Missing)?;
    if service_of(key).is_none() {
        return Err(Denied::Invalid);
    }
    let found = store.look_up_key(&mint::hash(key)).await?;
    found.ok_or(Denied::Invalid)
}

/// Whether a known key may be used now, from this address, and for this service if one is named.
pub(super) fn admit(
    row: &KeyRow,
    service: Option<Service>,
    address: IpAddr,
    now: Time,
) -> Result<(), Denied> {
    match state_of(row, now) {
        KeyState::Revoked => return Err(Denied::Revoked),
        KeyState::Expired => return Err(Denied::Expired),
        KeyState::Active => {}
    }
    if service.is_some_and(|service| service != row.service) {
        return Err(Denied::WrongService);
    }
    if !addresses::allow(&row.addresses, address) {
        return Err(Denied::AddressNotAllowed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::keys::{NewKey, create};
    use crate::secret::{ExposeSecret, SecretString};

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn waited<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    fn made(store: &Store, change: impl FnOnce(&mut NewKey)) -> (SecretString, KeyRow) {
        let mut new = NewKey::new(Service::Verify, "default");
        change(&mut new);
        create(store, &new, NOW).unwrap()
    }

    fn denied(store: &Store, key: &SecretString, service: Service, now: Time) -> Denied {
        waited(authenticate(store, Some(key.expose_secret()), service, HOME, now)).unwrap_err()
    }

    #[test]
    fn a_valid_key_is_admitted_until_it_expires() {
        let store = Store::in_memory(NOW).unwrap();
        let ends = NOW.plus(Duration::from_mins(1));
        let (key, row) = made(&store, |new| new.expires_at = Some(ends));
        let passed =
            waited(authenticate(&store, Some(key.expose_secret()), Service::Verify, HOME, NOW)).unwrap();
        assert_eq!(*passed, row);
        assert!(matches!(denied(&store, &key, Service::Verify, ends), Denied::Expired));
    }

    #[test]
    fn missing_malformed_and_unknown_keys_are_refused() {
        let store = Store::in_memory(NOW).unwrap();
        let ask = |key| waited(authenticate(&store, key, Service::Verify, HOME, NOW));
        assert!(matches!(ask(None), Err(Denied::Missing)));
        assert!(matches!(ask(Some("")), Err(Denied::Missing)));
        assert!(matches!(ask(Some("mk_verify_tooshort")), Err(Denied::Invalid)));
        let unknown = crate::keys::mint(Service::Verify).unwrap();
        assert!(matches!(ask(Some(unknown.key.expose_secret())), Err(Denied::Invalid)));
    }

    #[test]
    fn the_first_fault_in_the_order_of_checks_is_reported() {
        let store = Store::in_memory(NOW).unwrap();
        let ends = NOW.plus(Duration::from_mins(1));
        let (key, row) = made(&store, |new| {
            new.expires_at = Some(ends);
            new.addresses = vec!["192.0.2.0/24".to_owned()];
        });
        assert!(matches!(denied(&store, &key, Service::Verify, NOW), Denied::AddressNotAllowed));
        assert!(matches!(denied(&store, &key, Service::Console, NOW), Denied::WrongService));
        assert!(matches!(denied(&store, &key, Service::Console, ends), Denied::Expired));
        store.revoke_key(&row.id, NOW).unwrap();
        assert!(matches!(denied(&store, &key, Service::Console, ends), Denied::Revoked));
    }
}
