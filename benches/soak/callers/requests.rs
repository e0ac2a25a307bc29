//! The requests that callers send.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::Place;
use crate::dice::Dice;
use crate::site::UNPRICED;
use crate::token;

pub(super) const CHAT: &str = "/inference/v1/chat/completions";
pub(super) const VERIFY: &str = "/verify/v1/stream";

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A verification, as a stream.
    Verify,
    /// The same, as one JSON document.
    VerifyDocument,
    /// A completion.
    Chat,
    /// The same, as a stream.
    ChatStream,
    /// An invalid verification.
    BadVerify,
    /// An invalid completion.
    BadChat,
    /// A completion with an invalid key.
    WrongKey,
    /// A completion without a key.
    NoKey,
    /// A completion with a key that exceeds its limit.
    Scarce,
    /// An open page.
    Page,
    /// A page of the console.
    Console,
    /// A path that does not exist.
    Nowhere,
}

const MODELS: [&str; 5] = ["plain/fast", "plain/one", "messages/fast", "gemini/fast", UNPRICED];
const PAGES: [&str; 6] =
    ["/metrics", "/", "/openapi.json", "/inference/v1/health", "/verify/v1/health", "/metrics"];
const CONSOLE: [&str; 6] = [
    "/v1/usage?by=day,model",
    "/v1/usage?by=key",
    "/v1/billing",
    "/v1/apps",
    "/v1/audit?limit=20",
    "/v1/key",
];
/// Bodies that are wrong for both services.
const WRONG: [&str; 5] = ["", "{", "[]", "{\"nothing\":1}", "{\"model\":7,\"fact\":[]}"];

impl Wanted {
    /// Whether a caller may leave before the response is complete.
    pub(super) const fn may_leave(self) -> bool {
        matches!(self, Self::Verify | Self::VerifyDocument | Self::Chat | Self::ChatStream)
    }
}

/// Builds the request, except for its id.
pub(super) fn make(place: &Place, wanted: Wanted, token: u64, dice: &mut Dice) -> RequestBuilder {
    let keys = &place.keys;
    let post = |path: &str, key: &str| place.request(Method::POST, path).bearer_auth(key);
    match wanted {
        Wanted::Verify => post(VERIFY, &keys.verify).json(&fact(token)),
        Wanted::VerifyDocument => {
            post(VERIFY, &keys.verify).header("accept", "application/json").json(&fact(token))
        }
        Wanted::Chat => post(CHAT, &keys.inference).json(&hello(token, false, dice)),
        Wanted::ChatStream => post(CHAT, &keys.inference).json(&hello(token, true, dice)),
        Wanted::BadVerify => wrong(post(VERIFY, &keys.verify), dice),
        Wanted::BadChat => wrong(post(CHAT, &keys.inference), dice),
        Wanted::WrongKey => {
            let key = [keys.foreign.as_str(), "mk_inference_short", "x", &keys.verify][number(dice, 4)];
            post(CHAT, key).json(&hello(token, false, dice))
        }
        Wanted::NoKey => place.request(Method::POST, CHAT).json(&hello(token, false, dice)),
        Wanted::Scarce => post(CHAT, &keys.scarce).json(&hello(token, dice.chance(500), dice)),
        Wanted::Page => place.request(Method::GET, PAGES[number(dice, PAGES.len())]),
        Wanted::Console => {
            let path = CONSOLE[number(dice, CONSOLE.len())];
            place.request(Method::GET, path).bearer_auth(&keys.console)
        }
        Wanted::Nowhere => place.request(Method::GET, ["/nowhere", "/v1/nowhere"][number(dice, 2)]),
    }
}

/// A statement with the request's number in it.
pub(super) fn fact(token: u64) -> Value {
    json!({"fact": format!("The towers of {} stand in Paris.", token::id(token))})
}

/// A conversation with the request's number in it.
pub(super) fn hello(token: u64, is_stream: bool, dice: &mut Dice) -> Value {
    let mut body = json!({
        "model": MODELS[number(dice, MODELS.len())],
        "messages": [
            {"role": "system", "content": "Answer in a few words."},
            {"role": "user", "content": format!("Hello, this is {}. How are you today?", token::id(token))},
        ],
        "stream": is_stream,
    });
    if is_stream && dice.chance(500) {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

fn wrong(request: RequestBuilder, dice: &mut Dice) -> RequestBuilder {
    let kind = if dice.chance(800) { "application/json" } else { "text/plain" };
    request.header("content-type", kind).body(WRONG[number(dice, WRONG.len())])
}

fn number(dice: &mut Dice, below: usize) -> usize {
    usize::try_from(dice.below(below as u64)).unwrap_or_default()
}
