//! Compares two configurations of a server, by the names of their settings. Values are never reported, as they may be
//! secrets.

use std::collections::BTreeMap;

use crate::config::{ServerConfig, server_listing};

/// The settings that differ between `before` and `after`, in the order of the file. A provider that only one of them
/// has is reported as such, without its settings.
pub fn changes(before: &ServerConfig, after: &ServerConfig) -> Vec<String> {
    let mut previous: BTreeMap<String, String> =
        server_listing(before).into_iter().map(|entry| (entry.key, entry.value)).collect();
    let mut changed = Vec::new();
    for entry in server_listing(after) {
        if previous.remove(&entry.key).is_none_or(|value| value != entry.value) {
            changed.push(entry.key);
        }
    }
    changed.extend(previous.into_keys());

    for (only, other, what) in [(after, before, "new"), (before, after, "gone")] {
        let others: Vec<&str> = other.providers.iter().map(|settings| settings.name.as_str()).collect();
        for settings in only.providers.iter().filter(|settings| !others.contains(&&*settings.name)) {
            let table = format!("providers.{}.", settings.name);
            changed.retain(|key| !key.starts_with(&table));
            changed.push(format!("providers.{} ({what})", settings.name));
        }
    }
    // The listing shows how many keys there are, not which.
    for settings in &after.providers {
        let before = before.providers.iter().find(|before| before.name == settings.name);
        let key = format!("providers.{}.api_key", settings.name);
        if before.is_some_and(|before| !before.has_same_keys(settings)) && !changed.contains(&key) {
            changed.push(key);
        }
    }
    changed
}

/// Replaces in `next` what a server cannot change while it runs by the values in `running`; returns the names of the
/// settings that differed. If the listening socket was passed to the server (`has_own_listener` is false), `listen` was
/// never in use.
pub fn keep_fixed(
    running: &ServerConfig,
    next: &mut ServerConfig,
    has_own_listener: bool,
) -> Vec<&'static str> {
    let mut fixed = Vec::new();
    if has_own_listener && next.listen != running.listen {
        fixed.push("listen");
    }
    if next.data_dir != running.data_dir {
        fixed.push("data_dir");
    }
    if next.database != running.database {
        fixed.push("database_url");
    }
    if next.limits_store != running.limits_store {
        fixed.push("limits_url");
    }
    if next.tls.is_some() != running.tls.is_some() {
        fixed.extend(["tls_cert", "tls_key"]);
        next.tls.clone_from(&running.tls);
    }
    if next.traces != running.traces {
        fixed.extend(["otlp_endpoint", "otlp_capture"]);
        next.traces.clone_from(&running.traces);
    }
    next.listen = running.listen;
    next.limits_store.clone_from(&running.limits_store);
    next.database.clone_from(&running.database);
    next.data_dir.clone_from(&running.data_dir);
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::config::{Env, ServerArgs, load_server};

    const ACME: &str = "[providers.acme]\nbase_url = \"http://127.0.0.1:1/v1\"\n";

    fn load(text: &str) -> ServerConfig {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.toml");
        std::fs::write(&path, text).unwrap();
        let args = ServerArgs { config: Some(path), data_dir: Some("/d".into()), ..ServerArgs::default() };
        let variables = [("ONE", "sk-one"), ("OTHER", "sk-other")];
        load_server(&args, &Env::bare(variables, Time::from_unix_ms(0))).unwrap()
    }

    fn between(before: &str, after: &str) -> Vec<String> {
        changes(&load(before), &load(after))
    }

    #[test]
    fn unchanged_settings_are_not_reported() {
        assert_eq!(between(ACME, &format!("max_body_bytes = 1048576\n{ACME}# a remark\n")), [""; 0]);
    }

    #[test]
    fn changed_settings_are_reported_by_name() {
        let after = format!("{ACME}retries = 1\n[limits]\nper_day = 7\n");
        assert_eq!(between(ACME, &after), ["limits.per_day", "providers.acme.retries"]);
        assert_eq!(between(&after, ACME), ["limits.per_day", "providers.acme.retries"]);
    }

    #[test]
    fn added_and_removed_providers_are_reported_as_a_whole() {
        let both = format!("{ACME}[providers.acme2]\nbase_url = \"http://127.0.0.1:2/v1\"\n");
        assert_eq!(between(ACME, &both), ["providers.acme2 (new)"]);
        assert_eq!(between(&both, ACME), ["providers.acme2 (gone)"]);
    }

    #[test]
    fn a_changed_key_is_reported_but_not_shown() {
        let with = |variable: &str| format!("{ACME}api_key_env = \"{variable}\"\n");
        assert_eq!(between(&with("ONE"), &with("OTHER")), ["providers.acme.api_key"]);
        assert_eq!(between(ACME, &with("OTHER")), ["providers.acme.api_key"]);
        assert_eq!(between(&with("ONE"), &with("ONE")), [""; 0]);
    }

    #[test]
    fn what_cannot_change_stays_and_is_reported() {
        let running = load(ACME);
        let after = load(&format!("listen = \"127.0.0.1:9\"\n{ACME}"));
        for (has_own_listener, expected) in [(true, &["listen"][..]), (false, &[])] {
            let mut next = after.clone();
            assert_eq!(keep_fixed(&running, &mut next, has_own_listener), expected);
            assert_eq!(changes(&running, &next), [""; 0]);
        }

        // Only the password differs, which is another way to reach the same store.
        let store = |password: &str| format!("limits_url = \"redis://:{password}@db\"\n{ACME}");
        let running = load(&store("old"));
        for (after, expected) in
            [(store("old"), &[][..]), (store("new"), &["limits_url"]), (ACME.to_owned(), &["limits_url"])]
        {
            let mut next = load(&after);
            assert_eq!(keep_fixed(&running, &mut next, true), expected);
            assert_eq!(next.limits_store, running.limits_store);
        }

        let database = |password: &str| format!("database_url = \"postgres://mk:{password}@db/mk\"\n{ACME}");
        let running = load(&database("old"));
        for (after, expected) in [
            (database("old"), &[][..]),
            (database("new"), &["database_url"]),
            (ACME.to_owned(), &["database_url"]),
        ] {
            let mut next = load(&after);
            assert_eq!(keep_fixed(&running, &mut next, true), expected);
            assert_eq!(next.database, running.database);
        }
    }
}
