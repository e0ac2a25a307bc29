//! Clients for a server, and what its errors or its silence mean on a terminal: a kind, a message and hints.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time;

use super::parameters::in_flags;
use crate::api::Service;
use crate::api::error::ErrorEvent;
use crate::api::error_code::ErrorCode;
use crate::cli::process::exit::{Failure, Kind, ServerError};
use crate::cli::terminal::wrap::cut;
use crate::client::{Client, Error, Refusal, Settings};
use crate::config::{ClientConfig, DEFAULT_SERVER};
use crate::secret::SecretString;

/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The usual time limit for a call that only asks for something known.
const SHORT_TIMEOUT: Duration = Duration::from_secs(15);

/// Time limit for the next byte of a stream: servers send a comment every 15 s.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Hint for whoever looked for a server in vain, where it would not help to suggest looking.
const START_OR_NAME_HINT: &str = "start it, or name another with --server or MK_SERVER";
/// What else helps where a server listens by default.
const START_HERE_HINT: &str = "; `mk serve --sandbox` starts one here";

/// The most terminal cells shown of a server's message; our own messages are a sentence.
const MAX_MESSAGE_CELLS: usize = 400;

/// A client of the configured server.
pub(crate) fn client(config: &ClientConfig, key: Option<SecretString>) -> Result<Client, Failure> {
    client_with_timeout(config, key, IDLE_TIMEOUT)
}

/// A client of the configured server with this idle timeout.
pub(crate) fn client_with_timeout(
    config: &ClientConfig,
    key: Option<SecretString>,
    idle_timeout: Duration,
) -> Result<Client, Failure> {
    client_of(config.server.clone(), key, idle_timeout, config.ca_cert.clone())
}

/// A client of any server.
pub(crate) fn client_of(
    server: String,
    key: Option<SecretString>,
    idle_timeout: Duration,
    ca_cert: Option<PathBuf>,
) -> Result<Client, Failure> {
    let settings = Settings { server, key, connect_timeout: CONNECT_TIMEOUT, idle_timeout, ca_cert };
    Client::new(&settings).map_err(|cause| failure(&settings.server, cause))
}

/// How long a call may take that only asks for something known.
pub(crate) fn short_timeout(config: &ClientConfig) -> Duration {
    config.timeout.unwrap_or(SHORT_TIMEOUT)
}

/// The outcome of a call that may take this long.
pub(crate) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    time::timeout(limit, call).await.unwrap_or(Err(Error::Timeout))
}

/// The failure for an error of the client; `server` is what the person called it.
pub(crate) fn failure(server: &str, cause: Error) -> Failure {
    failure_for(Service::Verify, server, None, cause)
}

/// The failure for an error of the client, in the words of chat completions.
pub(crate) fn inference_failure(server: &str, cause: Error) -> Failure {
    failure_for(Service::Inference, server, None, cause)
}

/// The failure for an error of the client in a call of this service; `model_flag` is what gave the model, if not `-m`.
pub(crate) fn failure_for(service: Service, server: &str, model_flag: Option<&str>, cause: Error) -> Failure {
    let failure = match &cause {
        Error::Setup(what) => Failure::usage(what.clone()),
        Error::Unresolved | Error::NoTls | Error::Unreachable(_) => {
            Failure::new(Kind::Unreachable, format!("cannot reach {server} ({cause})"))
                .hint(unreachable_hint(server, &cause))
        }
        Error::BadCertificate(flaw, _) => {
            Failure::new(Kind::Unreachable, format!("cannot reach {server} ({})", flaw.as_str()))
                .hint(flaw.hint())
        }
        Error::Timeout => Failure::new(Kind::Unreachable, format!("{server} did not answer in time"))
            .hint("check the server with `mk doctor`"),
        Error::Refused(refusal) => refused(service, server, model_flag, refusal),
        Error::Failed(event) => failed_event(service, server, event),
        Error::Incomplete if service == Service::Inference => {
            Failure::new(Kind::Incomplete, format!("the answer from {server} broke off"))
                .hint("what was received is incomplete; try again")
        }
        Error::Incomplete => {
            Failure::new(Kind::Incomplete, format!("the answer from {server} ended before the result"))
                .hint("the server may have been stopped; what was received is incomplete")
        }
        Error::Unhealthy(why) => {
            Failure::new(Kind::Server, format!("{server} reports that it is unhealthy: {why}"))
        }
        Error::NotHttp | Error::Malformed(_) => {
            Failure::new(Kind::Server, format!("{server} does not seem to be an mk server: {cause}"))
                .hint(foreign_hint(server, &cause))
        }
    };
    failure.caused_by(cause)
}

