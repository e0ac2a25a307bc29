//! The extraction of a statement through the cache: what is known of it is told to the panel as the extraction tells
//! what it finds, so that the panel and the frames of a stream do not differ.

use std::pin::pin;
use std::sync::Arc;

use super::Cache;
use crate::verify::claim::Claim;
use crate::verify::error::Error;
use crate::verify::extraction::Statement;
use crate::verify::extraction::{Change, Changes, Found, Step};

/// What the extraction would tell if nothing were known.
pub(in crate::verify) struct Extraction<F> {
    pub(in crate::verify) end: F,
    pub(in crate::verify) changes: Changes,
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
    panel: &Changes,
) -> Result<Found, Error> {
    if let Some(found) = cache.found(statement).await {
        tell(cache, found.claims.iter().cloned().map(Arc::new).collect(), panel).await;
        return Ok(found);
    }
    let Extraction { end, changes } = extraction;
    let mut end = pin!(end);
    let found = loop {
        match changes.follow(end.as_mut()).await {
            Step::Changes(told) => forward(cache, told, panel).await,
            Step::End(found) => break found?,
        }
    };
    forward(cache, changes.take(), panel).await;
    Ok(found)
}

/// Passes on changes. Claims that are new are looked up together.
async fn forward(cache: &Cache<'_>, changes: Vec<Change>, panel: &Changes) {
    let mut new: Vec<Arc<Claim>> = Vec::new();
    for change in changes {
        match change {
            Change::Ask(claim) => new.push(claim),
            // Of one of these, perhaps.
            Change::Withdraw(id) => {
                let known = new.iter().position(|claim| claim.id == id);
                match known {
                    Some(at) => drop(new.remove(at)),
                    None => panel.tell(Change::Withdraw(id)),
                }
            }
            known @ Change::Known(..) => panel.tell(known),
        }
    }
    tell(cache, new, panel).await;
}

/// Tells the panel of claims, each with the votes on it that are known.
async fn tell(cache: &Cache<'_>, claims: Vec<Arc<Claim>>, panel: &Changes) {
    if claims.is_empty() {
        return;
    }
    let votes = cache.votes(&claims.iter().map(|claim| &**claim).collect::<Vec<_>>()).await;
    for (claim, votes) in claims.into_iter().zip(votes) {
        panel.tell(match votes {
            Some(votes) => Change::Known(claim, votes),
            None => Change::Ask(claim),
        });
    }
}
