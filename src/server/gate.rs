//! The gate: authentication, authorisation and rate limits. The order of checks is part of the API contract: key
//! present and well formed, known, revoked, expired, right service, address, then the rate limits.
//!
//! What must hold: no body is read and no work is done before the gate has admitted the request; a database that cannot
//! answer never admits anybody; failed attempts are counted per address, apart from valid keys, so that nobody can lock
//! out a key by guessing next to it.
//!
//! # Threat model
//!
//! Assets: providers' keys and the money behind them, callers' keys, what callers ask, the usage records. Untrusted:
//! every byte from callers, browsers, proxies that are not listed, providers, models and tools; for the client, every
//! byte from the server. Trusted: this process, its user and its files, the configuration, and what a listed proxy says
//! about addresses.
//!
//! **Keys and ids**
//! - **Guessing a key.** Keys have 155 random bits; failures are counted and limited per address. Tests:
//!   `failed_authentication_has_its_own_limit`, `wrong_keys_count_as_failed_authentication`,
//!   `guessed_setup_tokens_are_counted_and_limited`
//! - **Timing of the key check.** Keys are looked up by their SHA-256 hash, so no secret text is compared; the hash of
//!   the setup token is compared in constant time. Tests: `keys_are_not_stored_in_plain_text`
//! - **Floods of unknown keys.** Each is looked up before it is rejected; with PostgreSQL, addresses that have failed
//!   too often are looked up one at a time. Tests: `a_flood_of_unknown_keys_does_not_use_up_the_database`
//! - **What a rejection reveals about a key.** Malformed and unknown keys get the same response, and of several faults
//!   always the same one is reported. Tests: `malformed_and_unknown_keys_get_the_same_response`,
//!   `the_first_fault_in_the_order_of_checks_is_reported`, `a_request_with_two_keys_is_refused`
//! - **Enumerating ids of apps, keys, requests.** Ids are not secret and grant nothing; what belongs to another app is
//!   answered like what does not exist; all of it takes a console key. Tests: `every_id_of_another_app_is_not_found`,
//!   `ids_of_another_app_and_invented_ids_get_the_same_response`, `other_keys_reach_nothing_but_themselves`
//! - **Use after revocation.** A revocation holds from the next request on, in other processes too, also for what a
//!   request has not written yet, and it ends streams. Tests:
//!   `a_revocation_by_another_process_applies_to_the_next_request`,
//!   `a_write_completed_after_its_key_ended_is_rejected`, `a_revocation_ends_the_streams_of_its_key`
//! - **Receipts that were changed, forged, or are hostile themselves.** Each byte is signed by a key that leaves the
//!   database for signing alone; there is one form; verdicts are counted again from raw answers; what is shown is
//!   sanitised. Tests: `every_changed_bit_is_noticed`, `what_was_changed_is_refused`,
//!   `a_server_that_reports_other_verdicts_than_its_models_gave_is_found_out`, `foreign_texts_are_no_receipts`
//!
//! **HTTP**
//! - **Request smuggling past a proxy (length with chunks, doubled or odd lengths, codings, folded lines, two hosts or
//!   none).** Rejected with 400, or answered as the last request on its connection. Tests:
//!   `ambiguous_heads_are_refused`,
//!   `with_both_length_and_chunks_the_chunks_count_and_the_connection_ends`, `malformed_chunks_end_the_connection`
//! - **Bare LF.** It ends a header line, as RFC 9112 allows, but no line of the chunk framing. A proxy must not forward
//!   it inside a header. Tests: `a_bare_line_feed_ends_a_line_of_the_head`, `malformed_chunks_end_the_connection`
//! - **A body that is left unread.** Its connection is closed, and the response says so. Tests:
//!   `a_response_sent_before_the_body_was_read_closes_the_connection`,
//!   `a_body_that_has_arrived_or_is_absent_keeps_the_connection`
//! - **Absolute-form targets, CONNECT.** Only the path counts; this server is no proxy. Tests:
//!   `the_host_in_an_absolute_target_is_never_called`
//! - **Response splitting, CRLF injection (`X-Request-Id`, paths).** Ids with anything but letters, digits and `._-`
//!   are replaced; nothing else of a request is copied into a response header. Tests:
//!   `callers_cannot_inject_response_headers`, `only_well_formed_request_ids_are_kept`
//! - **Forged `X-Forwarded-For`.** Trusted from listed proxies only, and read from the right. Tests:
//!   `forwarded_addresses_count_only_behind_trusted_proxies`, `forwarded_host_and_scheme_of_anyone_else_are_ignored`
//! - **TLS downgrade.** TLS 1.2 and 1.3 only; nothing in plain text on that port. Tests:
//!   `insecure_tls_versions_are_refused`, `plain_text_is_refused_and_silent_connections_do_not_delay_a_shutdown`
//!
//! **Size and time**
//! - **Oversized URI, head, body.** 414, 431 (from 64 KiB on, at twice that at the latest), 413, counted while the
//!   bytes arrive. Tests: `heads_over_the_limits_are_refused`,
//!   `bodies_over_the_limit_are_refused_with_and_without_a_content_length`
//! - **Deep, wide, endless JSON (depth, messages, names).** Depth is limited, to 128 at most; time is linear in the
//!   size. Tests: `malformed_bodies_are_refused`, `deep_bodies_are_refused_wherever_they_are_deep`,
//!   `the_widest_bodies_are_processed_in_linear_time`,
//!   `model_output_is_parsed_in_linear_time`, `the_name_of_an_unknown_parameter_is_sanitised_and_shortened`
//! - **Decompression bombs.** Compressed requests are rejected; providers are not asked for compression, and nothing is
//!   decompressed. Tests: `compressed_bodies_are_refused`, `a_call_carries_key_agent_and_body`,
//!   `a_compressed_response_is_a_failure_and_not_decompressed`
//! - **Hash flooding.** No hash table uses a hasher with a predictable seed. Tests:
//!   `no_hash_table_has_a_predictable_hasher`
//! - **Slow or silent callers and readers, connection storms.** Every wait has a timeout, and connections are capped.
//!   Tests: `connections_that_send_their_headers_too_slowly_are_closed`, `a_caller_that_does_not_read_is_disconnected`,
//!   `a_storm_of_silent_connections_does_not_stop_the_server`
//! - **Holding all connections, with or without a request now and then.** Idle ones make room for new ones. Tests:
//!   `idle_connections_make_room_for_new_ones_and_busy_ones_stay`,
//!   `callers_who_ask_now_and_then_on_every_connection_shut_nobody_out`
//! - **Very many large bodies at once.** All together are bounded. Tests:
//!   `more_large_bodies_than_memory_are_refused_until_others_are_done`
//! - **Growing the metrics with invented names.** At most 200 invented models get a series. Tests:
//!   `names_that_callers_make_up_do_not_grow_the_page`
//!
//! **Browsers**
//! - **CSRF.** `SameSite=Strict`, and a write authenticated by cookie needs an `Origin` of this server. Tests:
//!   `writes_by_cookie_require_the_server_s_own_origin`, `a_foreign_page_can_neither_log_in_nor_log_out_nor_set_up`
//! - **A session beyond the console.** The areas of verify and inference know no cookie. What the dashboard tries out
//!   goes through `/v1`, with the checks of a write, on the account of an app that exists, within its budget and within
//!   the limits of the console key; it ends when that key is revoked, and makes no key. Tests:
//!   `a_session_opens_no_other_area`, `trying_out_is_limited_and_booked_like_any_other_request`,
//!   `a_foreign_page_can_try_nothing_out`
//! - **Session fixation, theft.** Each login creates a session of its own; a session ends with its key. Tests:
//!   `a_planted_cookie_never_becomes_a_session`, `revoking_a_key_ends_its_sessions_stolen_ones_included`,
//!   `several_cookies_hold_nothing`
//! - **Clickjacking, injected scripts.** No framing, nothing inline or from another origin, no text becomes markup; the
//!   same holds for errors. Tests: `no_page_can_be_framed`,
//!   `nothing_is_loaded_from_elsewhere_or_inline`
//! - **Other origins, DNS rebinding.** No CORS; `/metrics` is open only to callers that address this machine by IP
//!   address or as `localhost`. Tests: `no_response_is_shared_with_another_origin`,
//!   `metrics_are_not_open_to_a_page_after_dns_rebinding`, `dns_rebinding_gives_access_to_open_pages_only`
//! - **Path traversal.** Files come from a table in the binary. Tests:
//!   `no_other_path_or_method_is_served`
//!
//! **Models and providers**
//! - **Prompt injection by statement, context, model.** Each stands between random markers that it cannot contain, and
//!   a model can only choose one of the options shown. This makes it unlikely, not impossible. Tests:
//!   `a_statement_stays_data_in_the_prompts`, `untrusted_text_appears_only_inside_fences`,
//!   `a_marker_is_random_and_in_no_text_of_the_request`
//! - **Prompt injection by tool output (chat).** Passed on as one message of its role; no tool is run here. Tests:
//!   `the_output_of_a_tool_stays_within_its_message`
//! - **A model that the key may not use, by way of the provider.** The fields and tools known to let a request name
//!   further models are refused to keys that are limited to models or have a budget; names that only case tells from
//!   checked ones are refused to all. Tests: `a_limited_key_cannot_let_the_provider_choose_another_model`,
//!   `a_name_that_a_provider_could_take_for_a_checked_one_is_refused`
//! - **SSRF.** URLs come from the configuration only. Those in texts and `image_url` are passed on as text (the
//!   provider may fetch them); no redirect is followed. Tests: `urls_in_a_chat_are_never_fetched`,
//!   `urls_in_a_statement_are_never_fetched`, `redirects_of_a_provider_are_not_followed`
//! - **Hostile answers.** Counted while they arrive, bounded, and cleaned in a verification; headers are not passed on.
//!   Tests: `huge_and_malformed_provider_responses_become_ordinary_failures`,
//!   `control_characters_in_model_output_do_not_reach_the_caller`, `no_provider_header_reaches_a_caller`,
//!   `a_provider_s_words_never_reach_the_caller`
//! - **An answer that reaches another caller.** A connection to a provider is reused only if its response ended
//!   unambiguously with nothing behind it, and is checked before each use. Tests:
//!   `whatever_could_be_read_in_two_ways_is_broken`, `whatever_is_accepted_here_hyper_reads_in_the_same_way`,
//!   `a_connection_with_unsolicited_bytes_is_closed`,
//!   `an_idle_connection_is_checked_even_without_cooperative_budget`
//! - **Verdicts found for another (verdict cache).** The app, and all else that a result depends on, is in an entry's
//!   key; an entry is bound to its key by a checksum, and held against the text at hand. Tests:
//!   `nothing_is_served_to_another_app_and_everything_to_another_key_of_the_same`,
//!   `nothing_is_served_for_another_request`, `every_part_changes_both_keys_and_nothing_else_does`,
//!   `what_is_damaged_or_foreign_is_missing`, `foreign_texts_never_panic_and_stand_in_the_statement`
//!
//! **Output**
//! - **Log injection.** A line is one JSON object without terminal control bytes; long texts are truncated. Tests:
//!   `untrusted_text_cannot_forge_a_log_line`, `a_line_is_one_object_whatever_it_contains`,
//!   `no_line_controls_a_terminal`
//! - **Secrets in logs, at any level.** Keys and tokens are not logged, and are redacted where they appear in a path.
//!   Tests: `no_key_is_logged_even_at_trace_level`, `paths_are_logged_without_secrets`,
//!   `no_secret_is_in_the_audit_or_the_log`
//! - **A provider that repeats its key.** The key a provider was called with is masked in its messages, which callers
//!   and the log get to see. Tests: `a_provider_key_echoed_in_an_error_is_redacted`
//! - **Secrets in crashes, `Debug`, listings.** Panics report a location and fixed text, no core is dumped, secrets are
//!   not printed. Tests: `a_handler_that_panics_gives_a_response_and_keeps_the_connection`,
//!   `a_panic_message_with_values_in_it_is_not_shown`,
//!   `a_crash_writes_no_core_dump`, `the_line_ending_is_trimmed_and_debug_is_redacted`,
//!   `the_listing_shows_origins_and_no_secrets`, `the_process_list_shows_no_key`
//! - **SQL injection, LIKE patterns.** Values are bound; there are no patterns. Tests:
//!   `filters_are_plain_text_and_neither_patterns_nor_sql`
//! - **CSV formulas.** They are prefixed with an apostrophe. Tests: `no_text_becomes_a_formula_or_breaks_its_row`
//! - **The client's terminal.** Control characters are removed, whoever sent them. Tests:
//!   `a_server_s_text_cannot_control_the_terminal`, `model_output_cannot_control_the_terminal`,
//!   `reports_of_a_server_cannot_control_the_terminal`, `what_is_no_key_is_not_printed_as_a_new_one`
//!
//! **Not defended:** against root and this process's own user, who can read memory, databases and providers' keys
//! (databases hold hashes of keys, and of what was asked only what the verdict cache keeps, if it is on, which whoever can
//! write to them can forge); against a provider that lies, remembers, or bills what
//! it likes; against models that agree and are wrong: agreement is no proof; against whoever holds a console key, which
//! opens all apps (the audit log shows what was done); against a trusted proxy that does not clean what it forwards;
//! against whoever can write to a shared store of limits, who may lift or exhaust them; against somebody who measures
//! sizes and timing of a stream's chunks through TLS, which reveal the lengths of words; against floods from many
//! addresses, which share the cap on connections; against anybody on the network path where no TLS is used.

