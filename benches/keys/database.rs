//! Databases with any number of keys, all of them valid.

use std::path::Path;

use anyhow::{Context, ensure};
use mk::api::Service;
use mk::secret::ExposeSecret;
use rusqlite::{Connection, params};

use crate::serve;

/// No waiting for the disk, and all pages in memory: a million keys take seconds.
const HURRY: &str = "PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;";
/// Copies the existing key, except for its id, hash and last characters.
const INSERT: &str = "
    INSERT INTO keys (id, hash, app_id, service, last4, created_at, models, addresses)
    SELECT ?1, ?2, app_id, service, ?3, created_at, models, addresses FROM keys WHERE rowid = 1";

/// Puts `count` keys into the database that `config` names and whose file is `file`; returns `used` of them, evenly
/// distributed and in random order.
pub(crate) fn fill(
    home: &Path,
    config: &Path,
    file: &Path,
    count: usize,
    used: usize,
) -> anyhow::Result<Vec<String>> {
    ensure!(used > 0 && count.is_multiple_of(used), "{used} of {count} keys are not spread evenly");
    let first = serve::create_key(home, config, &["--service", "inference"])?;
    let mut database = Connection::open(file)?;
    database.execute_batch(HURRY)?;
    let every = count / used;
    let mut given = vec![first];
    let transaction = database.transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        for number in 1..count {
            let minted = mk::keys::mint(Service::Inference).context("no randomness")?;
            let inserted = insert.execute(params![mk::id::new("key"), minted.hash, minted.last4])?;
            ensure!(inserted == 1, "the first key is not there");
            if number.is_multiple_of(every) {
                given.push(minted.key.expose_secret().to_owned());
            }
        }
    }
    transaction.commit()?;
    // Sorted by their random texts: in the order of their creation, each would be next to the previous one in the
    // database.
    given.sort_unstable();
    Ok(given)
}
