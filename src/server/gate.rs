//! The gate: who is this, and may they go on? In the contract's order: key present and well formed, known, revoked,
//! expired, right service, address, then the limits.
//!
//! What must hold: nothing of a request is read, and no work is done, before the gate has said yes; a store that
//! cannot answer is never a pass; failed attempts are counted per address, in buckets apart from valid keys, so that
//! nobody locks out a key by guessing beside it.
//!
//! # Threat model
//!
//! Worth protecting: providers' keys and the money behind them, callers' keys, what callers ask, what is booked.
//! Foreign: every byte of callers, browsers, proxies that are not trusted, providers, models and tools; for the
//! client, the server's. Trusted: this process, its user and its files, the configuration, and what a listed proxy
//! says of addresses.
//!
//! **Keys and ids**
//! - **Guessing a key.** 155 random bits; failures are counted by address and limited. Tests:
//!   `failed_authentication_is_limited_apart_from_valid_keys`, `wrong_keys_count_as_failed_authentication`,
//!   `guesses_are_counted_and_limited`
//! - **Timing of the key check.** What is looked up is a SHA-256 hash, so that no secret text is compared; the setup
//!   token's hash is compared in constant time. Tests: `keys_stand_nowhere_in_the_database`
//! - **Floods of keys that nobody has.** Each is looked up before it is refused; in PostgreSQL one after the other from
//!   addresses that have failed too often. Tests: `a_flood_of_unknown_keys_leaves_the_database_to_others`
//! - **What a refusal tells of a key.** Malformed and unknown are one answer, and several faults always give the same
//!   first one. Tests: `a_key_that_is_no_key_and_one_that_is_unknown_are_answered_alike`,
//!   `the_first_fault_in_the_order_of_checks_is_told`, `of_two_keys_none_is_believed`
//! - **Enumerating ids of apps, keys, requests.** Ids are no secrets and open nothing; what is another app's is
//!   answered like what is not there; all of it takes a console key. Tests: `every_id_of_another_app_is_not_found`,
//!   `ids_that_exist_elsewhere_and_ids_that_do_not_are_answered_alike`, `other_keys_reach_nothing_but_themselves`
//! - **Use after revocation.** It holds at the next request, for other processes too, for what a request has not
//!   written yet, and ends streams. Tests: `a_revocation_from_another_process_holds_for_the_next_request`,
//!   `what_comes_behind_the_end_of_its_key_is_not_written`, `a_revocation_ends_the_streams_of_its_key`
//!
//! **HTTP**
//! - **Smuggling past a proxy (length against chunks, doubled or odd lengths, codings, folded lines, two hosts or
//!   none).** Refused with 400, or answered as the last on its connection. Tests:
//!   `heads_that_two_could_read_differently_are_refused`,
//!   `of_length_and_chunks_the_chunks_count_and_the_connection_ends`, `chunks_that_lie_end_the_connection`
//! - **Bare LF.** It ends a line of a head, as RFC 9112 allows, and no chunk's. A proxy must not pass it on inside of
//!   a header. Tests: `a_bare_line_feed_ends_a_line_of_the_head`, `chunks_that_lie_end_the_connection`
//! - **A body that is left unread.** Its connection ends, and the answer says so. Tests:
//!   `an_answer_before_the_body_says_that_it_ends_the_connection`,
//!   `a_body_that_is_there_or_absent_costs_no_connection`
//! - **Absolute addresses, CONNECT.** The path counts; this is nobody's proxy. Tests:
//!   `an_address_of_somebody_else_is_never_called`
//! - **Splitting of answers, CRLF (`X-Request-Id`, paths).** Ids of other than letters, digits and `._-` are replaced;
//!   nothing else of a request is in a header of its answer. Tests: `no_line_of_a_caller_becomes_one_of_the_answer`,
//!   `only_well_formed_request_ids_are_kept`
//! - **Forged `X-Forwarded-For`.** Believed of listed proxies, from the right. Tests:
//!   `forwarded_addresses_count_only_behind_trusted_proxies`, `nobody_else_s_word_on_the_address_counts`
//! - **TLS downgrade.** 1.2 and 1.3 only; nothing in the clear on that port. Tests:
//!   `versions_that_are_broken_are_not_spoken`, `what_is_no_tls_is_turned_away_and_silence_does_not_hold_up_the_end`
//!
//! **Size and time**
//! - **Oversized address, head, body.** 414, 431 (from 64 KiB on, at twice that at the latest), 413, counted while
//!   they come. Tests: `heads_beyond_the_limits_are_refused`,
//!   `bodies_beyond_the_limit_are_refused_with_and_without_a_length`
//! - **Deep, wide, endless JSON (depth, messages, names).** Depth ends at 128; time grows with size and no faster.
//!   Tests: `senseless_bodies_are_refused`, `the_widest_bodies_are_dealt_with_in_linear_time`,
//!   `what_a_model_writes_is_read_in_linear_time`, `an_unknown_parameter_is_named_without_its_tricks`
//! - **Decompression bombs.** Compressed requests are refused; of providers no compression is asked, and none undone.
//!   Tests: `compressed_bodies_are_refused`, `a_call_carries_key_agent_and_body`,
//!   `a_compressed_answer_is_a_failure_and_not_unpacked`
//! - **Hash flooding.** No table has a hasher whose seed can be foreseen. Tests:
//!   `no_table_of_ours_has_a_hasher_that_can_be_foreseen`
//! - **Slow or silent callers and readers, storms.** Every wait has a limit, connections a cap. Tests:
//!   `dribbled_headers_and_bodies_are_cut_off`, `a_caller_who_does_not_read_is_cut_off`,
//!   `a_storm_of_silent_connections_passes`
//! - **Growing the metrics by invented names.** At most 200 invented models have a series. Tests:
//!   `names_that_callers_make_up_do_not_grow_the_page`
//!
//! **Browsers**
//! - **CSRF.** `SameSite=Strict`, and what writes by cookie needs an `Origin` of this server. Tests:
//!   `what_writes_by_cookie_comes_from_a_page_of_ours`, `a_foreign_page_neither_logs_in_nor_out_nor_sets_up`
//! - **Session fixation, theft.** Each login makes its own; a session ends with its key. Tests:
//!   `a_planted_cookie_never_becomes_a_session`, `a_stolen_cookie_dies_with_its_key`, `several_hold_nothing`
//! - **Clickjacking, injected scripts.** No frame, nothing inline or from elsewhere, no text made markup; errors too.
//!   Tests: `whatever_a_browser_is_shown_it_shows_in_no_frame`, `nothing_comes_from_elsewhere_and_nothing_is_inline`
//! - **Another origin, DNS rebinding.** No CORS; `/metrics` is open only to who calls this machine by address or as
//!   `localhost`. Tests: `no_answer_is_shared_with_another_origin`,
//!   `metrics_are_not_open_to_a_page_whose_name_was_rebound`, `a_rebound_page_has_nothing_but_what_is_open_to_all`
//! - **Path traversal.** Files are a table in the binary. Tests: `nothing_else_is_there_whatever_the_path_looks_like`
//!
//! **Models and providers**
//! - **Prompt injection by statement, context, model.** Each stands between random marks that it cannot contain, and
//!   what models choose is one of the options shown. Made unlikely, not impossible. Tests:
//!   `a_statement_stays_data_in_the_prompts`, `untrusted_text_stands_only_inside_fences`,
//!   `a_text_never_holds_its_own_marker`
//! - **Prompt injection by tool output (chat).** Passed on as one message of its role; no tool is run here. Tests:
//!   `what_a_tool_says_stays_what_a_tool_says`
//! - **SSRF.** Addresses come from the configuration only. Those in texts and `image_url` are passed on as text (the
//!   provider may fetch them); no redirect is followed. Tests: `addresses_in_a_chat_are_text_and_never_fetched`,
//!   `addresses_in_a_statement_are_text_and_never_fetched`, `no_redirect_of_a_provider_is_followed`
//! - **Hostile answers.** Counted while they come, bounded, in a verification cleaned; headers do not pass. Tests:
//!   `huge_and_broken_provider_answers_are_failures_and_no_more`, `what_models_write_is_cleaned_before_it_goes_on`,
//!   `no_header_of_a_provider_reaches_a_caller`, `a_provider_s_words_never_reach_the_caller`
//! - **An answer that reaches another caller.** A connection to a provider is kept only if its answer came to an end
//!   beyond doubt and nothing more, and looked at before each use. Tests: `whatever_could_be_read_in_two_ways_is_broken`,
//!   `whatever_is_accepted_here_hyper_reads_in_the_same_way`,
//!   `a_connection_with_unsolicited_bytes_is_closed`,
//!   `an_idle_connection_is_checked_even_without_cooperative_budget`
//!
//! **Output**
//! - **Log injection.** A line is one JSON object without a byte that commands a terminal; long texts are cut. Tests:
//!   `foreign_text_cannot_forge_a_line_of_the_log`, `a_line_is_one_object_whatever_it_tells`,
//!   `no_line_commands_a_terminal`
//! - **Secrets in logs, at any level.** Keys and tokens are not logged, and left out where they stand in a path.
//!   Tests: `the_log_tells_no_key_however_much_it_tells`, `what_stands_in_a_path_is_logged_without_its_secrets`,
//!   `no_secret_is_in_the_audit_or_the_log`
//! - **A provider that repeats its key.** The key it was asked with is masked in its words, which callers and the log
//!   get to see. Tests: `a_key_that_a_provider_repeats_reaches_nobody`
//! - **Secrets in crashes, `Debug`, listings.** Panics tell a place and fixed text, no core is written, secrets print
//!   as nothing. Tests: `a_handler_that_panics_gives_an_answer_and_keeps_the_connection`,
//!   `a_crash_writes_no_memory_to_a_disk`, `the_line_end_goes_and_debug_shows_nothing`,
//!   `the_listing_tells_origins_and_no_secrets`, `the_process_list_shows_no_key`
//! - **SQL, LIKE.** Texts are bound; there are no patterns. Tests:
//!   `filters_are_texts_and_neither_patterns_nor_queries`
//! - **CSV formulas.** They get an apostrophe. Tests: `no_text_is_a_formula_or_breaks_its_row`
//! - **Terminals of the client.** Control characters go, whoever sent them. Tests:
//!   `what_a_server_says_cannot_command_a_terminal`, `what_models_write_cannot_command_a_terminal`
//!
//! **Not defended:** against root and this process's own user, who read memory, databases and providers' keys
//! (databases hold hashes of keys and nothing that was asked); against a provider that lies, remembers, or bills what
//! it likes; against models that agree and are wrong: agreement is no proof; against whoever holds a console key,
//! which opens all apps (the audit tells what was done); against a trusted proxy that does not clean what it passes
//! on; against whoever can write to a shared store of limits, who may lift them and use them up; against somebody who
//! measures sizes and times of a stream's pieces through TLS, which tell the lengths of words; against floods from many
//! addresses, which share the cap of connections; against anybody on the way where no TLS is used.