/// The failure to reach `server` without the hints that suggest `command`, for use by that command itself.
pub(crate) fn without_hints_to(command: &str, server: &str, mut failure: Failure) -> Failure {
    if failure.kind == Kind::Unreachable {
        failure.hints.retain(|hint| !hint.contains(command));
        if failure.hints.is_empty() {
            failure.hints.push(with_start_here(START_OR_NAME_HINT, server));
        }
    }
    failure
}

/// The hint, with how to start a server if one started without further flags would be at this address.
fn with_start_here(hint: &str, server: &str) -> String {
    let start_here = if server == DEFAULT_SERVER { START_HERE_HINT } else { "" };
    format!("{hint}{start_here}")
}

/// Whether an error says that the server does not know the endpoint, as older servers do not.
pub(crate) fn is_unknown_endpoint(cause: &Error) -> bool {
    matches!(cause, Error::Refused(refusal) if refusal.status == 404)
}

/// The failure for `what` not arriving within `limit`; `instead` says what else helps besides allowing more.
pub(crate) fn too_slow(what: &str, limit: Duration, instead: &str) -> Failure {
    let shown = if limit.subsec_millis() > 0 { format!("{} ms", limit.as_millis()) } else { span(limit) };
    Failure::new(Kind::Unreachable, format!("no {what} within {shown}"))
        .hint(format!("allow more with --timeout{instead}"))
}

fn unreachable_hint(server: &str, cause: &Error) -> String {
    match (cause, server.strip_prefix("https://")) {
        (Error::Unresolved, _) => "check the server's address; `mk whoami` shows where it is set".to_owned(),
        (Error::NoTls, Some(host)) => format!("try http://{host}"),
        _ => with_start_here("is the server running? `mk doctor` checks", server),
    }
}

fn foreign_hint(server: &str, cause: &Error) -> String {
    match (cause, server.strip_prefix("http://")) {
        (Error::NotHttp, Some(host)) => format!("try https://{host}, and check that it is an mk server"),
        _ => "check that this is the address of an mk server".to_owned(),
    }
}

fn refused(service: Service, server: &str, model_flag: Option<&str>, refusal: &Refusal) -> Failure {
    let body = &refusal.body;
    if body.code.is_empty() {
        return foreign_response(server, refusal);
    }
    let code = ErrorCode::find(&body.code);
    let kind = match code {
        // A proper request that a model refuses to answer, or whose answer is withheld.
        Some(ErrorCode::ContentFilter | ErrorCode::AnswerBlocked) => Kind::Other,
        _ => kind_of_status(refusal.status),
    };
    let mut message = lower_first(&body.message);
    if let Some(param) = &body.param {
        message = in_flags(param, &message, model_flag);
    }
    let mut failure = Failure::new(kind, brief(&message));
    failure.hints.extend(hint(code, service, server));
    match (refusal.status, refusal.retry_after) {
        // A limit frees a request at a known time; whatever else is busy may be so again.
        (429, Some(wait)) => failure.message = format!("{}; free again in {}", failure.message, span(wait)),
        // Who is paused, and until when, says the message.
        (503, Some(wait)) if code != Some(ErrorCode::NoProviderAvailable) => {
            failure.hints.push(format!("try again in {}", span(wait)));
        }
        // Everything else that can be wrong with a text is found before it is sent.
        (400, _) if body.param.as_deref() == Some("fact") => failure.hints.push(
            "split it into files, which are verified one by one: `mk verify part1.md part2.md`; or use --lines \
             for one statement per line"
                .to_owned(),
        ),
        _ => {}
    }
    let retry_after = refusal.retry_after.filter(|_| refusal.status == 429 && !refusal.hopeless);
    with_server_error(failure, &body.code, &body.request_id, retry_after)
}

