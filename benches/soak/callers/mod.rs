//! The load: callers that send valid and invalid requests for everything the server does, and some of which leave
//! early.

mod check;
mod churn;
mod exchange;
mod raw;
mod requests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Client, Method};

use crate::book::{Book, Seen};
use crate::dice::Dice;
use crate::site::Keys;
use requests::Wanted;

/// The longest pause between two requests of a caller.
const PAUSE: Duration = Duration::from_millis(400);
/// The longest that callers stay that leave early.
const LEAVES: Duration = Duration::from_millis(150);
/// How many of a thousand callers leave early.
const LEAVING: u64 = 100;
/// Longer than any response takes.
const TIMEOUT: Duration = Duration::from_mins(3);

/// What a caller does next.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Sends one request.
    Ask(Wanted),
    /// Creates a key, uses it, revokes it.
    Churn,
    /// Sends a part of a request.
    Truncate,
    /// Sends malformed HTTP.
    Garbage,
}

/// Each action with its weight.
const ACTIONS: [(u64, Action); 15] = [
    (180, Action::Ask(Wanted::Verify)),
    (90, Action::Ask(Wanted::VerifyDocument)),
    (250, Action::Ask(Wanted::Chat)),
    (250, Action::Ask(Wanted::ChatStream)),
    (40, Action::Ask(Wanted::BadVerify)),
    (40, Action::Ask(Wanted::BadChat)),
    (30, Action::Ask(Wanted::WrongKey)),
    (20, Action::Ask(Wanted::NoKey)),
    (30, Action::Ask(Wanted::Scarce)),
    (20, Action::Ask(Wanted::Page)),
    (20, Action::Ask(Wanted::Console)),
    (10, Action::Ask(Wanted::Nowhere)),
    (20, Action::Churn),
    (20, Action::Truncate),
    (10, Action::Garbage),
];

/// The server that callers send requests to, and the record of what they see.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) base: String,
    pub(crate) keys: Keys,
    pub(crate) book: Arc<Book>,
}

impl Place {
    /// A target with its own connections.
    ///
    /// # Errors
    /// If the client cannot be created.
    pub(crate) fn new(base: &str, keys: &Keys, book: &Arc<Book>) -> anyhow::Result<Self> {
        let client = Client::builder().no_proxy().build()?;
        Ok(Self { client, base: base.to_owned(), keys: keys.clone(), book: book.clone() })
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }
}

/// Runs one caller until `end`.
pub(crate) async fn run_caller(place: Place, mut dice: Dice, end: Instant) {
    while Instant::now() < end {
        tokio::time::sleep(dice.span(PAUSE)).await;
        match dice.pick(&ACTIONS) {
            Action::Churn => churn::churn(&place, &mut dice).await,
            Action::Truncate => raw::truncate(&place, &mut dice).await,
            Action::Garbage => raw::garbage(&place, &mut dice).await,
            Action::Ask(wanted) => {
                let patience = (wanted.may_leave() && dice.chance(LEAVING)).then(|| dice.span(LEAVES));
                ask(&place, wanted, patience, &mut dice).await;
            }
        }
    }
}

/// Requests one stream, of either kind, from a server that is about to shut down. A stream that has started has to end
/// properly.
pub(crate) async fn stream_through_shutdown(place: Place, mut dice: Dice) {
    let wanted = if dice.chance(500) { Wanted::ChatStream } else { Wanted::Verify };
    let token = place.book.open();
    let request = requests::make(&place, wanted, token, &mut dice);
    match exchange::exchange(&place, token, request, TIMEOUT).await {
        // The request came too late.
        Some(answer) if answer.status == 503 => {}
        Some(answer) => check::check(&place.book, token, wanted, &answer),
        None if place.book.seen(token) == Seen::Nothing => {}
        None => place.book.report_wrong(token, "a stream was not allowed to end", || format!("{wanted:?}")),
    }
}

/// Reads the metrics; returns the request's token, and the page if it could be read.
pub(crate) async fn scrape(place: &Place) -> (u64, Option<String>) {
    let token = place.book.open();
    let request = place.request(Method::GET, "/metrics");
    let answer = exchange::exchange(place, token, request, TIMEOUT).await;
    (token, answer.filter(|answer| answer.status == 200).map(|answer| answer.body))
}

async fn ask(place: &Place, wanted: Wanted, patience: Option<Duration>, dice: &mut Dice) {
    let token = place.book.open();
    let request = requests::make(place, wanted, token, dice);
    let answer = exchange::exchange(place, token, request, patience.unwrap_or(TIMEOUT)).await;
    match answer {
        Some(answer) => check::check(&place.book, token, wanted, &answer),
        None if patience.is_some() => {}
        None => place.book.report_wrong(token, "there was no whole answer", || format!("{wanted:?}")),
    }
}
