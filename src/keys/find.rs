//! Finds the key that a person means: by its id, the beginning of its id, its name, its last four characters, or the
//! key itself.

use super::{mint, service_of};
use crate::api::console::{Key, KeyState};
use crate::storage::{Error, KeyRow, Store};

/// A shorter prefix of an id says next to nothing.
const MIN_ID_PREFIX: usize = "key_".len() + 4;

/// Why no single key was found. Never quotes the search text, which may have been a key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FindError {
    /// No key matches.
    #[error("no such key")]
    NotFound,
    /// Several keys match: these.
    #[error("several keys match")]
    Ambiguous(Vec<Key>),
}

/// The one of `keys` that `text` means. Among several matches it is the only active one, or else the only one that is
/// not revoked: a name passes to the key that replaces another.
pub fn find(keys: &[Key], text: &str) -> Result<Key, FindError> {
    let text = text.trim();
    if let Some(key) = keys.iter().find(|key| key.id == text) {
        return Ok(key.clone());
    }
    let mut fitting: Vec<&Key> = keys.iter().filter(|key| fits(key, text)).collect();
    let active: Vec<&str> =
        fitting.iter().filter(|key| key.state == KeyState::Active).map(|key| &*key.id).collect();
    // A replaced key may still work for a while; its name is its successor's.
    fitting.retain(|key| key.replaced_by.as_deref().is_none_or(|new| !active.contains(&new)));
    if fitting.is_empty() {
        return Err(FindError::NotFound);
    }
    let only = |is_meant: fn(KeyState) -> bool| {
        let mut meant = fitting.iter().filter(|key| is_meant(key.state));
        meant.next().filter(|_| meant.next().is_none())
    };
    let found = only(|_| true)
        .or_else(|| only(|state| state == KeyState::Active))
        .or_else(|| only(|state| state != KeyState::Revoked));
    match found {
        Some(key) => Ok((*key).clone()),
        None => Err(FindError::Ambiguous(fitting.into_iter().cloned().collect())),
    }
}

fn fits(key: &Key, text: &str) -> bool {
    let begins_its_id = text.len() >= MIN_ID_PREFIX && key.id.starts_with(text);
    begins_its_id || key.last4 == text || key.name.as_deref() == Some(text)
}

/// The row of the key with this full text, last use included; `None` if no app ever had it.
pub fn by_full_text(store: &Store, key: &str) -> Result<Option<KeyRow>, Error> {
    let key = key.trim();
    if service_of(key).is_none() {
        return Ok(None);
    }
    let found = store.key_by_hash(&mint::hash(key))?;
    found.map(|row| store.key(&row.id)).transpose()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::Service;
    use crate::clock::Time;
    use crate::keys::{self, NewKey, create};
    use crate::secret::{ExposeSecret, SecretString};
    use crate::storage::KeyFilter;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn ci(store: &Store) -> (SecretString, KeyRow) {
        let mut wanted = NewKey::new(Service::Verify, "default");
        wanted.name = Some("ci".to_owned());
        create(store, &wanted, NOW).unwrap()
    }

    fn all(store: &Store) -> Vec<Key> {
        let rows = store.keys(&KeyFilter { revoked_too: true, ..KeyFilter::default() }).unwrap();
        keys::records(store, &rows, NOW).unwrap()
    }

    #[test]
    fn a_key_is_found_by_all_its_names() {
        let store = Store::in_memory(NOW).unwrap();
        let (_, row) = ci(&store);
        let prefix = &row.id[..row.id.len() - 1];
        for text in [&*row.id, prefix, "ci", &row.last4, &format!(" {}\n", row.id)] {
            assert_eq!(find(&all(&store), text).unwrap().id, *row.id, "{text}");
        }
        for text in ["", "key_", "CI", "nobody", "mk_verify_x"] {
            assert_eq!(find(&all(&store), text), Err(FindError::NotFound), "{text}");
        }
    }

    #[test]
    fn a_key_is_found_by_its_full_text_and_one_of_another_server_is_not() {
        let store = Store::in_memory(NOW).unwrap();
        let (key, row) = ci(&store);
        assert_eq!(by_full_text(&store, key.expose_secret()).unwrap(), Some(row));
        let foreign = keys::mint(Service::Verify).unwrap();
        for text in [foreign.key.expose_secret(), "mk_verify_x", ""] {
            assert_eq!(by_full_text(&store, text).unwrap(), None);
        }
    }

    #[test]
    fn several_matches_are_listed_unless_only_one_is_active() {
        let store = Store::in_memory(NOW).unwrap();
        let ((_, first), (_, second)) = (ci(&store), ci(&store));
        let Err(FindError::Ambiguous(fitting)) = find(&all(&store), "ci") else { panic!("not ambiguous") };
        let ids: Vec<&str> = fitting.iter().map(|key| key.id.as_str()).collect();
        assert!(ids.contains(&&*first.id) && ids.contains(&&*second.id), "{ids:?}");

        store.revoke_key(&first.id, NOW).unwrap();
        assert_eq!(find(&all(&store), "ci").unwrap().id, *second.id);
        store.revoke_key(&second.id, NOW).unwrap();
        assert!(matches!(find(&all(&store), "ci"), Err(FindError::Ambiguous(_))));
    }

    #[test]
    fn a_name_passes_to_the_key_that_replaces_another() {
        let store = Store::in_memory(NOW).unwrap();
        let (_, old) = ci(&store);
        let (_, new) = keys::rotate(&store, &old.id, Duration::ZERO, NOW).unwrap();
        assert_eq!(all(&store).iter().filter(|key| key.state == KeyState::Expired).count(), 1);
        assert_eq!(find(&all(&store), "ci").unwrap().id, *new.id);
        store.revoke_key(&new.id, NOW).unwrap();
        assert_eq!(find(&all(&store), "ci").unwrap().id, *old.id, "the only one that is not revoked");
    }

    #[test]
    fn a_name_passes_on_while_the_replaced_key_still_works() {
        let store = Store::in_memory(NOW).unwrap();
        let (_, old) = ci(&store);
        let grace = Duration::from_hours(1);
        let (_, new) = keys::rotate(&store, &old.id, grace, NOW).unwrap();
        assert!(all(&store).iter().all(|key| key.state == KeyState::Active));
        assert_eq!(find(&all(&store), "ci").unwrap().id, *new.id);
        let (_, newest) = keys::rotate(&store, &new.id, grace, NOW).unwrap();
        assert_eq!(find(&all(&store), "ci").unwrap().id, *newest.id);
        for own in [&*old.id, &old.last4] {
            assert_eq!(find(&all(&store), own).unwrap().id, *old.id, "by what only it has");
        }
    }
}
