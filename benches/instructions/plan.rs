//! What is counted, and the budget for each figure.
//!
//! Budgets are the counts when they were last set, with `profile.toml`, on x86-64. Requests in other protocols are
//! held to chat completions instead.

use crate::caller::Expected;
use crate::protocols::{Other, Protocol, Shape, Way};
use crate::requests::{
    self, CHAT, HEALTH, HEALTHY, STREAM, UNAUTHORIZED, WHOLE, completion, longer_completion,
};
use crate::site::{MODEL, Site};

const VERIFY: &str = "/verify/v1/stream";
const VERIFIED: Expected = Expected { status: 200, text: "event: completed\n", events: 0 };
/// Ten claims, all of them in the sandbox's tables.
const FACT: &str = "The Eiffel Tower is in Paris. The capital of Australia is Canberra. Gold has the chemical symbol \
    Au. Two plus two is four. Three plus four is seven. Five plus six is eleven. Two plus nine is eleven. Four plus \
    four is eight. The US Constitution was signed in 1787. The Nile is the longest river in the world.";

/// A request that is sent repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A chat completion with a well-formed unknown key: only the gate.
    Unknown,
    /// The health page: what every response takes.
    Health,
    /// A whole chat completion.
    Chat,
    /// A streamed one, of a hundred chunks of text.
    Stream,
    /// A verification of ten claims; most of it is the sandbox's work.
    Verification,
    /// A verification that also reports each model's answer.
    Detailed,
    /// A whole chat completion with a prompt of 100 kB, as an agent's first turn has.
    LongChat,
    /// A request in another protocol.
    Other(Other),
}

/// What a figure is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// About as many instructions as when this was set.
    Budget(u64),
    /// At most this many percent of the figure of a chat completion.
    OfChat(u64, Ask),
}

/// What a figure counts instructions per.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Per {
    /// A response.
    Answer,
    /// An event of a response.
    Event,
    /// An additional event, compared with the responses to this request, which is otherwise the same.
    EventBeyond(Ask),
}

/// A figure and its budget.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Its name in the table.
    pub(crate) title: String,
    /// The request.
    pub(crate) ask: Ask,
    /// What it counts instructions per.
    pub(crate) per: Per,
    /// What it is held to.
    pub(crate) bound: Bound,
}

/// What requests in other protocols are held to in percent of a chat completion, by [`Shape`]: what was counted and a
/// tenth. In processor time the bounds are 125 for what is passed on and 160 for what is translated (`benches/gateway`).
const fn held_to(protocol: Protocol, way: Way) -> [u64; 3] {
    match (protocol, way) {
        (Protocol::Messages, Way::PassedOn) => [129, 134, 132],
        (Protocol::Messages, Way::Translated) => [166, 166, 182],
        (Protocol::Responses, Way::PassedOn) => [121, 139, 130],
        (Protocol::Responses, Way::Translated) => [171, 175, 182],
    }
}

/// All figures, those of chat completions before others that are held to them.
pub(crate) fn figures() -> Vec<Figure> {
    let budget = |title: &str, ask, per, instructions| Figure {
        title: title.to_owned(),
        ask,
        per,
        bound: Bound::Budget(instructions),
    };
    let mut figures = vec![
        budget("401 to an unknown key", Ask::Unknown, Per::Answer, 51_800),
        budget("health page", Ask::Health, Per::Answer, 35_300),
        budget("chat, whole, about 1 KB each way", Ask::Chat, Per::Answer, 117_000),
        budget("chat, streamed", Ask::Stream, Per::Answer, 1_530_000),
        budget("chat, streamed, an event", Ask::Stream, Per::Event, 14_900),
        budget("chat, a prompt of 100 kB", Ask::LongChat, Per::Answer, 431_000),
        budget("verification, a frame more", Ask::Detailed, Per::EventBeyond(Ask::Verification), 10_000),
    ];
    let others = Other::all().map(|other @ Other { protocol, way, shape }| {
        let chat = match shape {
            Shape::Whole => Ask::Chat,
            Shape::Stream => Ask::Stream,
            Shape::Long => Ask::LongChat,
        };
        Figure {
            title: format!("{protocol:?}, {way:?}, {shape:?}"),
            ask: Ask::Other(other),
            per: Per::Answer,
            bound: Bound::OfChat(held_to(protocol, way)[shape as usize], chat),
        }
    });
    figures.extend(others);
    figures
}

impl Ask {
    /// All requests that figures are computed from.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let own = [
            Self::Unknown,
            Self::Health,
            Self::Chat,
            Self::Stream,
            Self::LongChat,
            Self::Verification,
            Self::Detailed,
        ];
        own.into_iter().chain(Other::all().map(Self::Other))
    }

    /// How often it is sent while it is counted: often enough that what the server does twice a second in any case is a
    /// small part.
    pub(crate) const fn times(self) -> u32 {
        match self {
            Self::Unknown | Self::Health | Self::Chat => 2000,
            Self::Stream | Self::Other(Other { shape: Shape::Stream, .. }) => 100,
            Self::Other(Other { shape: Shape::Whole, .. }) => 500,
            // The difference of these two has to be accurate.
            Self::LongChat
            | Self::Verification
            | Self::Detailed
            | Self::Other(Other { shape: Shape::Long, .. }) => 200,
        }
    }

    /// The name of the file of its counts.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Unknown => "unauthorized".to_owned(),
            Self::Detailed => "verification-detailed".to_owned(),
            Self::LongChat => "chat-long".to_owned(),
            Self::Other(Other { protocol, way, shape }) => {
                format!("{protocol:?}-{way:?}-{shape:?}").to_lowercase()
            }
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// The request, and what a correct response is.
    pub(crate) fn of(self, site: &Site) -> (Vec<u8>, Expected) {
        let host = site.address;
        let chat = |key: &str, is_stream| requests::post(host, CHAT, key, &completion(MODEL, is_stream));
        let verify = || {
            let body = serde_json::json!({"fact": FACT}).to_string();
            requests::post(host, VERIFY, &site.verify_key, &body)
        };
        match self {
            Self::Unknown => (chat(&site.foreign_key, false), UNAUTHORIZED),
            Self::Health => (requests::get(host, HEALTH), HEALTHY),
            Self::Chat => (chat(&site.chat_key, false), WHOLE),
            Self::Stream => (chat(&site.chat_key, true), STREAM),
            Self::LongChat => {
                let body = longer_completion(MODEL, false, Shape::Long.times());
                (requests::post(host, CHAT, &site.chat_key, &body), WHOLE)
            }
            Self::Other(other) => other.request(host, &site.chat_key, MODEL, other.shape.times()),
            Self::Verification => (verify(), VERIFIED),
            Self::Detailed => (detailed(&verify()), VERIFIED),
        }
    }
}

/// The same request with the header that asks for progress by model.
fn detailed(request: &[u8]) -> Vec<u8> {
    let header = format!("{}: models\r\n", mk::api::verify::PROGRESS_HEADER);
    let line = request.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (first, rest) = request.split_at(line);
    [first, header.as_bytes(), rest].concat()
}
