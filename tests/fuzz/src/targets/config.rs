//! Configuration files: whatever they contain, they are read, or refused with a one-line message.

use std::cell::LazyCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::input::is_harmless;
use mk::clock::Time;
use mk::config::{
    ClientArgs, ConfigError, Env, ServerArgs, client_listing, load_client, load_providers, load_server,
    server_listing,
};
use tempfile::TempDir;

thread_local! {
    // In memory if possible: the disk does not matter here.
    static HOME: LazyCell<TempDir> = LazyCell::new(|| {
        let shared = Path::new("/dev/shm");
        let made = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
        made.expect("a directory for files")
    });
}

fn check(error: &ConfigError) {
    assert!(!error.message.is_empty() && is_harmless(&error.message), "{:?}", error.message);
    assert!(error.hints.iter().all(|hint| is_harmless(hint)), "{:?}", error.hints);
}

fn server(env: &Env) {
    for sandbox in [false, true] {
        match load_server(&ServerArgs { sandbox, ..ServerArgs::default() }, env) {
            Ok(config) => {
                assert!(config.max_body_bytes > 0 && !config.providers.is_empty());
                assert!(config.warnings.iter().chain(&config.notes).all(|text| is_harmless(text)));
                assert!(!server_listing(&config).is_empty());
            }
            Err(error) => check(&error),
        }
    }
    match load_providers(&ServerArgs::default(), env) {
        Ok(providers) => providers.iter().filter_map(|(_, loaded)| loaded.as_ref().err()).for_each(check),
        Err(error) => check(&error),
    }
}

fn client(env: &Env) {
    match load_client(&ClientArgs::default(), env) {
        Ok(config) => {
            assert!(config.server.starts_with("http") && is_harmless(&config.server), "{:?}", config.server);
            assert!(config.verify.min_required.is_none_or(|least| (2..=3).contains(&least)));
            assert!(config.verify.total_models.is_none_or(|total| (2..=9).contains(&total)));
            assert!(!client_listing(&config).is_empty());
        }
        Err(error) => check(&error),
    }
}

pub(super) fn run(bytes: &[u8]) {
    let home = HOME.with(|home| home.path().to_owned());
    // With a key, so that no local ports are probed if the file names no provider.
    let mut env = Env::bare([("OPENAI_API_KEY", "sk-nobody")], Time::from_unix_ms(1_795_176_000_000));
    env.config_home = Some(home.clone());
    env.data_home = Some(home.clone());
    for name in ["server.toml", "config.toml"] {
        fs::write(home.join(name), bytes).expect("a file");
    }
    server(&env);
    client(&env);
    // The same text as a file in a checkout, and as the credentials file.
    fs::remove_file(home.join("config.toml")).expect("it was written");
    env.working_dir = Some(home.clone());
    for name in [".mk.toml", "credentials.toml"] {
        let path = home.join(name);
        fs::write(&path, bytes).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
        client(&env);
        fs::remove_file(path).expect("it was written");
    }
}