mod console;

pub(crate) use console::{
    Admitted, OwnKeyPass, actor, anonymous_actor, console, console_key, login, logout, own_key, session,
    session_cookie, setup_error, trial,
};

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::Context;
use super::in_flight::Registration;
use super::incoming::{Incoming, bearer};
use super::record::Record;
use super::reply::ApiError;
use crate::api::Service;
use crate::app::{App, Configured};
use crate::clock::Time;
use crate::keys::{self, Denied};
use crate::limits::{Decision, LimitState, Quota, Subject, Window};
use crate::storage::KeyRow;
use crate::usage::{Account, Budget};

/// How long a request waits for a [`lookup_permit`].
const LOOKUP_PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// An admitted request.
pub(crate) struct Pass {
    /// The caller's key.
    pub(crate) key: Arc<KeyRow>,
    /// The state of its rate limits, this request included.
    pub(crate) rate: LimitState,
    /// The request's record.
    pub(crate) record: Arc<Record>,
}

impl Pass {
    /// The budgets of the key and its app.
    pub(crate) fn budget(&self) -> Budget {
        Budget { key: self.key.budget, app: self.key.app_budget }
    }

    /// The account that the request is billed to.
    pub(crate) fn account(&self, request_id: impl Into<Arc<str>>) -> Account {
        Account {
            request_id: request_id.into(),
            app_id: self.key.app_id.clone(),
            key_id: self.key.id.clone(),
            service: self.key.service,
            budget: self.budget(),
        }
    }
}

