//! From flags, variables and files to the client's configuration.

use super::{credentials, *};
use crate::clock::Time;
use crate::config::client_listing;
use std::fs;
use std::path::Path;

const CONFIG: &str = r#"
profile = "work"
[profiles.work]
server = "https://mk.example.org/"
[profiles.home]
server = "http://127.0.0.1:9000"
[output]
color = "never"
view = "table"
[network]
timeout = "90s"
ca_cert = "ca.pem"
[verify]
domain = "legal"
min_required = 3
jobs = 4
fail_on = ["FALSE", "No-Consensus"]
"#;

struct Fixture {
    dir: tempfile::TempDir,
    env: Env,
}

fn fixture(config: Option<&str>, project: Option<&str>, variables: &[(&str, &str)]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let repository = dir.path().join("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    let write = |path: &Path, text: Option<&str>| text.map(|text| fs::write(path, text).unwrap());
    write(&dir.path().join("config.toml"), config);
    write(&repository.join(".mk.toml"), project);
    let mut env = Env::bare(variables.iter().copied(), Time::from_unix_ms(0));
    env.config_home = Some(dir.path().to_owned());
    env.working_dir = Some(repository);
    Fixture { dir, env }
}

impl Fixture {
    fn load(&self) -> Result<ClientConfig, ConfigError> {
        load_client(&ClientArgs::default(), &self.env)
    }
}

#[test]
fn the_default_is_the_server_on_this_machine() {
    let config = load_client(&ClientArgs::default(), &Env::bare([], Time::from_unix_ms(0))).unwrap();
    assert_eq!(config.server, "http://127.0.0.1:8080");
    assert!(!config.server_origin.is_set());
    assert_eq!((config.color, config.progress, config.view), Default::default());
    assert_eq!(config.verify, VerifyDefaults::default());
    assert!(Service::ALL.iter().all(|service| config.key_for(*service).unwrap().is_none()));
    assert!(config.warnings.is_empty());
}

#[test]
fn the_user_s_file_applies() {
    let fixture = fixture(Some(CONFIG), None, &[]);
    let config = fixture.load().unwrap();
    assert_eq!((config.server.as_str(), config.profile.as_deref()), ("https://mk.example.org", Some("work")));
    assert!(config.server_origin.is_set());
    assert_eq!((config.color, config.view), (ColorMode::Never, View::Table));
    assert_eq!(config.timeout, Some(Duration::from_secs(90)));
    assert_eq!(config.ca_cert, Some(fixture.dir.path().join("ca.pem")));
    let verify = config.verify;
    assert_eq!((verify.domain, verify.min_required, verify.jobs), (Some(Domain::Legal), Some(3), Some(4)));
    assert_eq!(verify.fail_on, Some(vec![FailOn::False, FailOn::NoConsensus]));
}

#[test]
fn each_layer_outranks_the_one_below() {
    let project = "[output]\ncolor = \"always\"\nprogress = \"lines\"\n[verify]\nmin_required = 2\n";
    let by_project = fixture(Some(CONFIG), Some(project), &[]).load().unwrap();
    assert_eq!((by_project.color, by_project.view), (ColorMode::Always, View::Table));
    assert_eq!((by_project.verify.min_required, by_project.verify.jobs), (Some(2), Some(4)));

    let variables = [
        ("MK_COLOR", "auto"),
        ("MK_TIMEOUT", "5s"),
        ("MK_SERVER", "http://127.0.0.1:7"),
        ("MK_CACERT", "/v.pem"),
        ("MK_PROFILE", "home"),
    ];
    let fixture = fixture(Some(CONFIG), Some(project), &variables);
    let by_variable = fixture.load().unwrap();
    assert_eq!((by_variable.color, by_variable.progress), (ColorMode::Auto, ProgressMode::Lines));
    assert_eq!(by_variable.server, "http://127.0.0.1:7");
    assert_eq!(by_variable.origin("profile"), Origin::Default, "none is in use");
    assert_eq!(
        (by_variable.timeout, by_variable.ca_cert),
        (Some(Duration::from_secs(5)), Some("/v.pem".into()))
    );

    let args = ClientArgs {
        profile: Some("work".to_owned()),
        timeout: Some("1m".to_owned()),
        color: Some(ColorMode::Never),
        ..ClientArgs::default()
    };
    let by_flag = load_client(&args, &fixture.env).unwrap();
    assert_eq!(by_flag.server, "https://mk.example.org", "a flag's profile outranks MK_SERVER");
    assert_eq!(by_flag.origin("profile"), Origin::Flag("--profile"));
    assert_eq!((by_flag.timeout, by_flag.color), (Some(Duration::from_mins(1)), ColorMode::Never));
    let args = ClientArgs { server: Some("https://s.example/base/".to_owned()), ..args };
    assert_eq!(load_client(&args, &fixture.env).unwrap().server, "https://s.example/base");
}

#[test]
fn the_chat_model_comes_from_the_variable_or_the_file() {
    const FILE: &str = "[chat]\nmodel = \"openai/gpt-5.4-mini\"";
    let chosen = |file, variables| fixture(file, None, variables).load().map(|config| config.chat_model);
    assert_eq!(chosen(None, &[]), Ok(None));
    assert_eq!(chosen(Some(FILE), &[]), Ok(Some("openai/gpt-5.4-mini".to_owned())));
    assert_eq!(chosen(Some(FILE), &[("MK_MODEL", "a/b/c")]), Ok(Some("a/b/c".to_owned())));
    let listing = client_listing(&fixture(Some(FILE), None, &[]).load().unwrap());
    let entry = listing.iter().find(|entry| entry.key == "chat.model").unwrap();
    assert!(
        entry.value == "\"openai/gpt-5.4-mini\"" && matches!(entry.origin, Origin::File { .. }),
        "{entry:?}"
    );
    let wrong = chosen(None, &[("MK_MODEL", "gpt 5")]).unwrap_err();
    assert!(wrong.message.starts_with("MK_MODEL must be a model, written as provider/model_name"), "{wrong}");
    let wrong = chosen(Some("[chat]\nmodel = \"gpt 5\""), &[]).unwrap_err();
    assert!(wrong.message.contains("line 2 must be a model"), "{wrong}");
    let of_project = fixture(None, Some(FILE), &[]).load().unwrap_err();
    assert!(of_project.message.contains("a model costs your money"), "{of_project}");
}

#[test]
fn a_checked_out_file_cannot_redirect_keys() {
    for (project, key) in [
        ("server = \"https://evil.example\"", "server"),
        ("profile = \"x\"", "profile"),
        ("[profiles.work]\nserver = \"https://evil.example\"", "profiles"),
        ("[network]\nca_cert = \"evil.pem\"", "network"),
        ("[servers.\"https://a\"]\nverify = \"mk_verify_x\"", "servers"),
    ] {
        let error = fixture(Some(CONFIG), Some(project), &[]).load().unwrap_err();
        assert!(error.message.starts_with(&format!("`{key}` in ")), "{error}");
        assert!(error.message.contains("must not decide where keys are sent"), "{error}");
    }
}

#[test]
fn errors_name_what_is_wrong() {
    for (config, expected) in [
        ("profil = \"x\"", "unknown key `profil`"),
        ("[output]\ncolour = \"auto\"", "did you mean `color`?"),
        ("[output]\ncolor = \"blue\"", "must be \"auto\", \"always\" or \"never\", not \"blue\""),
        ("[verify]\nmin_required = 4", "must be 2 or 3"),
        ("[verify]\nfail_on = [\"lies\"]", "must be a list of \"false\", \"no-consensus\""),
        ("[verify]\nfail_on = [\"false\", \"never\"]", "or \"never\" alone"),
        ("[verify]\ndomain = \"medical\"", "must be \"general\" or \"legal\""),
        ("[profiles.x]", "needs a `server`"),
        ("[profiles.x]\nserver = \"mk.example.org\"", "must be an http:// or https:// address"),
        ("profile = \"y\"\n[profiles.x]\nserver = \"https://a\"", "there is no profile `y`"),
    ] {
        let error = fixture(Some(config), None, &[]).load().unwrap_err();
        let is_said = error.message.contains(expected) || error.hints.iter().any(|hint| hint == expected);
        assert!(is_said, "{config}\n{error:?}");
        assert!(error.message.contains("config.toml"), "{config}\n{error}");
    }
    for (name, value, expected) in [
        ("MK_SERVER", "localhost", "MK_SERVER must be an http:// or https:// address"),
        ("MK_TIMEOUT", "5", "MK_TIMEOUT must be a duration such as"),
        ("MK_COLOR", "blue", "MK_COLOR must be \"auto\", \"always\" or \"never\""),
        ("MK_PROFILE", "wrok", "there is no profile `wrok` (MK_PROFILE)"),
    ] {
        let error = fixture(Some(CONFIG), None, &[(name, value)]).load().unwrap_err();
        assert!(error.message.starts_with(expected), "{error}");
    }
    let mistyped = fixture(Some(CONFIG), None, &[("MK_PROFILE", "wrok")]).load().unwrap_err();
    assert_eq!(mistyped.hints[0], "did you mean `work`?");
}

#[test]
fn plain_http_beyond_this_machine_gets_a_warning() {
    let config = fixture(None, None, &[("MK_SERVER", "http://mk.example.org")]).load().unwrap();
    assert!(config.warnings[0].starts_with("http://mk.example.org is plain http"), "{:?}", config.warnings);
}

#[test]
fn keys_follow_the_server() {
    let fixture = fixture(Some(CONFIG), None, &[]);
    let key = SecretString::from("mk_verify_stored");
    credentials::store(&fixture.env, "https://mk.example.org", Service::Verify, &key).unwrap();
    let config = fixture.load().unwrap();
    assert!(config.key_for(Service::Verify).unwrap().is_some());
    assert!(config.key_origin(Service::Verify).to_string().contains("credentials.toml:"));
    let args = ClientArgs { profile: Some("home".to_owned()), ..ClientArgs::default() };
    assert!(load_client(&args, &fixture.env).unwrap().key_for(Service::Verify).unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn a_project_s_file_that_could_be_waited_for_is_refused() {
    use std::os::unix::fs::symlink;

    let fixture = fixture(None, None, &[]);
    let project = fixture.dir.path().join("repository/.mk.toml");
    for target in ["/dev/zero", "/dev/null"] {
        symlink(target, &project).unwrap();
        let refused = fixture.load().unwrap_err();
        assert!(refused.message.ends_with(".mk.toml is not a regular file"), "{refused}");
        fs::remove_file(&project).unwrap();
    }
    let elsewhere = fixture.dir.path().join("shared.toml");
    fs::write(&elsewhere, "[verify]\njobs = 2\n").unwrap();
    symlink(&elsewhere, &project).unwrap();
    assert_eq!(fixture.load().unwrap().verify.jobs, Some(2));
}

#[test]
fn the_listing_shows_origins_and_no_secrets() {
    let variables = [("MK_API_KEY", "mk_verify_secret"), ("MK_PROGRESS", "bars")];
    let fixture = fixture(Some(CONFIG), Some("[verify]\njobs = 2\n"), &variables);
    let entries = client_listing(&fixture.load().unwrap());
    let shown = |key: &str| {
        let entry = entries.iter().find(|entry| entry.key == key).unwrap();
        (entry.value.as_str(), entry.origin.to_string())
    };
    let user = fixture.dir.path().join("config.toml").display().to_string();
    let project = fixture.dir.path().join("repository/.mk.toml").display().to_string();
    assert_eq!(shown("server"), ("\"https://mk.example.org\"", format!("{user}:4")));
    assert_eq!(shown("keys.verify"), ("set", "MK_API_KEY".to_owned()));
    assert_eq!(shown("keys.console"), ("not set", "default".to_owned()));
    assert_eq!(shown("output.progress"), ("\"bars\"", "MK_PROGRESS".to_owned()));
    assert_eq!(shown("verify.jobs"), ("2", format!("{project}:2")));
    assert_eq!(shown("verify.fail_on"), ("[\"false\", \"no-consensus\"]", format!("{user}:17")));
    assert_eq!(shown("verify.total_models"), ("", "default".to_owned()));
    assert!(entries.iter().all(|entry| !entry.value.contains("secret")));
}
