//! What the server signs with: secret seeds, one for each purpose.
//!
//! They are in the database, and not in files beside it, so that all servers that share a PostgreSQL database sign with
//! the same key, and backups hold it: what was signed before a restore is still recognised after it.

use rusqlite::params;

use crate::clock::Time;
use crate::secret::{ExposeSecret, SecretBox};
use crate::storage::db::Db;
use crate::storage::{Error, Store};

/// The purpose of the key for receipts.
const RECEIPTS: &str = "receipts";

/// The secret half of an Ed25519 key.
pub type Seed = SecretBox<[u8; 32]>;

impl Store {
    /// The seed of the key for receipts, if one was made.
    pub fn receipt_seed(&self) -> Result<Option<Seed>, Error> {
        self.main().read(seed)
    }

    /// The seed of the key for receipts; `fresh` becomes it if there is none yet. All processes get the same one,
    /// whichever is first.
    pub fn receipt_seed_or(&self, fresh: &Seed, now: Time) -> Result<Seed, Error> {
        self.main().write(|db| {
            if let Some(seed) = seed(db)? {
                return Ok(seed);
            }
            db.execute(
                "INSERT INTO signing_keys (purpose, seed, created_at) VALUES (?1, ?2, ?3)",
                params![RECEIPTS, fresh.expose_secret(), now.unix_ms()],
            )?;
            Ok(Seed::new(Box::new(*fresh.expose_secret())))
        })
    }
}

fn seed(db: &Db<'_>) -> Result<Option<Seed>, Error> {
    db.query_row("SELECT seed FROM signing_keys WHERE purpose = ?1", params![RECEIPTS], |row| {
        Ok(Seed::new(Box::new(row.get(0)?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seed_stays() {
        let now = Time::from_unix_ms(1_800_000_000_000);
        let store = Store::in_memory(now).unwrap();
        assert!(store.receipt_seed().unwrap().is_none());
        let seed = |byte| Seed::new(Box::new([byte; 32]));
        assert_eq!(store.receipt_seed_or(&seed(1), now).unwrap().expose_secret(), &[1; 32]);
        assert_eq!(store.receipt_seed_or(&seed(2), now).unwrap().expose_secret(), &[1; 32]);
        assert_eq!(store.clone().receipt_seed().unwrap().unwrap().expose_secret(), &[1; 32]);
        assert!(!format!("{:?}", store.receipt_seed().unwrap()).contains('1'));
    }
}