/// Admits a request with a valid key for `service` that is within its rate limits.
pub(crate) async fn admit(app: &App, incoming: &Incoming, service: Service) -> Result<Pass, ApiError> {
    let now = app.clock.now();
    let key = authenticate(app, incoming, service, now).await?;
    let rate = take(app, &Subject::Key(key.id.clone()), quota_of(incoming, &key), now).await?;
    Ok(Pass { key, rate, record: incoming.record.clone() })
}

/// A key's own rate limits, or the server's defaults.
fn quota_of(incoming: &Incoming, key: &KeyRow) -> Quota {
    let default = incoming.configured.limits.keys;
    Quota {
        per_minute: key.per_minute.unwrap_or(default.per_minute),
        per_day: key.per_day.unwrap_or(default.per_day),
    }
}

/// Admits operators: a request from this machine itself, or one with a console key. It counts as a request for an open
/// page and not against the key: scraping every few seconds would use up any daily limit.
pub(crate) async fn admit_operator(app: &App, incoming: &Incoming) -> Result<LimitState, ApiError> {
    if !incoming.is_local() {
        let now = app.clock.now();
        let key = authenticate(app, incoming, Service::Console, now).await?;
        app.limiter.record_use(&key.id, now);
    }
    open_page(app, incoming).await
}

