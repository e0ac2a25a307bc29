//! The extraction of a statement through the cache: what is known of it is told to the panel as the extraction tells
//! what it finds, so that the panel and the frames of a stream do not differ.

use std::pin::pin;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::Cache;
use crate::verify::claim::Claim;
use crate::verify::error::Error;
use crate::verify::extraction::Statement;
use crate::verify::extraction::{Change, Found};

/// What the extraction would tell if nothing were known.
pub(in crate::verify) struct Extraction<F> {
    pub(in crate::verify) end: F,
    pub(in crate::verify) changes: UnboundedReceiver<Change>,
}

/// Extracts the claims of a statement, unless they are known, and tells `panel` of each claim with the votes on it that
/// are known.
///
/// # Errors
/// Those of the extraction.
pub(in crate::verify) async fn extract(
    cache: &Cache<'_>,
    statement: &Statement<'_>,
    extraction: Extraction<impl Future<Output = Result<Found, Error>>>,
    panel: UnboundedSender<Change>,
) -> Result<Found, Error> {
    if let Some(found) = cache.found(statement).await {
        let known: Vec<&Claim> = found.claims.iter().collect();
        tell(cache, &known, &panel).await;
        return Ok(found);
    }
    let Extraction { end, mut changes } = extraction;
    let mut end = pin!(end);
    let found = loop {
        tokio::select! {
            biased;
            Some(change) = changes.recv() => forward(cache, change, &mut changes, &panel).await,
            found = &mut end => break found?,
        }
    };
    while let Ok(change) = changes.try_recv() {
        forward(cache, change, &mut changes, &panel).await;
    }
    Ok(found)
}

/// Passes on a change, and those that are there already: claims that are new together are looked up together.
async fn forward(
    cache: &Cache<'_>,
    first: Change,
    changes: &mut UnboundedReceiver<Change>,
    panel: &UnboundedSender<Change>,
) {
    let mut next = Some(first);
    let mut new: Vec<Box<Claim>> = Vec::new();
    while let Some(change) = next {
        match change {
            Change::Ask(claim) => new.push(claim),
            // Of one of these, perhaps.
            Change::Withdraw(id) => {
                let known = new.iter().position(|claim| claim.id == id);
                match known {
                    Some(at) => drop(new.remove(at)),
                    None => send(panel, Change::Withdraw(id)),
                }
            }
            known @ Change::Known(..) => send(panel, known),
        }
        next = changes.try_recv().ok();
    }
    let claims: Vec<&Claim> = new.iter().map(|claim| &**claim).collect();
    tell(cache, &claims, panel).await;
}

/// Tells the panel of claims, each with the votes on it that are known.
async fn tell(cache: &Cache<'_>, claims: &[&Claim], panel: &UnboundedSender<Change>) {
    if claims.is_empty() {
        return;
    }
    for (claim, votes) in claims.iter().zip(cache.votes(claims).await) {
        let claim = Box::new((*claim).clone());
        send(
            panel,
            match votes {
                Some(votes) => Change::Known(claim, votes),
                None => Change::Ask(claim),
            },
        );
    }
}

fn send(panel: &UnboundedSender<Change>, change: Change) {
    // Nobody listens any more once the verification has ended.
    let _ = panel.send(change);
}
