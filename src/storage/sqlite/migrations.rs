//! The schema, as an append-only list of migrations.
//!
//! A database's `user_version` is the number of migrations applied to it. A released migration is never altered: a
//! later one corrects its mistakes. Times are milliseconds since the Unix epoch, money is whole nano-dollars.

use rusqlite::{Connection, TransactionBehavior};

use crate::storage::Error;

/// Migrations of `mk.db`.
pub(super) const MAIN: &[&str] = &[
    "
    CREATE TABLE apps (
        id              TEXT    NOT NULL PRIMARY KEY,
        name            TEXT    NOT NULL,
        budget_nano_usd INTEGER,
        created_at      INTEGER NOT NULL,
        -- Deleted apps are kept: their usage refers to them.
        deleted_at      INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX apps_by_name ON apps (name) WHERE deleted_at IS NULL;

    CREATE TABLE keys (
        id              TEXT    NOT NULL PRIMARY KEY,
        hash            BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
        app_id          TEXT    NOT NULL REFERENCES apps (id),
        service         TEXT    NOT NULL,
        name            TEXT,
        last4           TEXT    NOT NULL,
        created_at      INTEGER NOT NULL,
        expires_at      INTEGER,
        revoked_at      INTEGER,
        per_minute      INTEGER,
        per_day         INTEGER,
        -- JSON arrays of strings.
        models          TEXT    NOT NULL,
        addresses       TEXT    NOT NULL,
        budget_nano_usd INTEGER
    ) STRICT;
    CREATE INDEX keys_by_app ON keys (app_id);
",
    "
    -- Ids sort by time.
    CREATE TABLE audit (
        id          TEXT    NOT NULL PRIMARY KEY,
        at          INTEGER NOT NULL,
        actor       TEXT,
        actor_name  TEXT,
        channel     TEXT    NOT NULL,
        action      TEXT    NOT NULL,
        object      TEXT    NOT NULL,
        object_name TEXT,
        -- A JSON object.
        details     TEXT    NOT NULL,
        address     TEXT,
        request_id  TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX audit_by_object ON audit (object);
    CREATE INDEX audit_by_actor ON audit (actor);
    CREATE INDEX audit_by_action ON audit (action);

    -- For pages of an app's keys.
    DROP INDEX keys_by_app;
    CREATE INDEX keys_by_app ON keys (app_id, id);

    -- Sessions of the dashboard: the value of the cookie is stored as a hash, like keys.
    CREATE TABLE sessions (
        hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
        key_id     TEXT    NOT NULL REFERENCES keys (id),
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        -- At most a minute behind.
        seen_at    INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_key ON sessions (key_id);
",
    "
    -- Set by rotation: a replaced key is valid only for its grace period, and cannot be rotated again.
    ALTER TABLE keys ADD COLUMN replaced_by TEXT REFERENCES keys (id);
",
    "
    -- Whether there is one is checked at each start, and few of a million keys are of this kind.
    CREATE INDEX keys_of_console ON keys (expires_at) WHERE service = 'console' AND revoked_at IS NULL;
",
    "
    -- What this server signs with. The one for receipts is made when the first receipt is asked for.
    CREATE TABLE signing_keys (
        purpose    TEXT    NOT NULL PRIMARY KEY,
        seed       BLOB    NOT NULL CHECK (length(seed) = 32),
        created_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    "
    -- For how long answers are kept, for requests that do not say.
    ALTER TABLE keys ADD COLUMN cache_seconds INTEGER;
",
    "
    -- What is done with the verdicts on answers.
    ALTER TABLE keys ADD COLUMN verify TEXT;
",
    "
    -- Own limits for each end user, as people write them.
    ALTER TABLE keys ADD COLUMN end_users TEXT;
",
];

/// Migrations of `ledger.db`.
pub(in crate::storage) const LEDGER: &[&str] = &[
    "
    CREATE TABLE attempts (
        id                INTEGER PRIMARY KEY,
        at                INTEGER NOT NULL,
        request_id        TEXT    NOT NULL,
        app_id            TEXT    NOT NULL,
        key_id            TEXT    NOT NULL,
        service           TEXT    NOT NULL,
        model             TEXT    NOT NULL,
        outcome           TEXT    NOT NULL,
        prompt_tokens     INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        cost_nano_usd     INTEGER,
        latency_ms        INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX attempts_by_time ON attempts (at);
    CREATE INDEX attempts_by_request ON attempts (request_id);

    CREATE TABLE day_counts (
        key_id TEXT    NOT NULL,
        day    INTEGER NOT NULL,
        used   INTEGER NOT NULL,
        PRIMARY KEY (key_id, day)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX day_counts_by_day ON day_counts (day);

    CREATE TABLE key_last_used (
        key_id TEXT    NOT NULL PRIMARY KEY,
        at     INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    "
    -- The spending that budgets limit: known costs, by key or app (ids differ in their prefixes) and UTC month
    -- (202611).
    CREATE TABLE spend (
        subject  TEXT    NOT NULL,
        month    INTEGER NOT NULL,
        nano_usd INTEGER NOT NULL,
        PRIMARY KEY (subject, month)
    ) STRICT, WITHOUT ROWID;
    -- No call costs a million dollars, and no sum of calls below that leaves the range.
    INSERT INTO spend (subject, month, nano_usd)
    SELECT subject, CAST(strftime('%Y%m', at / 1000, 'unixepoch') AS INTEGER),
           sum(min(cost_nano_usd, 1000000000000000))
    FROM (SELECT key_id AS subject, at, cost_nano_usd FROM attempts
          UNION ALL SELECT app_id, at, cost_nano_usd FROM attempts)
    WHERE subject <> '' AND cost_nano_usd > 0
    GROUP BY 1, 2;
",
    "
    -- Whether it was the first attempt of its request, and the first at its model, so that requests can be summed.
    ALTER TABLE attempts ADD COLUMN is_first INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE attempts ADD COLUMN is_first_of_model INTEGER NOT NULL DEFAULT 0;
    -- For older rows this follows from the requests' ids, which callers may choose: equal ids of one key count as one
    -- request. One pass, two sorts: 10 million rows take about a minute and 30 MB of memory.
    UPDATE attempts SET
        is_first = id IN (SELECT min(id) FROM attempts GROUP BY request_id, key_id),
        is_first_of_model = id IN (SELECT min(id) FROM attempts GROUP BY request_id, key_id, model);

    -- The sums for reports: attempts by UTC day (since the epoch), caller and purpose.
    CREATE TABLE usage_days (
        day               INTEGER NOT NULL,
        app_id            TEXT    NOT NULL,
        key_id            TEXT    NOT NULL,
        service           TEXT    NOT NULL,
        model             TEXT    NOT NULL,
        requests          INTEGER NOT NULL,
        -- A request counts once for each model that it called.
        model_requests    INTEGER NOT NULL,
        attempts          INTEGER NOT NULL,
        errors            INTEGER NOT NULL,
        prompt_tokens     INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        -- The cost of attempts whose cost is known, and how many those are.
        cost_nano_usd     INTEGER NOT NULL,
        priced_attempts   INTEGER NOT NULL,
        -- Attempts that used tokens at an unknown price.
        unpriced_attempts INTEGER NOT NULL,
        PRIMARY KEY (day, app_id, key_id, service, model)
    ) STRICT, WITHOUT ROWID;
    -- No sum exceeds half the range of a column.
    INSERT INTO usage_days
    SELECT at / 86400000, app_id, key_id, service, model, is_first, is_first_of_model, 1,
           outcome NOT IN ('ok', 'cancelled'),
           min(prompt_tokens, 4611686018427387903), min(completion_tokens, 4611686018427387903),
           min(coalesce(cost_nano_usd, 0), 4611686018427387903), cost_nano_usd IS NOT NULL,
           cost_nano_usd IS NULL AND (prompt_tokens > 0 OR completion_tokens > 0)
    FROM attempts WHERE true
    ON CONFLICT DO UPDATE SET
        requests = requests + excluded.requests,
        model_requests = model_requests + excluded.model_requests,
        attempts = attempts + excluded.attempts,
        errors = errors + excluded.errors,
        prompt_tokens = min(prompt_tokens + excluded.prompt_tokens, 4611686018427387903),
        completion_tokens = min(completion_tokens + excluded.completion_tokens, 4611686018427387903),
        cost_nano_usd = min(cost_nano_usd + excluded.cost_nano_usd, 4611686018427387903),
        priced_attempts = priced_attempts + excluded.priced_attempts,
        unpriced_attempts = unpriced_attempts + excluded.unpriced_attempts;
",
    "
    -- No query selects by request, and maintaining the index was a third of the work of an attempt.
    DROP INDEX attempts_by_request;
",
    "
    -- The journal of calls under way, each with what it has used so far: what is left of it if its server dies.
    CREATE TABLE calls_under_way (
        -- A random id of the server's, and the numbers that it gives to requests and calls.
        server            TEXT    NOT NULL,
        request           INTEGER NOT NULL,
        number            INTEGER NOT NULL,
        -- When the server was last seen alive, by the clock that all servers on this database share.
        seen_at           INTEGER NOT NULL,
        -- As in attempts, had the call ended then.
        at                INTEGER NOT NULL,
        request_id        TEXT    NOT NULL,
        app_id            TEXT    NOT NULL,
        key_id            TEXT    NOT NULL,
        service           TEXT    NOT NULL,
        model             TEXT    NOT NULL,
        prompt_tokens     INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        cost_nano_usd     INTEGER,
        latency_ms        INTEGER NOT NULL,
        is_first          INTEGER NOT NULL,
        is_first_of_model INTEGER NOT NULL,
        -- The row in attempts, once another server took this one for dead and booked the call.
        attempt_id        INTEGER,
        PRIMARY KEY (server, request, number)
    ) STRICT, WITHOUT ROWID;
",
    "
    -- Parts of the prompt that providers read from their caches, or wrote to them, each at its own price.
    ALTER TABLE attempts ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE attempts ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
    -- Whether tokens and cost are not what the provider has reported; not known of older rows.
    ALTER TABLE attempts ADD COLUMN is_estimated INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE calls_under_way ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE calls_under_way ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE usage_days ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE usage_days ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE usage_days ADD COLUMN estimated_attempts INTEGER NOT NULL DEFAULT 0;
",
    "
    -- The verdict cache: what verifications found, for the same texts and claims again.
    CREATE TABLE verdicts (
        app_id  TEXT    NOT NULL,
        -- SHA-256 of all that the content depends on.
        key     BLOB    NOT NULL CHECK (length(key) = 32),
        domain  TEXT    NOT NULL,
        at      INTEGER NOT NULL,
        -- The length of the content, for the index.
        bytes   INTEGER NOT NULL,
        content BLOB    NOT NULL,
        PRIMARY KEY (app_id, key)
    ) STRICT;
    CREATE INDEX verdicts_by_age ON verdicts (domain, at, bytes);
",
    "
    -- The sums of requests that were for somebody (`user`) or marked (`tag`), like those of usage_days. A request counts
    -- for each of its tags.
    CREATE TABLE usage_labels (
        day                INTEGER NOT NULL,
        app_id             TEXT    NOT NULL,
        kind               TEXT    NOT NULL,
        label              TEXT    NOT NULL,
        key_id             TEXT    NOT NULL,
        service            TEXT    NOT NULL,
        model              TEXT    NOT NULL,
        requests           INTEGER NOT NULL,
        model_requests     INTEGER NOT NULL,
        attempts           INTEGER NOT NULL,
        errors             INTEGER NOT NULL,
        prompt_tokens      INTEGER NOT NULL,
        completion_tokens  INTEGER NOT NULL,
        cost_nano_usd      INTEGER NOT NULL,
        priced_attempts    INTEGER NOT NULL,
        unpriced_attempts  INTEGER NOT NULL,
        cached_tokens      INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        estimated_attempts INTEGER NOT NULL,
        PRIMARY KEY (day, app_id, kind, label, key_id, service, model)
    ) STRICT, WITHOUT ROWID;
    -- What a call under way is summed by; a JSON object, or empty.
    ALTER TABLE calls_under_way ADD COLUMN labels TEXT NOT NULL DEFAULT '';
",
];

/// Applies the pending migrations, each in one transaction. Others may be doing the same, so the count is read again
/// under the lock.
pub(in crate::storage) fn migrate(connection: &mut Connection, migrations: &[&str]) -> Result<(), Error> {
    let applied = applied_count(connection)?;
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if applied > known {
        return Err(Error::TooNew { found: applied, known });
    }
    for (number, migration) in (1_i64..).zip(migrations) {
        if number > applied {
            apply(connection, number, migration)?;
        }
    }
    Ok(())
}

fn apply(connection: &mut Connection, number: i64, migration: &str) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let applied_by_another = applied_count(&transaction)? >= number;
    if applied_by_another {
        return Ok(());
    }
    transaction.execute_batch(migration)?;
    transaction.pragma_update(None, "user_version", number)?;
    transaction.commit()?;
    Ok(())
}

/// The number of migrations applied to a database.
pub(super) fn applied_count(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATIONS: &[&str] = &["CREATE TABLE a (x INTEGER) STRICT", "ALTER TABLE a ADD COLUMN y TEXT"];

    #[test]
    fn migrations_continue_where_an_older_version_left_off() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &MIGRATIONS[..1]).unwrap();
        connection.execute("INSERT INTO a (x) VALUES (7)", []).unwrap();

        migrate(&mut connection, MIGRATIONS).unwrap();

        let kept: (i64, Option<String>) =
            connection.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(kept, (7, None));
        assert_eq!(applied_count(&connection).unwrap(), 2);
        migrate(&mut connection, MIGRATIONS).unwrap();
    }

    #[test]
    fn a_failing_migration_is_rolled_back() {
        let mut connection = Connection::open_in_memory().unwrap();
        let broken =
            ["CREATE TABLE a (x INTEGER) STRICT", "CREATE TABLE b (x INTEGER) STRICT; SELECT nonsense"];
        assert!(migrate(&mut connection, &broken).is_err());
        assert_eq!(applied_count(&connection).unwrap(), 1);
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1);
    }

    #[test]
    fn a_database_of_a_later_version_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        let refused = migrate(&mut connection, &MIGRATIONS[..1]);
        assert!(matches!(refused, Err(Error::TooNew { found: 2, known: 1 })));
    }
}