/// The key of a request, if it is valid for `service`.
async fn authenticate(
    app: &App,
    incoming: &Incoming,
    service: Service,
    now: Time,
) -> Result<Arc<KeyRow>, ApiError> {
    let _permit = lookup_permit(app, incoming, now).await?;
    let found = keys::authenticate(&app.store, bearer(&incoming.headers), service, incoming.address, now);
    let key = or_deny(app, incoming, found.await, None).await?;
    incoming.record.set_key(key.clone());
    Ok(key)
}

/// The permit to look up a key, which addresses that have failed too often need if the database is accessed over the
/// network: a flood of unknown keys must leave the database connections to others. A valid key from such an address
/// needs one as well.
async fn lookup_permit<'a>(
    app: &'a App,
    incoming: &Incoming,
    now: Time,
) -> Result<Option<SemaphorePermit<'a>>, ApiError> {
    if app.store.is_local() {
        return Ok(None);
    }
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    let subject = Subject::FailedAuth(incoming.address);
    let state = app.limiter.peek_local(&subject, quota, now);
    if state.minute.is_none_or(|minute| minute.remaining > 0) {
        return Ok(None);
    }
    match timeout(LOOKUP_PERMIT_TIMEOUT, app.suspects.acquire()).await {
        Ok(Ok(permit)) => Ok(Some(permit)),
        _ => Err(rate_limited(app, &subject, state, Window::Minute)),
    }
}

