//! Who changed what, in the local database or at a server.

use super::{Desk, Remote};
use crate::api::console::AuditEntry;
use crate::cli::exit::Failure;
use crate::cli::local::{Local, stored};
use crate::storage::{AuditFilter, Span};

impl Desk {
    /// The newest entries, newest first: at most so many.
    pub(crate) fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        match self {
            Self::Local(local) => local.audit(filter, limit),
            Self::Remote(remote) => remote.audit(filter, limit),
        }
    }
}

impl Local {
    fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        // A stand-in begins with an app, which nobody made.
        if self.is_stand_in {
            return Ok(Vec::new());
        }
        let span = Span { after: String::new(), limit };
        let rows = self.store.audit(filter, &span).map_err(|cause| stored(cause, "audit"))?;
        Ok(rows.into_iter().map(AuditEntry::from).collect())
    }
}

impl Remote {
    fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        let AuditFilter { object, actor, action } = filter;
        let filters = [("object", object), ("actor", actor), ("action", action)];
        let set = filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let query: Vec<(&str, &str)> = set.collect();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask("audit", self.client.audit(&query, limit))
    }
}
