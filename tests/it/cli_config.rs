//! What `mk config` reports about files and values.

use std::fs;

use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk};
use crate::support::pty::Person;

fn run(mk: &Mk, line: &str) -> CommandOutput {
    mk.clone().args(line.split(' ')).run()
}

#[test]
fn config_path_reports_the_paths_in_use() {
    let user = Mk::new();
    let config = user.home().join(".config/mk");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("server.toml"), "data_dir = \"/srv/usual\"\n").unwrap();
    let other = user.home().join("other.toml");
    fs::write(&other, "data_dir = \"/srv/other\"\n").unwrap();
    let other = other.to_str().unwrap();
    let (usual, nothing) = (config.join("server.toml").display().to_string(), json!(null));
    let told = |call: &Mk, line: &str| -> [Value; 3] {
        let ran = run(call, line);
        assert_eq!(ran.code(), 0, "{ran:?}");
        let mut document = ran.json();
        ["server_file", "data_dir", "database"].map(|name| document[name].take())
    };
    assert_eq!(told(&user, "config path --json"), [json!(usual), json!("/srv/usual"), nothing.clone()]);
    let named = [json!(other), json!("/srv/other"), nothing.clone()];
    assert_eq!(told(&user.clone().env("MK_CONFIG", other), "config path --json"), named);
    assert_eq!(told(&user, &format!("config path --json --config {other}")), named);
    let elsewhere = user.clone().env("MK_DATABASE_URL", "postgres://me:secret@db.example/mk");
    let [_, directory, database] = told(&elsewhere, "config path --json");
    assert_eq!(directory, nothing);
    let database = database.as_str().unwrap();
    assert!(database.contains("db.example") && !database.contains("secret"), "{database}");

    let missing = run(&user, "config path --config /no/such.toml");
    assert!(
        missing.code() == 0 && missing.stderr.contains("/no/such.toml (--config) does not exist"),
        "{missing:?}"
    );
    assert!(
        missing.stdout.contains("server_file\t/no/such.toml\n") && missing.stdout.contains("data_dir\t-\n")
    );
}

#[test]
fn a_tilde_in_a_directory_is_rejected() {
    let user = Mk::new();
    let file = user.home().join("server.toml");
    let call = user.clone().env("MK_CONFIG", file.to_str().unwrap());
    for (value, words) in [("~/mk", "begins with `~`, which is not expanded here"), ("", "must be a path")] {
        fs::write(&file, format!("data_dir = \"{value}\"\n")).unwrap();
        let ran = run(&call, "keys create --service verify");
        assert!(ran.code() == 2 && ran.stderr.contains(words), "{value}: {ran:?}");
    }
    assert_eq!(fs::read_dir(user.home()).unwrap().count(), 1, "nothing was created");
}

#[test]
fn values_and_origins_share_a_line_at_80_columns() {
    let call = Mk::new().args(["config", "list", "--origin"]);
    let config = call.home().join(".config/mk");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("server.toml"), "[limits]\nper_day = 7\n").unwrap();
    let (_, shown) = Person::at_columns(&call.command(), 80).end();
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    for (key, origin) in
        [("verify.jobs", "default"), ("limits.per_minute", "default"), ("verify.panel", "chosen at")]
    {
        let line = lines.iter().find(|line| line.contains(key)).unwrap_or_else(|| panic!("{key}: {shown}"));
        assert!(line.contains(origin), "{line}: {shown}");
    }
    let of_file = lines.iter().find(|line| line.contains("limits.per_day"));
    assert!(of_file.is_some_and(|line| line.contains('7') && line.contains('/')), "{shown}");
    for side in ["client", "server"] {
        assert!(lines.iter().any(|line| line.contains(side) && line.len() < 20), "{side}: {shown}");
    }
    let piped = run(&Mk::new(), "config list --origin").stdout;
    for (key, value) in [
        ("verify.jobs", "4"),
        ("verify.min_required", "2"),
        ("verify.total_models", "3"),
        ("verify.domain", "\"general\""),
        ("verify.fail_on", "[\"false\", \"no-consensus\", \"unchecked\"]"),
        ("network.timeout", "\"10m\" for verify"),
        ("network.ca_cert", "not set"),
    ] {
        assert!(
            piped.lines().any(|line| line == format!("client\t{key}\t{value}\tdefault")),
            "{key}: {piped}"
        );
    }
    assert!(piped.lines().any(|line| line == "server\ttls_cert\tnot set\tdefault"), "{piped}");
    assert!(piped.lines().any(|line| line == "server\tlimits.per_minute\t60\tdefault"), "{piped}");
}

#[test]
fn files_are_looked_for_where_the_system_s_variables_say() {
    let user = Mk::new();
    let (config, data) = (user.home().join("settings"), user.home().join("stored"));
    fs::create_dir_all(config.join("mk")).unwrap();
    fs::write(config.join("mk/server.toml"), "[limits]\nper_day = 7\n").unwrap();
    fs::write(config.join("mk/config.toml"), "[verify]\njobs = 2\n").unwrap();
    let moved = user
        .clone()
        .env("XDG_CONFIG_HOME", config.to_str().unwrap())
        .env("XDG_DATA_HOME", data.to_str().unwrap());
    let paths = run(&moved, "config path --json").json();
    assert_eq!(paths["server_file"], json!(config.join("mk/server.toml")), "{paths}");
    assert_eq!(paths["data_dir"], json!(data.join("mk")), "{paths}");
    let listed = run(&moved, "config list").stdout;
    for line in ["server\tlimits.per_day\t7", "client\tverify.jobs\t2"] {
        assert!(listed.lines().any(|listed| listed == line), "{listed}");
    }
    let created = run(&moved, "keys create --service verify");
    assert!(created.code() == 0 && data.join("mk/mk.db").exists(), "{created:?}");
    assert!(!user.home().join(".local").exists() && !user.home().join(".config").exists());
}

#[test]
fn a_profile_is_chosen_by_its_variable_unless_its_flag_names_another() {
    let user = Mk::new();
    let config = user.home().join(".config/mk");
    fs::create_dir_all(&config).unwrap();
    let profiles =
        ["work", "home"].map(|name| format!("[profiles.{name}]\nserver = \"https://{name}.example\"\n"));
    fs::write(config.join("config.toml"), profiles.concat()).unwrap();
    for (line, name, origin) in [
        ("config list client --origin", "work", "MK_PROFILE"),
        ("config list client --origin --profile home", "home", "--profile"),
    ] {
        let listed = run(&user.clone().env("MK_PROFILE", "work"), line).stdout;
        let server = format!("client\tserver\t\"https://{name}.example\"\t");
        assert!(listed.contains(&format!("client\tprofile\t\"{name}\"\t{origin}\n")), "{listed}");
        assert!(listed.contains(&server), "{listed}");
    }
    let unknown = run(&user.env("MK_PROFILE", "wrok"), "verify Paris");
    assert!(unknown.code() == 2 && unknown.stderr.contains("no profile `wrok` (MK_PROFILE)"), "{unknown:?}");
}
