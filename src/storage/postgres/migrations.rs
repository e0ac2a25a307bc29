//! The schema, as an append-only list of migrations, like SQLite's.
//!
//! Names and meanings are the same as there, so that one statement serves both. Text compares by bytes (`COLLATE "C"`),
//! whatever the database's locale: lists are ordered by id.

use std::time::Duration;

use super::session::first;
use super::{Database, Session};
use crate::storage::Error;

/// The migrations.
pub(super) const MIGRATIONS: &[&str] = &[
    r#"
    -- One row for each kind of write: a transaction that updates it makes later ones wait, on every server, and its
    -- number shows whether there was a write since.
    CREATE TABLE writes (
        lane   TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        number BIGINT NOT NULL
    );
    INSERT INTO writes (lane, number) VALUES ('main', 0), ('ledger', 0);

    CREATE TABLE apps (
        id              TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        name            TEXT   COLLATE "C" NOT NULL,
        budget_nano_usd BIGINT,
        created_at      BIGINT NOT NULL,
        -- Deleted apps are kept: their usage refers to them.
        deleted_at      BIGINT
    );
    CREATE UNIQUE INDEX apps_by_name ON apps (name) WHERE deleted_at IS NULL;

    CREATE TABLE keys (
        id              TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        hash            BYTEA  NOT NULL UNIQUE CHECK (length(hash) = 32),
        app_id          TEXT   COLLATE "C" NOT NULL REFERENCES apps (id),
        service         TEXT   COLLATE "C" NOT NULL,
        name            TEXT   COLLATE "C",
        last4           TEXT   COLLATE "C" NOT NULL,
        created_at      BIGINT NOT NULL,
        expires_at      BIGINT,
        revoked_at      BIGINT,
        per_minute      BIGINT,
        per_day         BIGINT,
        -- JSON arrays of strings.
        models          TEXT   NOT NULL,
        addresses       TEXT   NOT NULL,
        budget_nano_usd BIGINT,
        -- Set by rotation: a replaced key is valid only for its grace period, and cannot be rotated again.
        replaced_by     TEXT   COLLATE "C" REFERENCES keys (id)
    );
    CREATE INDEX keys_by_app ON keys (app_id, id);
    -- Whether there is one is checked at each start, and few of a million keys are of this kind.
    CREATE INDEX keys_of_console ON keys (expires_at) WHERE service = 'console' AND revoked_at IS NULL;

    -- Ids sort by time.
    CREATE TABLE audit (
        id          TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        at          BIGINT NOT NULL,
        actor       TEXT   COLLATE "C",
        actor_name  TEXT,
        channel     TEXT   NOT NULL,
        action      TEXT   COLLATE "C" NOT NULL,
        object      TEXT   COLLATE "C" NOT NULL,
        object_name TEXT,
        -- A JSON object.
        details     TEXT   NOT NULL,
        address     TEXT,
        request_id  TEXT
    );
    CREATE INDEX audit_by_object ON audit (object, id);
    CREATE INDEX audit_by_actor ON audit (actor, id);
    CREATE INDEX audit_by_action ON audit (action, id);

    -- Sessions of the dashboard: the value of the cookie is stored as a hash, like keys.
    CREATE TABLE sessions (
        hash       BYTEA  NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
        key_id     TEXT   COLLATE "C" NOT NULL REFERENCES keys (id),
        created_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        -- At most a minute behind.
        seen_at    BIGINT NOT NULL
    );
    CREATE INDEX sessions_by_key ON sessions (key_id);

    CREATE TABLE attempts (
        id                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at                BIGINT NOT NULL,
        request_id        TEXT   COLLATE "C" NOT NULL,
        app_id            TEXT   COLLATE "C" NOT NULL,
        key_id            TEXT   COLLATE "C" NOT NULL,
        service           TEXT   COLLATE "C" NOT NULL,
        model             TEXT   COLLATE "C" NOT NULL,
        outcome           TEXT   COLLATE "C" NOT NULL,
        prompt_tokens     BIGINT NOT NULL,
        completion_tokens BIGINT NOT NULL,
        cost_nano_usd     BIGINT,
        latency_ms        BIGINT NOT NULL,
        -- Whether it was the first attempt of its request, and the first at its model, so that requests can be summed.
        is_first          BIGINT NOT NULL,
        is_first_of_model BIGINT NOT NULL
    );
    CREATE INDEX attempts_by_time ON attempts (at);

    -- The last batch of attempts that a server has written: if a connection breaks, this tells whether it was
    -- committed.
    CREATE TABLE batches (
        writer TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        number BIGINT NOT NULL,
        -- By the database's clock: rows of servers that no longer exist are deleted after a week.
        at     TIMESTAMPTZ NOT NULL
    );

    CREATE TABLE day_counts (
        key_id TEXT   COLLATE "C" NOT NULL,
        day    BIGINT NOT NULL,
        used   BIGINT NOT NULL,
        PRIMARY KEY (key_id, day)
    );
    CREATE INDEX day_counts_by_day ON day_counts (day);

    CREATE TABLE key_last_used (
        key_id TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        at     BIGINT NOT NULL
    );

    -- The spending that budgets limit: known costs, by key or app (ids differ in their prefixes) and UTC month
    -- (202611).
    CREATE TABLE spend (
        subject  TEXT   COLLATE "C" NOT NULL,
        month    BIGINT NOT NULL,
        nano_usd BIGINT NOT NULL,
        PRIMARY KEY (subject, month)
    );

    -- The sums for reports: attempts by UTC day (since the epoch), caller and purpose.
    CREATE TABLE usage_days (
        day               BIGINT NOT NULL,
        app_id            TEXT   COLLATE "C" NOT NULL,
        key_id            TEXT   COLLATE "C" NOT NULL,
        service           TEXT   COLLATE "C" NOT NULL,
        model             TEXT   COLLATE "C" NOT NULL,
        requests          BIGINT NOT NULL,
        -- A request counts once for each model that it called.
        model_requests    BIGINT NOT NULL,
        attempts          BIGINT NOT NULL,
        errors            BIGINT NOT NULL,
        prompt_tokens     BIGINT NOT NULL,
        completion_tokens BIGINT NOT NULL,
        -- The cost of attempts whose cost is known, and how many those are.
        cost_nano_usd     BIGINT NOT NULL,
        priced_attempts   BIGINT NOT NULL,
        -- Attempts that used tokens at an unknown price.
        unpriced_attempts BIGINT NOT NULL,
        PRIMARY KEY (day, app_id, key_id, service, model)
    );
"#,
    r#"
    -- The journal of calls under way, each with what it has used so far: what is left of it if its server dies.
    CREATE TABLE calls_under_way (
        -- A random id of the server's, and the numbers that it gives to requests and calls.
        server            TEXT   COLLATE "C" NOT NULL,
        request           BIGINT NOT NULL,
        number            BIGINT NOT NULL,
        -- When the server was last seen alive, by the clock that all servers on this database share.
        seen_at           BIGINT NOT NULL,
        -- As in attempts, had the call ended then.
        at                BIGINT NOT NULL,
        request_id        TEXT   COLLATE "C" NOT NULL,
        app_id            TEXT   COLLATE "C" NOT NULL,
        key_id            TEXT   COLLATE "C" NOT NULL,
        service           TEXT   COLLATE "C" NOT NULL,
        model             TEXT   COLLATE "C" NOT NULL,
        prompt_tokens     BIGINT NOT NULL,
        completion_tokens BIGINT NOT NULL,
        cost_nano_usd     BIGINT,
        latency_ms        BIGINT NOT NULL,
        is_first          BIGINT NOT NULL,
        is_first_of_model BIGINT NOT NULL,
        -- The row in attempts, once another server took this one for dead and booked the call.
        attempt_id        BIGINT,
        PRIMARY KEY (server, request, number)
    );
"#,
    r"
    -- Parts of the prompt that providers read from their caches, or wrote to them, each at its own price.
    ALTER TABLE attempts ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE attempts ADD COLUMN cache_write_tokens BIGINT NOT NULL DEFAULT 0;
    -- Whether tokens and cost are not what the provider has reported; not known of older rows.
    ALTER TABLE attempts ADD COLUMN is_estimated BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE calls_under_way ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE calls_under_way ADD COLUMN cache_write_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE usage_days ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE usage_days ADD COLUMN cache_write_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE usage_days ADD COLUMN estimated_attempts BIGINT NOT NULL DEFAULT 0;
",
    r#"
    -- The verdict cache: what verifications found, for the same texts and claims again.
    CREATE TABLE verdicts (
        app_id  TEXT   COLLATE "C" NOT NULL,
        -- SHA-256 of all that the content depends on.
        key     BYTEA  NOT NULL CHECK (length(key) = 32),
        domain  TEXT   COLLATE "C" NOT NULL,
        at      BIGINT NOT NULL,
        -- The length of the content, for the index.
        bytes   BIGINT NOT NULL,
        content BYTEA  NOT NULL,
        PRIMARY KEY (app_id, key)
    );
    CREATE INDEX verdicts_by_age ON verdicts (domain, at, bytes);
"#,
    r#"
    -- What all servers on this database sign with. The one for receipts is made when the first receipt is asked for.
    CREATE TABLE signing_keys (
        purpose    TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
        seed       BYTEA  NOT NULL CHECK (length(seed) = 32),
        created_at BIGINT NOT NULL
    );
"#,
    r"
    -- For how long answers are kept, for requests that do not say.
    ALTER TABLE keys ADD COLUMN cache_seconds BIGINT;
",
    r#"
    -- What is done with the verdicts on answers.
    ALTER TABLE keys ADD COLUMN verify TEXT COLLATE "C";
"#,
    r#"
    -- The sums of requests that were for somebody (`user`) or marked (`tag`), like those of usage_days. A request counts
    -- for each of its tags.
    CREATE TABLE usage_labels (
        day                BIGINT NOT NULL,
        app_id             TEXT   COLLATE "C" NOT NULL,
        kind               TEXT   COLLATE "C" NOT NULL,
        label              TEXT   COLLATE "C" NOT NULL,
        key_id             TEXT   COLLATE "C" NOT NULL,
        service            TEXT   COLLATE "C" NOT NULL,
        model              TEXT   COLLATE "C" NOT NULL,
        requests           BIGINT NOT NULL,
        model_requests     BIGINT NOT NULL,
        attempts           BIGINT NOT NULL,
        errors             BIGINT NOT NULL,
        prompt_tokens      BIGINT NOT NULL,
        completion_tokens  BIGINT NOT NULL,
        cost_nano_usd      BIGINT NOT NULL,
        priced_attempts    BIGINT NOT NULL,
        unpriced_attempts  BIGINT NOT NULL,
        cached_tokens      BIGINT NOT NULL,
        cache_write_tokens BIGINT NOT NULL,
        estimated_attempts BIGINT NOT NULL,
        PRIMARY KEY (day, app_id, kind, label, key_id, service, model)
    );
    -- What a call under way is summed by; a JSON object, or empty.
    ALTER TABLE calls_under_way ADD COLUMN labels TEXT NOT NULL DEFAULT '';
"#,
    r#"
    -- Own limits for each end user, as people write them.
    ALTER TABLE keys ADD COLUMN end_users TEXT COLLATE "C";
"#,
];