/// The failure for an error status without our error body, from a proxy or another program. Its kind still follows the
/// status, as the refusal may come from a proxy in front of an mk server.
fn foreign_response(server: &str, refusal: &Refusal) -> Failure {
    let (status, title) = (refusal.status, brief(&refusal.body.message));
    let message = format!("{server} answered {status} {title}, but not like an mk server");
    let hint = if (300..=399).contains(&status) {
        "use that address, with --server or MK_SERVER"
    } else {
        "check that this is the address of an mk server"
    };
    let failure = Failure::new(kind_of_status(status), message).hint(hint);
    let retry_after = refusal.retry_after.filter(|_| status == 429 && !refusal.hopeless);
    with_server_error(failure, "", "", retry_after)
}

const fn kind_of_status(status: u16) -> Kind {
    match status {
        400 | 413..=415 | 422 | 431 => Kind::Usage,
        401..=403 => Kind::Unauthorized,
        404 | 405 | 410 => Kind::NotFound,
        408 => Kind::Unreachable,
        409 => Kind::Conflict,
        429 | 503 => Kind::Busy,
        _ => Kind::Server,
    }
}

/// What to do about an error, in words for the command that met it.
fn hint(code: Option<ErrorCode>, service: Service, server: &str) -> Option<String> {
    let hint = match (code?, service) {
        (ErrorCode::RateLimitedMinute, Service::Verify) => "`mk verify --max-wait 2m` waits until then",
        (ErrorCode::RateLimitedMinute, Service::Console) => {
            "`mk keys update KEY --per-minute N` raises the console key's limit"
        }
        (code, _) => code.hint()?,
    };
    Some(hint.replace("{service}", service.as_str()).replace("{server}", server))
}

/// The failure for the `error` event of a verification, or for the last chunk of a completion that broke off.
fn failed_event(service: Service, server: &str, event: &ErrorEvent) -> Failure {
    let code = ErrorCode::find(&event.code);
    let kind = match code.map(|code| kind_of_status(code.status())) {
        Some(Kind::Unauthorized) => Kind::Unauthorized,
        _ => Kind::Server,
    };
    let mut failure = Failure::new(kind, brief(&lower_first(&event.message)));
    failure.hints.extend(hint(code, service, server));
    with_server_error(failure, &event.code, &event.request_id, None)
}

fn with_server_error(
    mut failure: Failure,
    code: &str,
    request_id: &str,
    retry_after: Option<Duration>,
) -> Failure {
    let (code, request_id) = (brief(code), brief(request_id));
    failure.server_error = Some(Box::new(ServerError { code, request_id, retry_after }));
    failure
}

/// As much of a foreign text as a person would read.
fn brief(text: &str) -> String {
    // Not by cells alone, as characters without a width take none; most scripts have fewer of those than of others.
    match text.char_indices().nth(2 * MAX_MESSAGE_CELLS) {
        Some((end, _)) => cut(&text[..end], MAX_MESSAGE_CELLS - 3, "") + "...",
        None => cut(text, MAX_MESSAGE_CELLS, "..."),
    }
}

/// Messages follow `error:` and start in lower case; acronyms and names keep their capitals.
pub(crate) fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    let (Some(first), second) = (chars.next(), chars.next()) else { return message.to_owned() };
    if second.is_some_and(char::is_uppercase) {
        return message.to_owned();
    }
    first.to_lowercase().chain(message.chars().skip(1)).collect()
}

