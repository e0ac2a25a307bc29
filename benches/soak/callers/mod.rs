//! The load: callers who ask for all that the server does, right and wrong, and of whom some leave too early.

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

/// Between two requests of a caller, at most.
const PAUSE: Duration = Duration::from_millis(400);
/// Within which those leave who leave.
const LEAVES: Duration = Duration::from_millis(150);
/// Of a thousand, so many leave.
const LEAVING: u64 = 100;
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_mins(3);

/// What a caller does next.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Asks once.
    Ask(Wanted),
    /// Makes a key, uses it, revokes it.
    Churn,
    /// Sends a part of a request.
    Tear,
    /// Sends what is no HTTP.
    Babble,
}

/// Each deed with its weight.
const DEEDS: [(u64, Deed); 15] = [
    (180, Deed::Ask(Wanted::Verify)),
    (90, Deed::Ask(Wanted::VerifyDocument)),
    (250, Deed::Ask(Wanted::Chat)),
    (250, Deed::Ask(Wanted::ChatStream)),
    (40, Deed::Ask(Wanted::BadVerify)),
    (40, Deed::Ask(Wanted::BadChat)),
    (30, Deed::Ask(Wanted::WrongKey)),
    (20, Deed::Ask(Wanted::NoKey)),
    (30, Deed::Ask(Wanted::Scarce)),
    (20, Deed::Ask(Wanted::Page)),
    (20, Deed::Ask(Wanted::Console)),
    (10, Deed::Ask(Wanted::Nowhere)),
    (20, Deed::Churn),
    (20, Deed::Tear),
    (10, Deed::Babble),
];

/// Whom all callers ask, and where they write down what they saw.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) base: String,
    pub(crate) keys: Keys,
    pub(crate) book: Arc<Book>,
}

impl Place {
    /// At a server, with connections of its own.
    ///
    /// # Errors
    /// If there can be no client.
    pub(crate) fn new(base: &str, keys: &Keys, book: &Arc<Book>) -> anyhow::Result<Self> {
        let client = Client::builder().no_proxy().build()?;
        Ok(Self { client, base: base.to_owned(), keys: keys.clone(), book: book.clone() })
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }
}

/// One caller, until `end`.
pub(crate) async fn go_on(place: Place, mut dice: Dice, end: Instant) {
    while Instant::now() < end {
        tokio::time::sleep(dice.span(PAUSE)).await;
        match dice.pick(&DEEDS) {
            Deed::Churn => churn::churn(&place, &mut dice).await,
            Deed::Tear => raw::tear(&place, &mut dice).await,
            Deed::Babble => raw::babble(&place, &mut dice).await,
            Deed::Ask(wanted) => {
                let patience = (wanted.may_leave() && dice.chance(LEAVING)).then(|| dice.span(LEAVES));
                ask(&place, wanted, patience, &mut dice).await;
            }
        }
    }
}

/// A caller who asks for one stream, of either kind, of a server that is about to end. A stream that has begun has to
/// come to its end.
pub(crate) async fn say_goodbye(place: Place, mut dice: Dice) {
    let wanted = if dice.chance(500) { Wanted::ChatStream } else { Wanted::Verify };
    let token = place.book.open();
    let request = requests::make(&place, wanted, token, &mut dice);
    match exchange::exchange(&place, token, request, PATIENCE).await {
        // Who has come too late.
        Some(answer) if answer.status == 503 => {}
        Some(answer) => check::check(&place.book, token, wanted, &answer),
        None if place.book.seen(token) == Seen::Nothing => {}
        None => place.book.complain(token, "a stream was not let end", || format!("{wanted:?}")),
    }
}

/// Reads the page of metrics; its token, and the page unless that could not be read.
pub(crate) async fn scrape(place: &Place) -> (u64, Option<String>) {
    let token = place.book.open();
    let request = place.request(Method::GET, "/metrics");
    let answer = exchange::exchange(place, token, request, PATIENCE).await;
    (token, answer.filter(|answer| answer.status == 200).map(|answer| answer.body))
}

async fn ask(place: &Place, wanted: Wanted, patience: Option<Duration>, dice: &mut Dice) {
    let token = place.book.open();
    let request = requests::make(place, wanted, token, dice);
    let answer = exchange::exchange(place, token, request, patience.unwrap_or(PATIENCE)).await;
    match answer {
        Some(answer) => check::check(&place.book, token, wanted, &answer),
        None if patience.is_some() => {}
        None => place.book.complain(token, "there was no whole answer", || format!("{wanted:?}")),
    }
}
