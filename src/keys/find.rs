//! Which key a person means: by id, by the key itself, by the beginning of its id, its name, or its last four
//! characters.

use std::fmt;

use super::{mint, service_of};
use crate::storage::{Error, KeyFilter, KeyRow, Store};

/// A shorter beginning of an id says next to nothing.
const MIN_ID_PREFIX: usize = "key_".len() + 4;
/// How many candidates an error lists.
const MAX_LISTED: usize = 10;

/// Why no single key was found. Never repeats what was asked for: that may have been a key.
#[derive(Debug)]
pub enum FindError {
    /// None.
    NotFound,
    /// Several; these.
    Ambiguous(Vec<KeyRow>),
    /// The store could not say.
    Storage(Error),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such key; give its id, its name or its last four characters"),
            Self::Ambiguous(candidates) => {
                f.write_str("several keys fit; give the id of one of them:")?;
                candidates.iter().take(MAX_LISTED).try_for_each(|key| write_candidate(f, key))?;
                match candidates.len().saturating_sub(MAX_LISTED) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
            Self::Storage(cause) => cause.fmt(f),
        }
    }
}

fn write_candidate(f: &mut fmt::Formatter<'_>, key: &KeyRow) -> fmt::Result {
    write!(f, "\n  {}  {} …{}", key.id, key.service, key.last4)?;
    if let Some(name) = &key.name {
        write!(f, "  {name}")?;
    }
    let note = if key.revoked_at.is_some() { "  (revoked)" } else { "" };
    f.write_str(note)
}

impl std::error::Error for FindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Storage(cause) => cause.source(),
            _ => None,
        }
    }
}

impl From<Error> for FindError {
    fn from(cause: Error) -> Self {
        Self::Storage(cause)
    }
}

/// The key that `text` means, last use included. Where several fit and one alone is not revoked, it is that one.
pub fn find(store: &Store, text: &str) -> Result<KeyRow, FindError> {
    let text = text.trim();
    if service_of(text).is_some() {
        let found = store.key_by_hash(&mint::hash(text))?.ok_or(FindError::NotFound)?;
        return Ok(store.key(&found.id)?);
    }
    match store.key(text) {
        Err(Error::NotFound) => {}
        outcome => return Ok(outcome?),
    }
    let mut fitting = store.keys(&KeyFilter { revoked_too: true, ..KeyFilter::default() })?;
    fitting.retain(|key| fits(key, text));
    let is_alive = |key: &KeyRow| key.revoked_at.is_none();
    if fitting.len() > 1 && fitting.iter().filter(|key| is_alive(key)).count() == 1 {
        fitting.retain(is_alive);
    }
    match fitting.len() {
        0 => Err(FindError::NotFound),
        1 => Ok(fitting.remove(0)),
        _ => Err(FindError::Ambiguous(fitting)),
    }
}

fn fits(key: &KeyRow, text: &str) -> bool {
    let begins_its_id = text.len() >= MIN_ID_PREFIX && key.id.starts_with(text);
    begins_its_id || key.last4 == text || key.name.as_deref() == Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Service;
    use crate::clock::Time;
    use crate::keys::{NewKey, create};
    use crate::secret::ExposeSecret;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    #[test]
    fn a_key_is_found_by_all_its_names() {
        let store = Store::in_memory(NOW).unwrap();
        let mut wanted = NewKey::of(Service::Verify, "default");
        wanted.name = Some("ci".to_owned());
        let (key, row) = create(&store, &wanted, NOW).unwrap();
        let prefix = &row.id[..row.id.len() - 1];
        for text in [&row.id, prefix, "ci", &row.last4, key.expose_secret(), &format!(" {}\n", row.id)] {
            assert_eq!(find(&store, text).unwrap(), row, "{text}");
        }
        for text in ["", "key_", "CI", "nobody", "mk_verify_x"] {
            assert!(matches!(find(&store, text), Err(FindError::NotFound)), "{text}");
        }
    }

    #[test]
    fn a_key_of_another_server_is_not_found_and_not_repeated() {
        let store = Store::in_memory(NOW).unwrap();
        let foreign = crate::keys::mint(Service::Verify).unwrap();
        let refused = find(&store, foreign.key.expose_secret()).unwrap_err();
        assert!(!format!("{refused}{refused:?}").contains(foreign.key.expose_secret()));
    }

    #[test]
    fn several_are_listed_and_the_only_one_alive_is_meant() {
        let store = Store::in_memory(NOW).unwrap();
        let mut wanted = NewKey::of(Service::Verify, "default");
        wanted.name = Some("ci".to_owned());
        let (_, first) = create(&store, &wanted, NOW).unwrap();
        let (_, second) = create(&store, &wanted, NOW).unwrap();

        let message = find(&store, "ci").unwrap_err().to_string();
        assert!(message.contains(&first.id) && message.contains(&second.id), "{message}");

        store.revoke_key(&first.id, NOW).unwrap();
        assert_eq!(find(&store, "ci").unwrap().id, second.id);
        store.revoke_key(&second.id, NOW).unwrap();
        assert!(matches!(find(&store, "ci"), Err(FindError::Ambiguous(_))));
    }
}