/// Unwraps the result of an authentication, or turns its error into the response of [`deny`].
async fn or_deny<T>(
    app: &App,
    incoming: &Incoming,
    result: Result<T, Denied>,
    rate: Option<LimitState>,
) -> Result<T, ApiError> {
    match result {
        Ok(value) => Ok(value),
        // Boxed, so that admitted requests reserve no space for it.
        Err(denied) => Err(Box::pin(deny(app, incoming, denied, rate)).await),
    }
}

/// The error for a caller that could not be authenticated. Counted as a failed attempt of its address, unless it is the
/// database that has failed. The response describes `rate`, or else the limits of such attempts.
async fn deny(app: &App, incoming: &Incoming, denied: Denied, rate: Option<LimitState>) -> ApiError {
    let is_counted = !matches!(denied, Denied::Unavailable(_));
    let error = ApiError::from(denied);
    let error = if let Some(rate) = rate { error.with_rate(rate) } else { error };
    if is_counted {
        count_failure(app, incoming, error).await
    } else {
        error.with_rate(open_page_state(app, &incoming.configured, incoming.address))
    }
}

/// Counts a failed attempt. Returns the error, or the one for too many attempts.
async fn count_failure(app: &App, incoming: &Incoming, error: ApiError) -> ApiError {
    app.metrics.http.count_denied(error.code());
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    match take(app, &Subject::FailedAuth(incoming.address), quota, app.clock.now()).await {
        Ok(rate) => error.with_rate(rate),
        Err(limited) => limited,
    }
}

/// Unwraps a result, counting an error as a failed attempt.
async fn or_count_failure<T>(
    app: &App,
    incoming: &Incoming,
    result: Result<T, ApiError>,
) -> Result<T, ApiError> {
    match result {
        Ok(value) => Ok(value),
        Err(error) => Err(Box::pin(count_failure(app, incoming, error)).await),
    }
}

/// Counts a request against the limits of its subject, or rejects it.
async fn take(app: &App, subject: &Subject, quota: Quota, now: Time) -> Result<LimitState, ApiError> {
    match app.limiter.take(subject, quota, now).await {
        Decision::Admitted(state) => Ok(state),
        Decision::Refused(state, window) => Err(rate_limited(app, subject, state, window)),
    }
}

/// The error for a request beyond its limits, which is counted in the metrics.
fn rate_limited(app: &App, subject: &Subject, state: LimitState, window: Window) -> ApiError {
    let name = match subject {
        Subject::Key(_) => "key",
        Subject::Session(_) => "session",
        Subject::OpenPage(_) => "open_page",
        Subject::Login(_) => "login",
        Subject::FailedAuth(_) => "failed_auth",
    };
    match window {
        Window::Minute => app.metrics.http.count_limited_by_minute(name),
        Window::Day => app.metrics.http.count_limited_by_day(name),
    }
    ApiError::rate_limited(state, window)
}

/// Registers a request that may take long, so that it is aborted when its key is revoked or expires.
pub(crate) async fn register(context: &Context, pass: &Pass) -> Result<Registration, ApiError> {
    let registration = context.in_flight.register(&pass.key.id, pass.key.expires_at);
    // A revocation between authentication and registration would be missed by the task that watches for them.
    match context.app.store.is_key_live(&pass.key.id).await {
        Ok(true) => Ok(registration),
        Ok(false) => Err(ApiError::key_revoked()),
        Err(cause) => Err(ApiError::store_failed(&cause)),
    }
}

/// Admits a request that needs no key: health pages, and routes that do not exist.
pub(crate) async fn open_page(app: &App, incoming: &Incoming) -> Result<LimitState, ApiError> {
    let quota = per_minute(incoming.configured.limits.open_pages_per_minute);
    take(app, &Subject::OpenPage(incoming.address), quota, app.clock.now()).await
}

/// The state of the limits of open pages, as counted by this server alone, without counting a request: for responses to
/// requests that are not counted, some of which cannot wait.
pub(crate) fn open_page_state(app: &App, configured: &Configured, address: IpAddr) -> LimitState {
    let quota = per_minute(configured.limits.open_pages_per_minute);
    app.limiter.peek_local(&Subject::OpenPage(address), quota, app.clock.now())
}

const fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, per_day: 0 }
}