mod console;

pub(crate) use console::{
    Admitted, Own, actor, console, console_key, cookie_of, login, logout, own_key, refuse_setup, session,
    somebody,
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
use crate::limits::{Decision, Quota, State, Subject, Window};
use crate::storage::KeyRow;
use crate::usage::{Account, Budget};

/// How long somebody waits for a [`turn`].
const SUSPECTS_WAIT: Duration = Duration::from_secs(2);

/// A request that may go on.
pub(crate) struct Pass {
    /// The caller's key.
    pub(crate) key: Arc<KeyRow>,
    /// Its limits, this request counted.
    pub(crate) rate: State,
    /// What is noted of it.
    pub(crate) record: Arc<Record>,
}

impl Pass {
    /// What the key may spend.
    pub(crate) fn budget(&self) -> Budget {
        Budget { key: self.key.budget, app: self.key.app_budget }
    }

    /// The account that a request runs on.
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

/// Lets a request with a valid key for `service` through.
pub(crate) async fn keyed(app: &App, incoming: &Incoming, service: Service) -> Result<Pass, ApiError> {
    let now = app.clock.now();
    let key = authenticated(app, incoming, service, now).await?;
    let rate = take(app, &Subject::Key(key.id.clone()), quota_of(incoming, &key), now).await?;
    Ok(Pass { key, rate, record: incoming.record.clone() })
}

/// A key's own limits, or the server's.
fn quota_of(incoming: &Incoming, key: &KeyRow) -> Quota {
    let usual = incoming.configured.limits.keys;
    Quota {
        per_minute: key.per_minute.unwrap_or(usual.per_minute),
        per_day: key.per_day.unwrap_or(usual.per_day),
    }
}

/// Lets whoever looks after the server through: a request from this machine itself, or one with a console key. It
/// counts as one for an open page and not against the key: whoever scrapes every few seconds would use up any day.
pub(crate) async fn operator(app: &App, incoming: &Incoming) -> Result<State, ApiError> {
    if !incoming.is_local() {
        let now = app.clock.now();
        let key = authenticated(app, incoming, Service::Console, now).await?;
        app.limiter.note_use(&key.id, now);
    }
    open(app, incoming).await
}

/// The key of a request, if it is one for `service`.
async fn authenticated(
    app: &App,
    incoming: &Incoming,
    service: Service,
    now: Time,
) -> Result<Arc<KeyRow>, ApiError> {
    let _turn = turn(app, incoming, now).await?;
    let found = keys::authenticate(&app.store, bearer(&incoming.headers), service, incoming.address, now);
    let key = or_refused(app, incoming, found.await, None).await?;
    incoming.record.came_with(key.clone());
    Ok(key)
}

/// A turn to have a key looked up, which those need whose address has failed too often, where the database is a way over
/// the network: a flood of keys that nobody has is to leave its connections to others. A good key from there waits for its
/// turn as well.
async fn turn<'a>(
    app: &'a App,
    incoming: &Incoming,
    now: Time,
) -> Result<Option<SemaphorePermit<'a>>, ApiError> {
    if app.store.is_local() {
        return Ok(None);
    }
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    let subject = Subject::FailedAuth(incoming.address);
    let state = app.limiter.peek_here(&subject, quota, now);
    if state.minute.is_none_or(|minute| minute.remaining > 0) {
        return Ok(None);
    }
    match timeout(SUSPECTS_WAIT, app.suspects.acquire()).await {
        Ok(Ok(turn)) => Ok(Some(turn)),
        _ => Err(limited(app, &subject, state, Window::Minute)),
    }
}

