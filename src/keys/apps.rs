//! Apps as operators see them: create, update, show. An app is named by its id or its name.

use super::{ManageError, Spent, spending, validate};
use crate::api::console::App;
use crate::clock::Time;
use crate::money::{NanoUsd, threshold, used_percent};
use crate::storage::{AppChange, AppRow, Error, Order, PageRequest, Store};

/// Creates an app with a name of 1 to 64 characters that no other app has, and optionally a monthly budget.
pub fn create(store: &Store, name: &str, budget: Option<NanoUsd>, now: Time) -> Result<AppRow, ManageError> {
    let row = AppRow { id: crate::id::new("app"), name: validate::app_name(name)?, budget, created_at: now };
    store.create_app(&row)?;
    Ok(row)
}

/// Changes the name, the budget, or both of the app with this id.
pub fn update(store: &Store, id: &str, change: &AppChange, now: Time) -> Result<AppRow, ManageError> {
    let name = change.name.as_deref().map(validate::app_name).transpose()?;
    Ok(store.update_app(id, &AppChange { name, budget: change.budget }, now)?)
}

/// The record of one app, for JSON.
pub fn record(store: &Store, app: &AppRow, now: Time) -> Result<App, Error> {
    Ok(record_with(app, spending(store, &app.id, now)?, store.active_keys(&app.id, now)?))
}

/// The record of a newly created app: it has no keys and has spent nothing, even if the store cannot be read.
pub fn record_of_new(app: &AppRow) -> App {
    record_with(app, NanoUsd::default().into(), 0)
}

fn record_with(app: &AppRow, spent: Spent, active_keys: u64) -> App {
    App {
        id: app.id.clone(),
        name: app.name.clone(),
        budget_usd: app.budget.map(NanoUsd::usd),
        spent_usd: spent.usd(),
        budget_used_percent: app.budget.map(|budget| used_percent(spent.known, budget)),
        budget_threshold: app.budget.and_then(|budget| threshold(spent.known, budget)),
        created_at: app.created_at.rfc3339(),
        active_keys,
    }
}

/// The records of all apps, oldest first.
pub fn records(store: &Store, now: Time) -> Result<Vec<App>, Error> {
    store.apps()?.iter().map(|app| record(store, app, now)).collect()
}

/// The records of a page of apps.
pub fn page(store: &Store, span: &PageRequest, order: Order, now: Time) -> Result<Vec<App>, Error> {
    store.apps_page(span, order)?.iter().map(|app| record(store, app, now)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::Service;
    use crate::keys::{self, NewKey};
    use crate::storage::AppDeletion;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    #[test]
    fn records_count_the_keys_that_are_usable_now() {
        let store = Store::in_memory(NOW).unwrap();
        let app = create(&store, "news", Some(NanoUsd(2_000_000_000)), NOW).unwrap();
        let mut wanted = NewKey::new(Service::Verify, "news");
        keys::create(&store, &wanted, NOW).unwrap();
        let (_, revoked) = keys::create(&store, &wanted, NOW).unwrap();
        store.revoke_key(&revoked.id, NOW).unwrap();
        wanted.expires_at = Some(NOW.plus(Duration::from_secs(9)));
        keys::create(&store, &wanted, NOW).unwrap();

        assert_eq!(record(&store, &app, NOW).unwrap().active_keys, 2);
        let later = records(&store, NOW.plus(Duration::from_secs(9))).unwrap();
        let shown: Vec<_> = later.iter().map(|app| (app.name.as_str(), app.active_keys)).collect();
        assert_eq!(shown, [("default", 0), ("news", 1)]);
        assert_eq!(later[1].budget_usd, Some(2.0));
    }

    #[test]
    fn apps_are_renamed_and_deleted() {
        let store = Store::in_memory(NOW).unwrap();
        create(&store, "news", None, NOW).unwrap();
        let renamed = AppChange { name: Some(" press ".to_owned()), budget: None };
        let id = store.app("news").unwrap().id;
        let app = update(&store, &id, &renamed, NOW).unwrap();
        assert_eq!(app.name, "press");
        let wrong = AppChange { name: Some("\n".to_owned()), budget: None };
        assert!(
            matches!(update(&store, &id, &wrong, NOW), Err(ManageError::Invalid(field, _)) if field == "name")
        );
        keys::create(&store, &NewKey::new(Service::Verify, &app.id), NOW).unwrap();
        assert_eq!(store.delete_app(&app.id, NOW).unwrap(), AppDeletion { at: NOW, revoked_keys: 1 });
        let later = NOW.plus(Duration::from_secs(1));
        assert_eq!(store.delete_app(&app.id, later).unwrap(), AppDeletion { at: NOW, revoked_keys: 0 });
        let last = store.app("default").unwrap();
        assert!(matches!(store.delete_app(&last.id, NOW), Err(Error::Conflict(_))));
    }
}
