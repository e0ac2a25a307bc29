//! The database on which tests of the store run if an environment variable names one; each store gets a schema of its
//! own.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Database, PostgresAddress};

const VARIABLE: &str = "MK_TEST_DATABASE_URL";

static MADE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static WAITS: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has waited for a database: for one answer, or for those to many statements sent together.
pub(in crate::storage) fn waits() -> u64 {
    WAITS.get()
}

pub(super) fn count_wait() {
    WAITS.set(WAITS.get() + 1);
}

/// An empty database, if the tests are to run on PostgreSQL.
pub(in crate::storage) fn database() -> Option<Database> {
    let url = std::env::var(VARIABLE).ok()?;
    let open = |url: &str| Database::open(&PostgresAddress::parse(url).expect(VARIABLE)).unwrap();
    let schema = format!("mk_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let connected = Database::connect(&PostgresAddress::parse(&url).expect(VARIABLE)).unwrap();
    connected.read(|session| session.execute_batch(&format!("CREATE SCHEMA {schema}"))).unwrap();
    let sign = if url.contains('?') { '&' } else { '?' };
    Some(open(&format!("{url}{sign}options=-csearch_path%3D{schema}")))
}
