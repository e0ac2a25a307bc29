//! What is counted, and how much each may take.
//!
//! Budgets are what was counted when they were last set, with the profile `counted`, on x86-64.

use crate::caller::Expected;
use crate::requests::{self, CHAT, HEALTH, HEALTHY, STREAM, UNAUTHORIZED, WHOLE, completion};
use crate::site::{MODEL, Site};

const VERIFY: &str = "/verify/v1/stream";
const VERIFIED: Expected = Expected { status: 200, text: "event: completed\n", events: 0 };
/// Ten claims, all of them in the sandbox's tables.
const FACT: &str = "The Eiffel Tower is in Paris. The capital of Australia is Canberra. Gold has the chemical symbol \
    Au. Two plus two is four. Three plus four is seven. Five plus six is eleven. Two plus nine is eleven. Four plus \
    four is eight. The US Constitution was signed in 1787. The Nile is the longest river in the world.";

/// One thing that is asked over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A chat completion, with a well-formed key that is not known: the gate alone.
    Unknown,
    /// The health page: what every answer takes.
    Health,
    /// A whole chat completion.
    Chat,
    /// A streamed one, of a hundred pieces.
    Stream,
    /// A verification of ten claims, of which most is the sandbox's work.
    Verification,
    /// A verification that also tells of each model that answers.
    Detailed,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Per {
    /// An answer.
    Answer,
    /// An event of an answer.
    Event,
    /// An event that an answer has more than those to this, which is otherwise the same.
    EventBeyond(Ask),
}

/// A figure and its budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Its name in the table.
    pub(crate) title: &'static str,
    /// What is asked.
    pub(crate) ask: Ask,
    /// Of what in the answers it is.
    pub(crate) per: Per,
    /// Instructions.
    pub(crate) budget: u64,
}

/// All that is counted.
pub(crate) const FIGURES: [Figure; 5] = [
    Figure { title: "401 to an unknown key", ask: Ask::Unknown, per: Per::Answer, budget: 43_100 },
    Figure { title: "health page", ask: Ask::Health, per: Per::Answer, budget: 29_500 },
    Figure { title: "chat, whole, about 1 KB each way", ask: Ask::Chat, per: Per::Answer, budget: 100_000 },
    Figure { title: "chat, streamed, an event", ask: Ask::Stream, per: Per::Event, budget: 13_300 },
    Figure {
        title: "verification, a frame more",
        ask: Ask::Detailed,
        per: Per::EventBeyond(Ask::Verification),
        budget: 8_100,
    },
];

impl Ask {
    /// All that figures are made from.
    pub(crate) const ALL: [Self; 6] =
        [Self::Unknown, Self::Health, Self::Chat, Self::Stream, Self::Verification, Self::Detailed];

    /// How often it is asked while it is counted: enough for what the server does twice a second, whatever is asked, to
    /// be a small part.
    pub(crate) const fn times(self) -> u32 {
        match self {
            Self::Unknown | Self::Health | Self::Chat => 2000,
            Self::Stream => 100,
            // A difference is made of these two, which needs them more exactly.
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

    /// The request, and what a right answer is.
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
