//! The audit log of the local database or of a server.

use super::{Admin, Remote};
use crate::api::console::AuditEntry;
use crate::cli::process::exit::Failure;
use crate::cli::target::database::{OpenDatabase, store_failure};
use crate::storage::{AuditFilter, PageRequest};

impl Admin {
    /// At most `limit` entries, newest first.
    pub(crate) fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        match self {
            Self::Local(local) => local.audit(filter, limit),
            Self::Remote(remote) => remote.audit(filter, limit),
        }
    }
}

impl OpenDatabase {
    fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        // A placeholder begins with an app that nobody created.
        if self.is_placeholder {
            return Ok(Vec::new());
        }
        let span = PageRequest { after: String::new(), limit };
        let rows = self.store.audit(filter, &span).map_err(|cause| store_failure(cause, "audit"))?;
        Ok(rows.into_iter().map(AuditEntry::from).collect())
    }
}

impl Remote {
    fn audit(&self, filter: &AuditFilter, limit: u32) -> Result<Vec<AuditEntry>, Failure> {
        let AuditFilter { object, object_name, app, actor, actor_name, action } = filter;
        let filters = [
            ("object", object),
            ("object_name", object_name),
            ("app", app),
            ("actor", actor),
            ("actor_name", actor_name),
            ("action", action),
        ];
        let set = filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let query: Vec<(&str, &str)> = set.collect();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.request("audit", self.client.audit(&query, limit))
    }
}
