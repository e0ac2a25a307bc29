//! What to say before the last console key goes: with it go the dashboard and the administration from elsewhere.

use super::desk::Desk;
use crate::api::Service;
use crate::api::console::{Key, KeyState};

/// A sentence to be said before `is_going` keys stop working, if with them the last console key does. Where that cannot
/// be found out there is none: it must not keep anybody from revoking a key.
pub(crate) fn warning(desk: &Desk, is_going: impl Fn(&Key) -> bool) -> Option<String> {
    let mut keys = desk.keys(None, Some(Service::Console)).unwrap_or_default();
    keys.retain(|key| key.state == KeyState::Active);
    let is_last = !keys.is_empty() && keys.iter().all(is_going);
    is_last.then(|| {
        "this takes away the last console key: nobody gets into the dashboard or administers from elsewhere \
         until `mk keys create --service console` makes another one on the server's machine"
            .to_owned()
    })
}
