//! Administration on a server, through `/v1` with a console key.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use tokio::time;

use super::{Records, conflicting_app};
use crate::api::Service;
use crate::api::console::{
    App, AppPatch, AuditEntry, Billing, CreateApp, CreateKey, CreatedKey, DeletedApp, ForgetUser,
    ForgottenUser, Key, KeyChange, KeyState, RevokedKey, Rotation, Statement, UsageReport,
};
use crate::api::error_code::ErrorCode;
use crate::cli::args::globals::Session;
use crate::cli::process::exit::Failure;
use crate::cli::process::runtime;
use crate::cli::target::database::conflict_message;
use crate::cli::target::remote::{self, span};
use crate::cli::target::server_key;
use crate::cli::terminal::printer::Printer;
use crate::client::{Client, Error};
use crate::clock::Time;
use crate::config::ClientConfig;
use crate::keys::{self, NewKey};
use crate::money::NanoUsd;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::{AppChange, AuditFilter};
use crate::usage::{Month, ReportRequest};

/// How long a request may take by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest wait for the rate limit to allow more: one window of the limit, and what servers add so that nobody
/// comes too early.
const MAX_WAIT: Duration = Duration::from_secs(90);
/// How many times as long as a single request all requests of a command may take together: one with keys by name takes
/// a request for each app, and a server that answers each just in time must not hold it up for ever.
const MAX_TIMEOUTS: u32 = 4;

/// Apps and keys on a server.
pub(crate) struct Remote {
    client: Client,
    server: String,
    timeout: Duration,
    /// How long its requests have taken so far.
    spent: Cell<Duration>,
    printer: Printer,
}

impl Remote {
    pub(super) fn connect(config: &ClientConfig, session: &Session) -> Result<Self, Failure> {
        let timeout = config.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let client =
            remote::client_with_timeout(config, server_key::key_for(config, Service::Console)?, timeout)?;
        session.printer.detail(&format!("on {}", config.server));
        let (server, printer) = (config.server.clone(), session.printer.clone());
        Ok(Self { client, server, timeout, spent: Cell::default(), printer })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Sends one request; `what` names its subject in errors.
    fn request<T>(&self, what: &str, call: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        runtime::run(&self.printer, async {
            self.with_timeout(call).await.map_err(|cause| self.failure(what, cause))
        })
    }

    /// Like [`Remote::request`], for a new key. Where it is unknown whether one was created, hints at how to find out.
    fn request_new_key(
        &self,
        what: &str,
        call: impl Future<Output = Result<CreatedKey, Error>>,
    ) -> Result<CreatedKey, Failure> {
        let well_formed = async {
            let made = call.await?;
            let is_key = keys::service_of(&made.key).is_some();
            if is_key { Ok(made) } else { Err(Error::Malformed("it did not send an API key".to_owned())) }
        };
        runtime::run(&self.printer, async {
            self.with_timeout(well_formed).await.map_err(|cause| {
                let is_open = matches!(
                    cause,
                    Error::Timeout | Error::Incomplete | Error::NotHttp | Error::Malformed(_)
                );
                let failure = self.failure(what, cause);
                if !is_open {
                    return failure;
                }
                failure.hint("if a key was created, `mk keys list` shows it and `mk keys revoke` revokes it")
            })
        })
    }

    async fn with_timeout<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let begun = time::Instant::now();
        let left = self.timeout.saturating_mul(MAX_TIMEOUTS).saturating_sub(self.spent.get());
        let outcome = remote::within(self.timeout.min(left), call).await;
        self.spent.set(self.spent.get() + begun.elapsed());
        outcome
    }

    /// The keys of one of several apps. Each app takes a request, and there may be more apps than the console key has
    /// requests in a minute, so this waits for the next minute, once.
    async fn keys_in_app(&self, app: &App, service: Option<Service>) -> Result<Vec<Key>, Failure> {
        let mut response = self.with_timeout(self.client.keys(&app.id, service)).await;
        if let Err(cause) = &response
            && let Some(wait) = rate_limit_wait(cause)
        {
            self.printer.sentence(&format!("too many requests per minute; continuing in {}", span(wait)));
            time::sleep(wait).await;
            response = self.with_timeout(self.client.keys(&app.id, service)).await;
        }
        match response {
            // The app was deleted meanwhile.
            Err(cause) if cause.code() == Some(ErrorCode::NotFound) => Ok(Vec::new()),
            outcome => outcome.map_err(|cause| self.failure("key", cause)),
        }
    }

    /// The failure for an error of the client, in the words that the local database uses for the same; `what` as in
    /// [`Remote::request`].
    fn failure(&self, what: &str, cause: Error) -> Failure {
        let mut failure = remote::failure_for(Service::Console, &self.server, None, cause);
        match failure.code() {
            Some(ErrorCode::NotFound) => failure.message = format!("there is no {what}"),
            Some(ErrorCode::Conflict) => failure.message = conflict_message(what, &failure.message),
            _ => {}
        }
        failure
    }
}

impl Records for Remote {
    fn apps(&self) -> Result<Vec<App>, Failure> {
        self.request("app", self.client.apps())
    }

    fn create_app(&self, name: &str, budget: Option<NanoUsd>) -> Result<App, Failure> {
        let app = CreateApp { name: name.to_owned(), budget_usd: budget.map(NanoUsd::usd) };
        self.request(&format!("app `{name}`"), self.client.create_app(&app))
    }