/// `42 s`, `3 m 20 s`, `5 h 10 m`.
pub(crate) fn span(wait: Duration) -> String {
    let seconds = whole_seconds(wait);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::ErrorBody;

    fn refusal(status: u16, code: &str, message: &str, retry_after: Option<u64>) -> Error {
        Error::Refused(Box::new(Refusal {
            status,
            body: ErrorBody {
                error: "E".to_owned(),
                message: message.to_owned(),
                code: code.to_owned(),
                request_id: "req_1".to_owned(),
                ..ErrorBody::default()
            },
            retry_after: retry_after.map(Duration::from_secs),
            hopeless: false,
        }))
    }

    #[test]
    fn a_server_is_started_here_only_for_the_address_it_would_have() {
        for (server, helps) in
            [(DEFAULT_SERVER, true), ("http://127.0.0.1:9", false), ("https://mk.example", false)]
        {
            assert_eq!(
                unreachable_hint(server, &Error::Unreachable("connection refused".to_owned()))
                    .contains("starts one here"),
                helps,
                "{server}"
            );
            let alone =
                without_hints_to("`mk doctor`", server, failure(server, Error::Unreachable("x".to_owned())));
            assert_eq!(alone.hints[0].contains("starts one here"), helps, "{server}");
        }
    }

    #[test]
    fn an_unreachable_server_is_reported_with_what_to_do() {
        let failure = failure("http://127.0.0.1:1", Error::Unreachable("connection refused".to_owned()));
        assert_eq!(failure.message, "cannot reach http://127.0.0.1:1 (connection refused)");
        assert_eq!(failure.kind.code(), 6);
        assert_eq!(failure.hints.len(), 1);
    }

    #[test]
    fn a_limit_says_when_it_is_over() {
        let failure =
            failure("s", refusal(429, "rate_limited_minute", "Too many requests per minute", Some(42)));
        assert_eq!(failure.message, "too many requests per minute; free again in 42 s");
        assert_eq!(failure.kind.code(), 7);
        let server_error = failure.server_error.unwrap();
        assert_eq!(
            (server_error.request_id.as_str(), server_error.retry_after),
            ("req_1", Some(Duration::from_secs(42)))
        );
    }

    #[test]
    fn a_wait_is_told_once() {
        let paused =
            failure("s", refusal(503, "no_provider_available", "m is paused; try again in 9 s", Some(9)));
        assert_eq!((paused.message.as_str(), paused.hints.len()), ("m is paused; try again in 9 s", 0));
        for code in ["provider_rate_limited", "of_a_later_version"] {
            let busy = failure("s", refusal(503, code, "m has no capacity", Some(200)));
            assert_eq!(
                (busy.message.as_str(), &*busy.hints),
                ("m has no capacity", &["try again in 3 m 20 s".to_owned()][..])
            );
        }
    }

    #[test]
    fn hints_follow_from_code_and_service_and_not_from_words() {
        let told = |service, code, message| {
            failure_for(service, "http://a", None, refusal(401, code, message, None)).hints.join(" | ")
        };
        for service in Service::ALL {
            let hint = format!(
                "each key works for one service only; create another with `mk keys create --service {service}`"
            );
            assert_eq!(told(service, "wrong_service", "Dieser Schlüssel passt nicht"), hint);
        }
        assert!(
            told(Service::Verify, "invalid_api_key", "x").ends_with("`mk login` stores one for http://a")
        );
        assert_eq!(told(Service::Verify, "of_a_later_version", "wrong_service"), "");
    }

    #[test]
    fn an_event_s_exit_code_follows_from_its_code() {
        for (code, exit) in
            [("api_key_revoked", 4), ("budget_exceeded", 4), ("provider_rate_limited", 5), ("x", 5)]
        {
            let event = ErrorEvent {
                error: String::new(),
                message: "m".to_owned(),
                code: code.to_owned(),
                request_id: String::new(),
            };
            assert_eq!(failure("s", Error::Failed(Box::new(event))).kind.code(), exit, "{code}");
        }
    }

    #[test]
    fn statuses_become_exit_codes() {
        for (status, code) in [
            (400, 2),
            (401, 4),
            (402, 4),
            (403, 4),
            (404, 9),
            (408, 6),
            (413, 2),
            (414, 2),
            (429, 7),
            (431, 2),
            (500, 5),
            (502, 5),
            (503, 7),
            (504, 5),
            (302, 5),
        ] {
            assert_eq!(failure("s", refusal(status, "x", "m", None)).kind.code(), code, "{status}");
        }
        assert_eq!(failure("s", Error::Incomplete).kind.code(), 8);
        assert_eq!(failure("s", Error::Timeout).kind.code(), 6);
    }

    #[test]
    fn an_answer_that_is_declined_or_withheld_is_not_a_usage_error() {
        for (status, code) in [(400, "content_filter"), (422, "answer_blocked")] {
            assert_eq!(failure("s", refusal(status, code, "m", None)).kind.code(), 1, "{code}");
        }
    }

    #[test]
    fn acronyms_keep_their_capitals() {
        assert_eq!(
            failure("s", refusal(401, "api_key_revoked", "API key has been revoked", None)).message,
            "API key has been revoked"
        );
    }

    #[test]
    fn waits_are_rounded_up() {
        for (wait, text) in
            [(1500, "2 s"), (119_000, "119 s"), (200_000, "3 m 20 s"), (18_600_000, "5 h 10 m")]
        {
            assert_eq!(span(Duration::from_millis(wait)), text);
        }
    }
}
