//! The warning before the last console key ends: with it goes access to the dashboard and remote administration.

use super::admin::Admin;
use crate::api::Service;
use crate::api::console::{Key, KeyState};

/// A warning if the keys for which `is_ending` holds include every active console key. There is none if that cannot be
/// found out: it must not keep anybody from revoking a key.
pub(crate) fn warning(admin: &Admin, is_ending: impl Fn(&Key) -> bool) -> Option<String> {
    let mut keys = admin.keys(None, Some(Service::Console)).unwrap_or_default();
    keys.retain(|key| key.state == KeyState::Active);
    let is_last = !keys.is_empty() && keys.iter().all(is_ending);
    is_last.then(|| {
        "this removes the last console key: until you run `mk keys create --service console` on the server's \
         machine, nobody can log in to the dashboard or administer the server remotely"
            .to_owned()
    })
}