    fn update_app(&self, app: &App, change: &AppChange) -> Result<App, Failure> {
        let budget_usd = change.budget.map(|budget| budget.map(NanoUsd::usd));
        let patch = AppPatch { name: change.name.clone(), budget_usd };
        runtime::run(&self.printer, async {
            let response = self.with_timeout(self.client.update_app(&app.id, &patch)).await;
            response.map_err(|cause| {
                let is_taken = cause.code() == Some(ErrorCode::Conflict);
                self.failure(&conflicting_app(app, change, is_taken), cause)
            })
        })
    }

    fn delete_app(&self, app: &App) -> Result<DeletedApp, Failure> {
        self.request(&format!("app `{}`", app.name), self.client.delete_app(&app.id))
    }

    fn keys(&self, app: Option<&App>, service: Option<Service>) -> Result<Vec<Key>, Failure> {
        runtime::run(&self.printer, async {
            let apps = match app {
                Some(app) => vec![app.clone()],
                None => {
                    self.with_timeout(self.client.apps()).await.map_err(|cause| self.failure("app", cause))?
                }
            };
            let mut keys = Vec::new();
            for app in apps {
                keys.extend(self.keys_in_app(&app, service).await?);
            }
            Ok(keys)
        })
    }

    fn key_by_secret(&self, key: &SecretString) -> Result<Option<Key>, Failure> {
        let bearer = self.client.with_api_key(key.clone());
        let response = runtime::run(&self.printer, async { Ok(self.with_timeout(bearer.own_key()).await) })?;
        let cause = match response {
            Ok(own) => return Ok(Some(own.key)),
            Err(cause) => cause,
        };
        let state = match cause.code() {
            Some(ErrorCode::InvalidApiKey) => return Ok(None),
            Some(ErrorCode::ApiKeyRevoked) => KeyState::Revoked,
            Some(ErrorCode::ApiKeyExpired) => KeyState::Expired,
            _ => return Err(self.failure("key", cause)),
        };
        // For a key that has ended, the server's response says no more than that; its record is among those in the same
        // state.
        let mut keys = self.keys(None, keys::service_of(key.expose_secret()))?;
        keys.retain(|record| record.state == state && key.expose_secret().ends_with(&record.last4));
        match keys.as_slice() {
            [record] => Ok(Some(record.clone())),
            _ => Err(self.failure("key", cause)),
        }
    }

    fn create_key(&self, app: &App, new: &NewKey) -> Result<CreatedKey, Failure> {
        let body = CreateKey { service: new.service, settings: new.settings.clone().into() };
        self.request_new_key(&format!("app `{}`", app.name), self.client.create_key(&app.id, &body))
    }

    fn update_key(&self, key: &Key, change: &KeyChange) -> Result<Key, Failure> {
        self.request("key", self.client.update_key(&key.app_id, &key.id, change))
    }

    fn revoke_key(&self, key: &Key) -> Result<RevokedKey, Failure> {
        self.request("key", self.client.revoke_key(&key.app_id, &key.id))
    }

    fn rotate_key(&self, key: &Key, grace: Duration) -> Result<CreatedKey, Failure> {
        let rotation = Rotation { grace_seconds: grace.as_secs() };
        self.request_new_key("key", self.client.rotate_key(&key.app_id, &key.id, rotation))
    }

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

    fn report(&self, request: &ReportRequest) -> Result<UsageReport, Failure> {
        let date = |day| Time::of_utc_day(day).utc_date();
        let by: Vec<String> = request.by.iter().map(|by| by.as_str().to_owned()).collect();
        let mut query =
            vec![("from", date(request.days.first)), ("to", date(request.days.last)), ("by", by.join(","))];
        let service = request.service.map(|service| service.to_string());
        let filters = [
            ("app", request.app_id.clone()),
            ("key", request.key_id.clone()),
            ("service", service),
            ("model", request.model.clone()),
        ];
        query.extend(filters.into_iter().filter_map(|(name, value)| Some((name, value?))));
        self.request("usage", self.client.usage(&query))
    }

    fn forget_user(&self, user: &str, app_id: Option<&str>) -> Result<ForgottenUser, Failure> {
        let asked = ForgetUser { user: user.to_owned(), app_id: app_id.map(str::to_owned) };
        self.request("usage", self.client.forget_user(&asked))
    }

    fn billing(&self) -> Result<Billing, Failure> {
        self.request("billing", self.client.billing())
    }

    fn statement(&self, app_id: &str, month: Month, what: &str) -> Result<Statement, Failure> {
        self.request(what, self.client.statement(app_id, &month.to_string()))
    }
}

/// How long until more requests are allowed, if that is soon.
fn rate_limit_wait(cause: &Error) -> Option<Duration> {
    let Error::Refused(refusal) = cause else { return None };
    let is_minute = cause.code() == Some(ErrorCode::RateLimitedMinute);
    refusal.retry_after.filter(|wait| is_minute && *wait <= MAX_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::ErrorBody;
    use crate::client::Refusal;

    #[test]
    fn waits_for_a_minute_but_not_for_a_day() {
        let refused = |code: &str, seconds| {
            let body = ErrorBody { code: code.to_owned(), ..ErrorBody::default() };
            let retry_after = Some(Duration::from_secs(seconds));
            Error::Refused(Box::new(Refusal { status: 429, body, retry_after, hopeless: false }))
        };
        assert_eq!(rate_limit_wait(&refused("rate_limited_minute", 61)), Some(Duration::from_secs(61)));
        assert_eq!(rate_limit_wait(&refused("rate_limited_minute", 120)), None);
        assert_eq!(rate_limit_wait(&refused("rate_limited_day", 5)), None);
    }
}
