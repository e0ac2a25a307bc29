//! One verification or extraction from request to result, with an observer.

use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::time::{self, MissedTickBehavior};

use crate::api::verify::Event;
use crate::cli::process::exit::Failure;
use crate::cli::target::remote;
use crate::cli::terminal::progress::TICK;
use crate::client::VerifyStream;

/// What an observer receives.
pub(crate) enum Update<'a> {
    /// An event.
    Event(&'a Event),
    /// A tick of the spinner.
    Tick,
}

/// Follows a stream of `server` for at most `limit`; returns the event that ended it, which is no error, and how long
/// it took. The observer may abort it with a failure.
pub(crate) async fn run(
    server: &str,
    limit: Duration,
    events: VerifyStream,
    observe: &mut (dyn FnMut(Update<'_>) -> Result<(), Failure> + '_),
) -> Result<(Event, Duration), Failure> {
    let begun = Instant::now();
    let running = follow(server, events, observe);
    let result = time::timeout(limit, running)
        .await
        .unwrap_or_else(|_| Err(remote::too_slow("result", limit, ", or give shorter texts")))?;
    Ok((result, begun.elapsed()))
}

async fn follow(
    server: &str,
    mut events: VerifyStream,
    observe: &mut (dyn FnMut(Update<'_>) -> Result<(), Failure> + '_),
) -> Result<Event, Failure> {
    let failed = |cause| remote::failure(server, cause);
    let mut ticks = time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut models, mut claims) = (Vec::new(), None);
    loop {
        let next = async {
            // Ticks continue during one and the same read; a new read would lose what was partially read.
            let mut next = pin!(events.next());
            loop {
                tokio::select! {
                    event = &mut next => return event.map_err(failed),
                    _ = ticks.tick() => observe(Update::Tick)?,
                }
            }
        };
        let Some(mut event) = next.await? else {
            return Err(failed(crate::client::Error::Incomplete));
        };
        match &mut event {
            Event::ClaimsExtracted(extracted) => claims = Some(extracted.claims.len()),
            Event::VerifyingClaims(begun) => models.clone_from(&begun.models),
            Event::ClaimVerified(verified) => {
                verified.result.iter_mut().for_each(|result| result.seat(&models));
            }
            Event::Completed(result) => {
                // A result that leaves out a claim must not pass for the whole.
                if claims.is_some_and(|claims| claims != result.results.len()) {
                    return Err(failed(crate::client::Error::Incomplete));
                }
                result.results.iter_mut().for_each(|result| result.seat(&models));
                result.models = std::mem::take(&mut models);
            }
            _ => {}
        }
        observe(Update::Event(&event))?;
        match event {
            Event::Error(error) => return Err(failed(crate::client::Error::Failed(Box::new(error)))),
            event if event.is_terminal() => return Ok(event),
            _ => {}
        }
    }
}