/// What was found of a caller, or what it is told, as [`refuse`] has it.
async fn or_refused<T>(
    app: &App,
    incoming: &Incoming,
    found: Result<T, Denied>,
    rate: Option<State>,
) -> Result<T, ApiError> {
    match found {
        Ok(found) => Ok(found),
        // In a box: who is let in makes no room for it.
        Err(denied) => Err(Box::pin(refuse(app, incoming, denied, rate)).await),
    }
}

/// What a caller is told who has not shown who it is. Counted as a failed attempt of its address, unless it is the
/// store that has failed. The answer describes `rate`, or else the limits of such attempts.
async fn refuse(app: &App, incoming: &Incoming, denied: Denied, rate: Option<State>) -> ApiError {
    let is_counted = !matches!(denied, Denied::Unavailable(_));
    let error = ApiError::from(denied);
    let error = if let Some(rate) = rate { error.with_rate(rate) } else { error };
    if is_counted {
        count_failure(app, incoming, error).await
    } else {
        error.with_rate(open_state(app, &incoming.configured, incoming.address))
    }
}

/// Counts a failed attempt: this error, or the one that there were too many.
async fn count_failure(app: &App, incoming: &Incoming, error: ApiError) -> ApiError {
    app.metrics.http.count_denied(error.code());
    let quota = per_minute(incoming.configured.limits.failed_auth_per_minute);
    match take(app, &Subject::FailedAuth(incoming.address), quota, app.clock.now()).await {
        Ok(rate) => error.with_rate(rate),
        Err(limited) => limited,
    }
}

