//! What is counted, and the budget for each figure.
//!
//! Budgets are the counts when they were last set, with the profile `counted`, on x86-64.

use crate::caller::Expected;
use crate::requests::{self, CHAT, HEALTH, HEALTHY, STREAM, UNAUTHORIZED, WHOLE, completion};
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Its name in the table.
    pub(crate) title: &'static str,
    /// The request.
    pub(crate) ask: Ask,
    /// What it counts instructions per.
    pub(crate) per: Per,
    /// Instructions.
    pub(crate) budget: u64,
}

/// All figures.
pub(crate) const FIGURES: [Figure; 5] = [
    Figure { title: "401 to an unknown key", ask: Ask::Unknown, per: Per::Answer, budget: 41_500 },
    Figure { title: "health page", ask: Ask::Health, per: Per::Answer, budget: 27_500 },
    Figure { title: "chat, whole, about 1 KB each way", ask: Ask::Chat, per: Per::Answer, budget: 100_000 },
    Figure { title: "chat, streamed, an event", ask: Ask::Stream, per: Per::Event, budget: 13_200 },
    Figure {
        title: "verification, a frame more",
        ask: Ask::Detailed,
        per: Per::EventBeyond(Ask::Verification),
        budget: 10_100,
    },
];

impl Ask {
    /// All requests that figures are computed from.
    pub(crate) const ALL: [Self; 6] =
        [Self::Unknown, Self::Health, Self::Chat, Self::Stream, Self::Verification, Self::Detailed];

    /// How often it is sent while it is counted: often enough that what the server does twice a second in any case is a
    /// small part.
    pub(crate) const fn times(self) -> u32 {
        match self {
            Self::Unknown | Self::Health | Self::Chat => 2000,
            Self::Stream => 100,
            // The difference of these two has to be accurate.
            Self::Verification | Self::Detailed => 200,
        }
    }

    /// The name of the file of its counts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unauthorized",
            Self::Health => "health",
            Self::Chat => "chat",
            Self::Stream => "stream",
            Self::Verification => "verification",
            Self::Detailed => "verification-detailed",
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
