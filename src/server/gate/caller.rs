//! Who has been admitted.

use std::sync::Arc;

use super::{Incoming, actor};
use crate::api::console::{Channel, OwnEndUserLimits};
use crate::clock::Clock;
use crate::limits::{EndUserLimits, LimitState, Quota};
use crate::server::request::record::Record;
use crate::storage::{Actor, Credential, KeyHash, KeyRow, Labels};
use crate::usage::{Account, Budget};

/// The caller of an admitted request.
pub(crate) struct Caller {
    /// Its key, or the one that its session was made with.
    pub(crate) key: Arc<KeyRow>,
    /// The rate limits that the response describes, this request included.
    pub(crate) rate: LimitState,
    /// The request's record.
    pub(crate) record: Arc<Record>,
    /// The session that it came with instead of a key.
    pub(super) session: Option<KeyHash>,
}

impl Caller {
    /// Whether what it may spend is limited, whoever a request is for.
    pub(crate) fn has_budget(&self) -> bool {
        self.key.budget.is_some() || self.key.app_budget.is_some()
    }

    /// The limits of each end user that its requests are for.
    pub(crate) fn end_users(&self, incoming: &Incoming) -> EndUserLimits {
        let own = self.key.end_users.unwrap_or_default();
        own_or_server(own, incoming.configured.limits.end_users)
    }

    /// The account that the request is billed to.
    pub(crate) fn account(&self, request_id: impl Into<Arc<str>>) -> Account {
        Account {
            request_id: request_id.into(),
            app_id: self.key.app_id.clone(),
            key_id: self.key.id.clone(),
            service: self.key.service,
            budget: Budget { key: self.key.budget, app: self.key.app_budget, ..Budget::default() },
            labels: None,
            trace: self.record.trace(),
        }
    }

    /// The same of a request with labels, within the limits of whom it is for.
    pub(crate) fn account_with(
        &self,
        request_id: impl Into<Arc<str>>,
        labels: Option<Arc<Labels>>,
        limits: &EndUserLimits,
    ) -> Account {
        let account = self.account(request_id);
        let is_for_somebody = labels.as_ref().is_some_and(|labels| labels.end_user.is_some());
        let budget = if is_for_somebody {
            let (end_user, end_user_per_day) = (limits.budget_per_month, limits.budget_per_day);
            Budget { end_user, end_user_per_day, ..account.budget }
        } else {
            account.budget
        };
        Account { budget, labels, ..account }
    }

    /// Who is recorded in the audit log for what it writes.
    pub(crate) fn actor(&self, incoming: &Incoming) -> Actor {
        let channel = if self.session.is_some() { Channel::Dashboard } else { Channel::Api };
        actor(&self.key, channel, incoming)
    }

    /// What authorises its writes; checked again when they are made.
    pub(crate) fn credential(&self, clock: &Clock) -> Credential {
        Credential { key_id: self.key.id.clone(), session: self.session, clock: clock.clone() }
    }
}

/// The limits that hold for requests of a key: its own, else the server's.
fn own_or_server(own: OwnEndUserLimits, server: EndUserLimits) -> EndUserLimits {
    EndUserLimits {
        quota: Quota {
            per_minute: own.per_minute.unwrap_or(server.quota.per_minute),
            per_day: own.per_day.unwrap_or(server.quota.per_day),
        },
        budget_per_day: own.budget_per_day.or(server.budget_per_day),
        budget_per_month: own.budget_per_month.or(server.budget_per_month),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::NanoUsd;

    #[test]
    fn what_a_key_does_not_say_is_the_servers() {
        let server = EndUserLimits {
            quota: Quota { per_minute: 3, per_day: 4 },
            budget_per_day: None,
            budget_per_month: Some(NanoUsd(5)),
        };
        let own =
            OwnEndUserLimits { per_minute: Some(0), budget_per_day: Some(NanoUsd(1)), ..Default::default() };
        let both = EndUserLimits {
            quota: Quota { per_minute: 0, per_day: 4 },
            budget_per_day: Some(NanoUsd(1)),
            ..server
        };
        assert_eq!(own_or_server(own, server), both);
        assert_eq!(own_or_server(OwnEndUserLimits::default(), server), server);
    }
}