/// An outcome whose error is counted as a failed attempt.
async fn or_failed<T>(app: &App, incoming: &Incoming, outcome: Result<T, ApiError>) -> Result<T, ApiError> {
    match outcome {
        Ok(value) => Ok(value),
        Err(error) => Err(Box::pin(count_failure(app, incoming, error)).await),
    }
}

/// Counts a request against its limits, or refuses it.
async fn take(app: &App, subject: &Subject, quota: Quota, now: Time) -> Result<State, ApiError> {
    match app.limiter.take(subject, quota, now).await {
        Decision::Admitted(state) => Ok(state),
        Decision::Refused(state, window) => Err(limited(app, subject, state, window)),
    }
}

/// What somebody is told who is beyond a limit; counted.
fn limited(app: &App, subject: &Subject, state: State, window: Window) -> ApiError {
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

/// Lists a request that may take long, so that it ends when its key is revoked.
pub(crate) async fn enlist(context: &Context, pass: &Pass) -> Result<Registration, ApiError> {
    let listed = context.in_flight.register(&pass.key.id);
    // A revocation between the gate and the list would be missed by the watcher.
    let id = pass.key.id.clone();
    match context.app.store.ask(move |store| store.is_key_live(&id)).await {
        Ok(true) => Ok(listed),
        Ok(false) => Err(ApiError::key_revoked()),
        Err(cause) => Err(ApiError::store_failed(&cause)),
    }
}

/// Lets a request for an open page through: health, and addresses that do not exist.
pub(crate) async fn open(app: &App, incoming: &Incoming) -> Result<State, ApiError> {
    let quota = per_minute(incoming.configured.limits.open_pages_per_minute);
    take(app, &Subject::OpenPage(incoming.address), quota, app.clock.now()).await
}

/// The limits of open pages as this server has counted them for this caller, nothing counted: for answers that count
/// nothing, and some of which cannot wait.
pub(crate) fn open_state(app: &App, configured: &Configured, address: IpAddr) -> State {
    let quota = per_minute(configured.limits.open_pages_per_minute);
    app.limiter.peek_here(&Subject::OpenPage(address), quota, app.clock.now())
}

const fn per_minute(per_minute: u32) -> Quota {
    Quota { per_minute, per_day: 0 }
}
