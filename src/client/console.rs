//! The console area, `/v1`: apps, keys and usage of a server, for a client with a console key.
//!
//! Lists are fetched page by page. If a server's list never ends, it is given up after a maximum number of pages or
//! bytes. A request that creates or changes something is sent exactly once, whatever happens to the connection.

use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, Error, body, document};
use crate::api::Service;
use crate::api::console::{
    App, AppPatch, AuditEntry, Billing, CreateApp, CreateKey, CreatedKey, DeletedApp, ForgetUser,
    ForgottenUser, Key, KeyChange, Page, RevokedKey, Rotation, Statement, UsageReport,
};

/// Records per page: the most that servers allow.
const PAGE: usize = 200;
/// The most pages of a list, for 100,000 records.
const MAX_PAGES: usize = 500;
/// The most bytes of all pages together.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

impl Client {
    /// All apps, oldest first.
    pub async fn apps(&self) -> Result<Vec<App>, Error> {
        self.list(&["apps"], &[], usize::MAX).await
    }

    /// Creates an app.
    pub async fn create_app(&self, app: &CreateApp) -> Result<App, Error> {
        self.send_json(Method::POST, &["apps"], app).await
    }

    /// Changes the app with this id.
    pub async fn update_app(&self, id: &str, change: &AppPatch) -> Result<App, Error> {
        self.send_json(Method::PATCH, &["apps", id], change).await
    }

    /// Deletes the app with this id and revokes its keys. Idempotent.
    pub async fn delete_app(&self, id: &str) -> Result<DeletedApp, Error> {
        self.json(self.request(Method::DELETE, &["apps", id])).await
    }

    /// The keys of an app (given by id), oldest first, including revoked ones.
    pub async fn keys(&self, app: &str, service: Option<Service>) -> Result<Vec<Key>, Error> {
        let filter = service.map(|service| ("service", service.as_str()));
        self.list(&["apps", app, "keys"], filter.as_slice(), usize::MAX).await
    }

    /// Creates a key in an app (given by id).
    pub async fn create_key(&self, app: &str, key: &CreateKey) -> Result<CreatedKey, Error> {
        self.send_json(Method::POST, &["apps", app, "keys"], key).await
    }

    /// Changes a key (both given by id).
    pub async fn update_key(&self, app: &str, key: &str, change: &KeyChange) -> Result<Key, Error> {
        self.send_json(Method::PATCH, &["apps", app, "keys", key], change).await
    }

    /// Revokes a key (both given by id), for ever. Idempotent.
    pub async fn revoke_key(&self, app: &str, key: &str) -> Result<RevokedKey, Error> {
        self.json(self.request(Method::DELETE, &["apps", app, "keys", key])).await
    }

    /// Replaces a key (both given by id) by a new one.
    pub async fn rotate_key(&self, app: &str, key: &str, rotation: Rotation) -> Result<CreatedKey, Error> {
        self.send_json(Method::POST, &["apps", app, "keys", key, "rotate"], &rotation).await
    }

    /// The usage report for these query parameters.
    pub async fn usage(&self, query: &[(&str, String)]) -> Result<UsageReport, Error> {
        let get = self.request(Method::GET, &["usage"]).query(query);
        document("its report", &body(self.send(get).await?, MAX_LIST_BYTES).await?)
    }

    /// Forgets an end user.
    pub async fn forget_user(&self, user: &ForgetUser) -> Result<ForgottenUser, Error> {
        self.send_json(Method::POST, &["usage", "forget"], user).await
    }

    /// The month so far, and all budgets.
    pub async fn billing(&self) -> Result<Billing, Error> {
        self.json(self.request(Method::GET, &["billing"])).await
    }

    /// What an app (given by id, even of a deleted one) used in a month such as `2026-11`.
    pub async fn statement(&self, app: &str, month: &str) -> Result<Statement, Error> {
        let get = self.request(Method::GET, &["apps", app, "statement"]).query(&[("month", month)]);
        document("its statement", &body(self.send(get).await?, MAX_LIST_BYTES).await?)
    }

    /// At most `limit` entries of the audit log that match the filters (`object`, `app`, `actor`, `action`), newest
    /// first.
    pub async fn audit(&self, filters: &[(&str, &str)], limit: usize) -> Result<Vec<AuditEntry>, Error> {
        self.list(&["audit"], filters, limit).await
    }

    async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        place: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.json(self.request(method, place).json(body)).await
    }

    /// The first records of a list, at most `limit`.
    async fn list<T: DeserializeOwned>(
        &self,
        place: &[&str],
        filters: &[(&str, &str)],
        limit: usize,
    ) -> Result<Vec<T>, Error> {
        let endless_list = || Error::Malformed("its list does not end".to_owned());
        let (mut records, mut cursor, mut bytes_left) = (Vec::new(), None::<String>, MAX_LIST_BYTES);
        for _ in 0..MAX_PAGES {
            let page = limit.saturating_sub(records.len()).min(PAGE);
            let mut get = self.request(Method::GET, place).query(&[("limit", page)]).query(filters);
            if let Some(cursor) = &cursor {
                get = get.query(&[("cursor", cursor)]);
            }
            let body = body(self.send(get).await?, bytes_left).await?;
            bytes_left = bytes_left.saturating_sub(body.len());
            let page: Page<T> = document("its list", &body)?;
            records.extend(page.data);
            if records.len() >= limit {
                records.truncate(limit);
                return Ok(records);
            }
            cursor = match page.next_cursor {
                None => return Ok(records),
                same if same == cursor => return Err(endless_list()),
                next => next,
            };
        }
        Err(endless_list())
    }

    /// A request to a path under `/v1`. Ids come from the server, and remain a single path segment whatever they
    /// contain.
    fn request(&self, method: Method, place: &[&str]) -> RequestBuilder {
        let mut address = self.address("v1");
        if let Ok(mut path) = address.path_segments_mut() {
            path.extend(place);
        }
        self.with_key(self.http.request(method, address))
    }
}