const APPLIED: &str = "SELECT taken FROM schema_steps";

/// A migration may have to read all data.
const TIMEOUT: Duration = Duration::from_hours(1);

/// The advisory lock held while migrations are applied; the number itself means nothing.
const MIGRATIONS_LOCK: i64 = 0x6d6b_2073_7465_7073;

/// Applies the pending migrations, all or none. Others may be doing the same.
pub(super) fn migrate(database: &Database) -> Result<(), Error> {
    let known = known_count();
    if database.read(applied_count)? == known {
        return Ok(());
    }
    database.in_transaction(TIMEOUT, |session| {
        // Waits for whoever applies migrations now.
        session.execute_batch(&format!("SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATIONS_LOCK})"))?;
        // A check for the table would not do: it may see the state before another server's commit.
        session.execute_batch("SET LOCAL client_min_messages = error; CREATE TABLE IF NOT EXISTS schema_steps (taken BIGINT NOT NULL)")?;
        let rows = session.query(APPLIED, &[])?;
        let taken = first(&rows)?.unwrap_or(0);
        if taken > known {
            return Err(Error::TooNew { found: taken, known });
        }
        if rows.is_empty() {
            session.execute_batch("INSERT INTO schema_steps (taken) VALUES (0)")?;
        }
        for step in MIGRATIONS.iter().skip(usize::try_from(taken).unwrap_or(0)) {
            session.execute_batch(step)?;
        }
        session.execute_batch(&format!("UPDATE schema_steps SET taken = {known}"))
    })
}

/// The number of migrations.
pub(super) fn known_count() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The number of migrations applied to a database.
pub(super) fn applied_count(session: &Session<'_>) -> Result<i64, Error> {
    let is_there = session.query("SELECT to_regclass('schema_steps') IS NOT NULL", &[])?;
    if first(&is_there)? != Some(true) {
        return Ok(0);
    }
    let rows = session.query(APPLIED, &[])?;
    Ok(first(&rows)?.unwrap_or(0))
}
