//! Keys as operators see them: create, rotate, update, show.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::{mint, state_of, validate};
use crate::api::Service;
use crate::api::console::{Dimension, Key, KeyChange, KeyLimits, KeySettings};
use crate::clock::Time;
use crate::money::{NanoUsd, threshold, used_percent};
use crate::secret::SecretString;
use crate::storage::{Error, KeyRow, Store, SubjectMonth, UsageQuery};

/// The properties of a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// What it is for.
    pub service: Service,
    /// The app's id or name.
    pub app: String,
    /// What is set from the beginning; it can be asked and changed directly.
    pub settings: KeySettings,
}

impl NewKey {
    /// An unrestricted key for `service` in `app` (its id or name).
    pub fn new(service: Service, app: &str) -> Self {
        Self { service, app: app.to_owned(), settings: KeySettings::default() }
    }
}

impl Deref for NewKey {
    type Target = KeySettings;

    fn deref(&self) -> &KeySettings {
        &self.settings
    }
}

impl DerefMut for NewKey {
    fn deref_mut(&mut self) -> &mut KeySettings {
        &mut self.settings
    }
}

/// Why a key or an app was not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// A field is invalid: its name (or an entry of it: `models[1]`), and what is said of it, which goes on behind the
    /// name: ` must be …` or `: … is no address`.
    #[error("{0}{1}")]
    Invalid(Cow<'static, str>, String),
    /// Storage refused or failed.
    #[error(transparent)]
    Storage(#[from] Error),
    /// The operating system returned no random bytes.
    #[error("the operating system could not supply random numbers: {0}")]
    Randomness(#[from] getrandom::Error),
}

/// Creates and stores a key. [`Error::NotFound`] if there is no such app.
pub fn create(store: &Store, new: &NewKey, now: Time) -> Result<(SecretString, KeyRow), ManageError> {
    let settings = validate::new_key(new, now)?;
    let app = store.app(&new.app)?;
    let minted = mint(new.service)?;
    let row = KeyRow {
        id: crate::id::new("key").into(),
        app_id: app.id.into(),
        app_name: app.name,
        service: new.service,
        last4: minted.last4,
        created_at: now,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
        settings,
        app_budget: app.budget,
    };
    store.create_key(&row, &minted.hash)?;
    Ok((minted.key, row))
}

/// Creates a key like the one with this `id` and lets the old one live for `grace` more, though never past its own
/// expiry. If the key expires, the new one gets the same lifetime, counted from now: rotation is how a key is renewed.
/// [`Error::Conflict`] if the key was replaced before.
pub fn rotate(
    store: &Store,
    id: &str,
    grace: Duration,
    now: Time,
) -> Result<(SecretString, KeyRow), ManageError> {
    // The service is the one property of a key that never changes; the rest is read when it is replaced.
    let minted = mint(store.key_alone(id)?.service)?;
    let last4 = minted.last4;
    let new = store.rotate_key(id, now.plus(grace), &minted.hash, |old| KeyRow {
        id: crate::id::new("key").into(),
        last4,
        created_at: now,
        settings: KeySettings {
            expires_at: old.expires_at.map(|at| now.plus(at.since(old.created_at))),
            ..old.settings.clone()
        },
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
        ..old.clone()
    })?;
    Ok((minted.key, new))
}

/// Changes the key with this `id`. An expired key works again if it is given a later expiry. [`Error::Conflict`] if it
/// is revoked, or was rotated and is given a later expiry.
pub fn update(store: &Store, id: &str, change: &KeyChange, now: Time) -> Result<KeyRow, ManageError> {
    let change = validate::key_change(change, store.key_alone(id)?.service, now)?;
    Ok(store.update_key(id, &change, now)?)
}

/// What a key or an app has spent in a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Known costs.
    pub known: NanoUsd,
    /// Whether there is usage, and none of it at a known price.
    pub is_unknown: bool,
}

impl From<NanoUsd> for Spent {
    fn from(known: NanoUsd) -> Self {
        Self { known, is_unknown: false }
    }
}

impl Spent {
    /// In US dollars; `None` if it is not known at all.
    pub fn usd(self) -> Option<f64> {
        (!self.is_unknown).then(|| self.known.usd())
    }
}

/// The record of a key that has spent this much in the current month, for JSON.
pub fn record(row: &KeyRow, spent: impl Into<Spent>, now: Time) -> Key {
    let spent = spent.into();
    Key {
        id: row.id.to_string(),
        app_id: row.app_id.to_string(),
        app: row.app_name.clone(),
        service: row.service,
        name: row.name.clone(),
        last4: row.last4.clone(),
        state: state_of(row, now),
        created_at: row.created_at.rfc3339(),
        expires_at: row.expires_at.map(Time::rfc3339),
        last_used_at: row.last_used_at.map(Time::rfc3339),
        revoked_at: row.revoked_at.map(Time::rfc3339),
        replaced_by: row.replaced_by.as_deref().map(str::to_owned),
        limits: KeyLimits { per_minute: row.per_minute, per_day: row.per_day },
        models: row.models.clone(),
        addresses: row.addresses.clone(),
        budget_usd: row.budget.map(NanoUsd::usd),
        spent_usd: spent.usd(),
        budget_used_percent: row.budget.map(|budget| used_percent(spent.known, budget)),
        budget_threshold: row.budget.and_then(|budget| threshold(spent.known, budget)),
        cache: row.cache.map(|time| time.to_string()),
        verify: row.verify,
        end_users: row.end_users,
    }
}

/// The records of these keys, with what each has spent in the current month.
pub fn records(store: &Store, rows: &[KeyRow], now: Time) -> Result<Vec<Key>, Error> {
    let month = now.utc_month();
    let months: Vec<SubjectMonth> =
        rows.iter().map(|row| SubjectMonth { subject: row.id.to_string(), month }).collect();
    let spent = store.spent(&months)?;
    let unknown = if spent.contains(&NanoUsd::default()) {
        unknown_spenders(store, None, now)?
    } else {
        HashSet::new()
    };
    let spent = rows.iter().zip(spent).map(|(row, known)| {
        let is_unknown = known == NanoUsd::default() && unknown.contains(&*row.id);
        record(row, Spent { known, is_unknown }, now)
    });
    Ok(spent.collect())
}

/// What a key or an app has spent in the UTC month of `now`, known costs only.
pub fn spent(store: &Store, id: &str, now: Time) -> Result<NanoUsd, Error> {
    let month = SubjectMonth { subject: id.to_owned(), month: now.utc_month() };
    Ok(store.spent(&[month])?.first().copied().unwrap_or_default())
}

/// The same, and whether that is nothing because no price is known.
pub fn spending(store: &Store, id: &str, now: Time) -> Result<Spent, Error> {
    let known = spent(store, id, now)?;
    let is_unknown = known == NanoUsd::default() && unknown_spenders(store, Some(id), now)?.contains(id);
    Ok(Spent { known, is_unknown })
}

/// Of all keys, or of the app or key with this id, those whose usage in the UTC month of `now` has no known price at
/// all.
fn unknown_spenders(store: &Store, id: Option<&str>, now: Time) -> Result<HashSet<String>, Error> {
    let is_app = id.is_some_and(|id| id.starts_with("app_"));
    let own = |is_own: bool| id.filter(|_| is_own).map(str::to_owned);
    let sums = store.usage(&UsageQuery {
        by: vec![if is_app { Dimension::App } else { Dimension::Key }],
        app_id: own(is_app),
        key_id: own(!is_app),
        ..UsageQuery::days(now.first_day_of_utc_month(), now.utc_day())
    })?;
    let unknown = sums
        .into_iter()
        .filter(|sum| sum.counts.priced_attempts == 0 && sum.counts.unpriced_attempts > 0)
        .filter_map(|sum| sum.app_id.or(sum.key_id));
    Ok(unknown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::console::KeyState;
    use crate::keys::service_of;
    use crate::secret::ExposeSecret;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);
    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn the_stored_row_is_the_returned_one_and_the_key_is_in_neither() {
        let store = Store::in_memory(NOW).unwrap();
        let mut new = NewKey::new(Service::Verify, "default");
        new.name = Some("ci".to_owned());
        new.per_minute = Some(0);
        new.models = vec!["openai/*".to_owned()];
        new.budget = Some(NanoUsd(1_500_000_000));
        let (key, row) = create(&store, &new, NOW).unwrap();
        assert_eq!(service_of(key.expose_secret()), Some(Service::Verify));
        assert_eq!(store.key(&row.id).unwrap(), row);

        let json = serde_json::to_string(&record(&row, NanoUsd(0), NOW)).unwrap();
        let secret = key.expose_secret().rsplit('_').next().unwrap();
        assert!(!json.contains(secret) && !format!("{row:?}").contains(secret));
        assert!(json.contains(r#""state":"active""#) && json.contains(r#""budget_usd":1.5"#), "{json}");
        assert!(json.contains(r#""limits":{"per_minute":0,"per_day":null}"#), "{json}");
    }

    #[test]
    fn an_unknown_app_is_not_found() {
        let store = Store::in_memory(NOW).unwrap();
        let refused = create(&store, &NewKey::new(Service::Verify, "nowhere"), NOW);
        assert!(matches!(refused, Err(ManageError::Storage(Error::NotFound))));
    }

    #[test]
    fn rotation_keeps_what_the_key_is_and_ends_the_old_one_after_the_grace() {
        let store = Store::in_memory(NOW).unwrap();
        let mut wanted = NewKey::new(Service::Inference, "default");
        wanted.name = Some("ci".to_owned());
        wanted.addresses = vec!["10.0.0.0/8".to_owned()];
        wanted.expires_at = Some(NOW.plus(90 * DAY));
        let (_, old) = create(&store, &wanted, NOW).unwrap();

        let later = NOW.plus(30 * DAY);
        let (key, new) = rotate(&store, &old.id, DAY, later).unwrap();

        assert_eq!(service_of(key.expose_secret()), Some(Service::Inference));
        assert_eq!((&new.name, &new.addresses, &new.app_id), (&old.name, &old.addresses, &old.app_id));
        assert_ne!((&new.id, &new.last4), (&old.id, &old.last4));
        assert_eq!(new.expires_at, Some(later.plus(90 * DAY)));
        let ending = store.key(&old.id).unwrap();
        assert_eq!(state_of(&ending, later), KeyState::Active);
        assert_eq!(state_of(&ending, later.plus(DAY)), KeyState::Expired);
        assert!(rotate(&store, &old.id, Duration::ZERO, later.plus(DAY)).is_err());
    }
}
