//! `mk verify --receipt`, `mk receipt verify` and `mk receipt key`.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mk::api::Service;
use mk::secret::ExposeSecret;
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk};
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, Reply, claim};
use crate::support::scripted::{COMPLETED, Scripted, stream};
use crate::support::server::{Setup, TestServer};

const TRUE: &str = "Tower 1 is 9 m high.";
const FALSE: &str = "Tower 2 is 8 m high.";
/// One model differs.
const CLOSE: &str = "Tower 3 is 9 m high.";

/// A server whose panel knows that towers are 9 m high, and its data directory.
async fn towers() -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let section = ask.block("SECTION");
            let quoted = |&text: &&str| section.contains(text);
            let found = [TRUE, FALSE, CLOSE].into_iter().filter(quoted).map(|text| {
                let height = if text == FALSE { "8 m" } else { "9 m" };
                claim(text, &format!("How high is {}?", &text[..7]), height, &["100 m"])
            });
            let skipped = ["How nice!"].into_iter().filter(quoted);
            let skipped = skipped.map(|quote| json!({"quote": quote, "reason": "opinion"}));
            Reply::json(&json!({
                "claims": found.collect::<Vec<_>>(),
                "skipped": skipped.collect::<Vec<_>>(),
            }))
        }
        _ if ask.text().contains("Tower 3") && ask.model == "three" => ask.choose("100 m"),
        _ if ask.options().values().any(|option| option == "9 m") => ask.choose("9 m"),
        _ => ask.choose("100 m"),
    })
    .await;
    (Setup::new(config(&provider.base_url)).start().await, provider)
}

/// Where what a test writes goes.
struct Desk {
    dir: tempfile::TempDir,
    server: TestServer,
    provider: FakeProvider,
}

impl Desk {
    async fn new() -> Self {
        let (server, provider) = towers().await;
        Self { dir: tempfile::tempdir().unwrap(), server, provider }
    }

    /// The server's data directory.
    fn data(&self) -> PathBuf {
        self.server.dir.path().join("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    async fn verify(&self, arguments: &[&str]) -> CommandOutput {
        let mk = Mk::new().args(["verify"]).args(arguments.iter().copied());
        let key = self.server.key(Service::Verify);
        mk.env("MK_SERVER", &self.server.base).env("MK_API_KEY", &key).run_beside().await
    }

    /// The receipt of a verification of this text.
    async fn receipt(&self, text: &str) -> PathBuf {
        let file = self.path(&format!("{}.jws", self.provider.requests().len()));
        let ran = self.verify(&["--receipt", file.to_str().unwrap(), text]).await;
        assert!(file.exists(), "{ran:?}");
        file
    }

    /// Checks a receipt by the key of the server's data directory.
    async fn check(&self, file: &Path, arguments: &[&str]) -> CommandOutput {
        let mk = Mk::new().args(["receipt", "verify", file.to_str().unwrap()]);
        let data = self.data();
        mk.args(arguments.iter().copied()).env("MK_DATA_DIR", data.to_str().unwrap()).run_beside().await
    }

    /// A receipt that the server signed, with this payload.
    fn sign(&self, payload: &Value) -> PathBuf {
        let seed = self.server.app.store.receipt_seed().unwrap().unwrap();
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose_secret()).unwrap();
        let head = fs::read_to_string(self.path("0.jws")).unwrap();
        let (head, _) = head.split_once('.').unwrap();
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(payload.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
        let file = self.path("signed.jws");
        fs::write(&file, format!("{signed}.{signature}")).unwrap();
        file
    }
}

fn payload(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text.split('.').nth(1).unwrap()).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verdict_is_counted_again_one_a_line() {
    let desk = Desk::new().await;
    let file = desk.receipt(&format!("{TRUE} {FALSE} {CLOSE}")).await;
    let ran = desk.check(&file, &[]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let lines = "1\tTRUE\tTTT\tagrees\tTower 1 is 9 m high.\n2\tFALSE\tFFF\tagrees\tTower 2 is 8 m high.\n\
                 3\tTRUE\tTTF\tagrees\tTower 3 is 9 m high.\n";
    assert_eq!(ran.stdout, lines);
    assert!(ran.stderr.starts_with("3 claims recounted, as reported · signed by "), "{ran:?}");

    let ran = desk.check(&file, &["--json"]).await;
    let document = ran.json();
    let checked = &document["receipts"][0];
    assert_eq!((&document["schema"], &document["exit"]), (&json!("mk.receipt.check/1"), &json!(0)));
    assert_eq!((&checked["signature"], &checked["agrees"]), (&json!("valid"), &json!(true)));
    assert_eq!(checked["claims"][1]["assessment"], "FALSE");
    let piped = Mk::new().args(["receipt", "verify", "-"]).stdin(fs::read(&file).unwrap()).run_beside().await;
    assert_eq!((piped.code(), piped.stdout.as_str()), (0, lines));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_rule_decides_the_exit_code() {
    let desk = Desk::new().await;
    let table = [
        (TRUE, "2", 0),
        (TRUE, "3", 0),
        (CLOSE, "2", 0),
        (CLOSE, "3", 11),
        ("Tower 2 is 8 m high. Tower 3 is 9 m high.", "3", 10),
        ("Tower 1 is 9 m high. Nobody reads this sentence at all.", "2", 13),
        ("How nice!", "3", 12),
    ];
    for (text, needed, code) in table {
        let file = desk.receipt(text).await;
        let ran = desk.check(&file, &["--min-required", needed]).await;
        assert_eq!(ran.code(), code, "{text} with {needed}: {ran:?}");
        assert_eq!(desk.check(&file, &[]).await.code(), 0);
    }
    let unread = desk.receipt("Tower 1 is 9 m high. Nobody reads this sentence at all.").await;
    let ran = desk.check(&unread, &[]).await;
    assert!(ran.stderr.contains(" · 1 part of the text not checked · "), "{ran:?}");
    assert_eq!(
        ran.stdout.lines().last(),
        Some("-\tUNCHECKED\tnot_extracted\t-\tNobody reads this sentence at all.")
    );
    let ran = desk.check(&unread, &["-q", "--min-required", "2"]).await;
    let named =
        "UNCHECKED     not extracted: Nobody reads this sentence at all.\n1 claim recounted · exit 13\n";
    assert_eq!(ran.stderr, named, "{ran:?}");

    let file = desk.receipt(CLOSE).await;
    let ran = desk.check(&file, &["--min-required", "3"]).await;
    assert_eq!(ran.stdout, format!("1\tNO_CONSENSUS\tTTF\tagrees by its own rule, as TRUE\t{CLOSE}\n"));
    assert_eq!(desk.check(&file, &["--min-required", "4"]).await.code(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_the_local_server_s_or_the_one_that_is_given() {
    let desk = Desk::new().await;
    let file = desk.receipt(TRUE).await;
    let data = desk.data();
    let local = Mk::new().args(["receipt", "key", "--data-dir", data.to_str().unwrap()]).run_beside().await;
    let remote = Mk::new().args(["receipt", "key", "--server", &desk.server.base]).run_beside().await;
    assert_eq!((local.code(), local.stdout.as_str()), (0, remote.stdout.as_str()), "{local:?} {remote:?}");
    assert!(local.stdout.starts_with("-----BEGIN PUBLIC KEY-----\n"));
    let key = desk.path("key.pem");
    fs::write(&key, &local.stdout).unwrap();

    let elsewhere = |arguments: &[&str]| {
        let mk = Mk::new().args(["receipt", "verify", file.to_str().unwrap()]);
        let mk = mk.args(arguments.iter().copied());
        async move { mk.run_beside().await }
    };
    let without = elsewhere(&[]).await;
    assert_eq!(without.code(), 0);
    assert!(without.stderr.contains("warning: the signature was not checked"), "{without:?}");
    let quiet = elsewhere(&["-q"]).await;
    assert!(quiet.stderr.contains("warning: the signature was not checked"), "it may be forged: {quiet:?}");
    let with = elsewhere(&["--key", key.to_str().unwrap()]).await;
    assert!(with.code() == 0 && with.stderr.contains("signed by "), "{with:?}");

    let with = elsewhere(&["--server", &desk.server.base]).await;
    assert!(with.code() == 0 && with.stderr.contains("signed by "), "{with:?}");

    let other = Mk::new();
    let made = other.args(["receipt", "key", "--json", "--data-dir", desk.path("other").to_str().unwrap()]);
    let made = made.run_beside().await;
    assert_eq!(made.code(), 9, "no database is made for it: {made:?}");
    let another = Desk::new().await;
    let pem =
        Mk::new().args(["receipt", "key", "--json", "--server", &another.server.base]).run_beside().await;
    fs::write(&key, pem.json()["public_key"].as_str().unwrap()).unwrap();
    for ran in [elsewhere(&["--key", key.to_str().unwrap()]).await, another.check(&file, &["-q"]).await] {
        assert_eq!(ran.code(), 1);
        assert!(ran.stderr.contains("it is signed with key "), "{ran:?}");
    }
    fs::write(&key, "no key").unwrap();
    let ran = elsewhere(&["--key", key.to_str().unwrap()]).await;
    assert!(ran.code() == 2 && ran.stderr.contains("not a public key in PEM format"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_is_refused() {
    let desk = Desk::new().await;
    let file = desk.receipt(TRUE).await;
    let bytes = fs::read(&file).unwrap();
    let (changed, length) = (desk.path("changed.jws"), bytes.len());
    for at in [0, 50, length / 2, length - 90, length - 40, length - 2, length - 1] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        fs::write(&changed, other).unwrap();
        assert_eq!(desk.check(&changed, &[]).await.code(), 1, "byte {at} of {length}");
    }
    for other in [&bytes[..length / 2], b"", b"\n", b"\xff\xfe", b"hello"] {
        fs::write(&changed, other).unwrap();
        let ran = desk.check(&changed, &["--json"]).await;
        assert_eq!((ran.code(), ran.json()["schema"].as_str()), (1, Some("mk.error/1")), "{ran:?}");
    }
    fs::write(&changed, [&bytes[..], b"\n"].concat()).unwrap();
    let ran = desk.check(&changed, &["--json"]).await;
    let agree: Vec<Value> =
        ran.json()["receipts"].as_array().unwrap().iter().map(|one| one["agrees"].clone()).collect();
    assert_eq!((ran.code(), agree), (1, vec![json!(true), json!(false)]), "{ran:?}");
    assert_eq!(desk.check(&desk.path("nothing"), &[]).await.code(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_reports_other_verdicts_than_its_models_gave_is_found_out() {
    let desk = Desk::new().await;
    let file = desk.receipt(TRUE).await;
    let mut forged = payload(&file);
    forged["claims"][0]["result"]["assessment"] = json!("FALSE");
    forged["claims"][0]["result"]["claim"] = json!("\u{1b}]0;owned\u{7}\u{202e}Tower\n9\tm");
    forged["version"] = json!("\u{1b}[2J9.9");
    let ran = desk.check(&desk.sign(&forged), &[]).await;
    assert_eq!(ran.code(), 1);
    let line = "1\tTRUE\tTTT\treported FALSE\t\u{fffd}]0;owned\u{fffd}\u{fffd}Tower 9 m\n";
    assert_eq!(ran.stdout, line);
    assert!(ran.stderr.contains("1 claim not as reported\n"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");

    let mut forged = payload(&file);
    let vote = forged["claims"][0]["votes"][0].clone();
    forged["claims"][0]["votes"] = json!(vec![vote; 3]);
    let ran = desk.check(&desk.sign(&forged), &["--min-required", "3"]).await;
    assert_eq!(ran.code(), 1);
    assert!(ran.stdout.contains("cannot be counted: fake/one votes twice"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_at_hand_is_compared() {
    let desk = Desk::new().await;
    let (text, context) = (desk.path("text.md"), desk.path("context.txt"));
    fs::write(&text, format!("{TRUE}\n")).unwrap();
    fs::write(&context, "All towers are 9 m high.").unwrap();
    let file = desk.path("0.jws");
    let paths = [&file, &text, &context].map(|path| path.to_str().unwrap());
    let ran = desk.verify(&["--receipt", paths[0], "--context", paths[2], paths[1]]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let same = desk.check(&file, &["--text", paths[1], "--context", paths[2]]).await;
    assert_eq!(same.code(), 0);
    assert!(same.stderr.contains("the text is the same · the context is the same"), "{same:?}");
    let ran = desk.check(&file, &["--text", paths[2]]).await;
    assert!(ran.code() == 1 && ran.stderr.contains("the text is not the one that was verified"), "{ran:?}");
    let ran = desk.check(&file, &["--context", paths[1]]).await;
    assert!(ran.code() == 1 && ran.stderr.contains("the context is not the one"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_statements_have_a_receipt_a_line_in_their_order() {
    let desk = Desk::new().await;
    let file = desk.path("0.jws");
    let ran = desk.verify(&["--json", "--receipt", file.to_str().unwrap(), TRUE, FALSE, CLOSE]).await;
    assert_eq!(ran.code(), 10);
    let told = ran.json();
    let receipts = fs::read_to_string(&file).unwrap();
    for (line, statement) in receipts.lines().zip(told["statements"].as_array().unwrap()) {
        assert_eq!(statement["receipt"], line);
    }
    let ran = desk.check(&file, &["--min-required", "3"]).await;
    assert_eq!(ran.code(), 10, "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 3);
    let mut broken: Vec<&str> = receipts.lines().collect();
    broken[1] = "x.y.z";
    fs::write(&file, broken.join("\n")).unwrap();
    let ran = desk.check(&file, &[]).await;
    assert!(ran.code() == 1 && ran.stderr.contains("line 2: it is not an mk receipt"), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [format!("1\t1\tTRUE\tTTT\tagrees\t{TRUE}"), format!("3\t1\tTRUE\tTTF\tagrees\t{CLOSE}")]
    );
    fs::write(&file, ["x.y.z"; 3].join("\n")).unwrap();
    assert!(desk.check(&file, &[]).await.stderr.contains(", line 1: it is not an mk receipt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_a_batch_say_which_line_or_text_they_are_about() {
    let desk = Desk::new().await;
    let (facts, more, file) = (desk.path("facts.txt"), desk.path("more.md"), desk.path("0.jws"));
    fs::write(&facts, format!("{TRUE}\n\n{CLOSE}\n")).unwrap();
    fs::write(&more, format!("{FALSE}\n")).unwrap();
    let paths = [&file, &facts, &more].map(|path| path.to_str().unwrap());
    desk.verify(&["--receipt", paths[0], "--lines", paths[1]]).await;
    let ran = desk.check(&file, &["--text", paths[1]]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    for line in ["1: ", "2: "] {
        assert!(ran.stderr.lines().any(|said| said.starts_with(line)), "{ran:?}");
    }
    let named = ["line 1", "line 3"].map(|line| format!("the text is {line} of {}", paths[1]));
    assert!(named.iter().all(|name| ran.stderr.contains(name)), "{ran:?}");
    let document = desk.check(&file, &["--text", paths[1], "--json"]).await.json();
    assert_eq!(document["receipts"][1]["text_name"], format!("line 3 of {}", paths[1]));
    let other = desk.check(&file, &["--text", paths[2]]).await;
    assert_eq!((other.code(), other.stderr.matches("the text is not the one").count()), (1, 2), "{other:?}");

    fs::remove_file(&file).unwrap();
    desk.verify(&["--receipt", paths[0], paths[1], paths[2]]).await;
    let ran = desk.check(&file, &["--text", paths[1], "--text", paths[2]]).await;
    assert!(ran.code() == 0 && ran.stderr.contains(&format!("the text is {}", paths[2])), "{ran:?}");
    let argument = desk.receipt(TRUE).await;
    fs::write(&more, format!("{TRUE}\n")).unwrap();
    let echoed = desk.check(&argument, &["--text", paths[2]]).await;
    assert!(echoed.code() == 0 && echoed.stderr.contains("the text is the same"), "{echoed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn votes_stand_in_the_order_in_which_the_verification_showed_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.jws");
    let text = "The Eiffel Tower is in Paris. [sandbox:fail=beta]";
    let mk = Mk::new();
    let ran = mk
        .clone()
        .args(["verify", "--sandbox", text, "--receipt", file.to_str().unwrap()])
        .run_beside()
        .await;
    let votes = |output: &str| output.lines().next().unwrap().split('\t').nth(2).unwrap().to_owned();
    let check = mk.args(["receipt", "verify", file.to_str().unwrap()]).run_beside().await;
    assert_eq!(
        (votes(&ran.stdout), votes(&check.stdout)),
        ("T-TT".to_owned(), "T-TT".to_owned()),
        "{check:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_is_overwritten_and_that_is_found_out_before_anything_is_asked() {
    let desk = Desk::new().await;
    let file = desk.path("mine");
    fs::write(&file, "mine").unwrap();
    let ran = desk.verify(&["--receipt", file.to_str().unwrap(), TRUE]).await;
    assert_eq!(ran.code(), 9, "{ran:?}");
    assert!(ran.stderr.contains("already exists"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let ran = desk.verify(&["--receipt", desk.path("no/where").to_str().unwrap(), TRUE]).await;
    assert_eq!(ran.code(), 1, "{ran:?}");
    let ran = desk.verify(&["--receipt", "-", TRUE]).await;
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert!(desk.provider.requests().is_empty());
    assert_eq!(fs::read_dir(desk.dir.path()).unwrap().count(), 1, "nothing else is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_none_fails_the_command_and_leaves_no_file() {
    let server = Scripted::answering(stream(COMPLETED)).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("receipt");
    let mk = Mk::new().args(["verify", "--json", "--receipt", file.to_str().unwrap(), TRUE]);
    let mk = mk.env("MK_SERVER", &server.base).env("MK_API_KEY", crate::support::mk::VERIFY_KEY);
    let ran = mk.run_beside().await;
    assert_eq!(
        (ran.code(), ran.json()["error"]["message"].as_str()),
        (5, Some("the server sent no receipt"))
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_of_another_verification_is_none() {
    let desk = Desk::new().await;
    let other = fs::read_to_string(desk.receipt(FALSE).await).unwrap();
    let receipt = format!("\"receipt\":\"{}\",\"results\"", other.trim_end());
    let server = Scripted::answering(stream(&COMPLETED.replace("\"results\"", &receipt))).await;
    let file = desk.path("receipt");
    let mk = Mk::new().args(["verify", "--receipt", file.to_str().unwrap(), TRUE]);
    let mk = mk.env("MK_SERVER", &server.base).env("MK_API_KEY", crate::support::mk::VERIFY_KEY);
    let ran = mk.run_beside().await;
    assert!(ran.code() == 5 && ran.stderr.contains("it is about another verification"), "{ran:?}");
    assert!(!file.exists());
}

#[test]
fn without_a_server_the_key_is_that_of_this_machine_and_a_backup_keeps_it() {
    let mk = Mk::new();
    let home = mk.home().to_owned();
    let run = |arguments: &[&str]| {
        let mut command = mk.clone().args(arguments.iter().copied());
        command = command.env("MK_DATA_DIR", home.join("data").to_str().unwrap());
        command.run()
    };
    let made = run(&["verify", "--sandbox", "--receipt", "one", "Two plus two is four."]);
    assert_eq!(made.code(), 0, "{made:?}");
    assert!(made.stderr.contains("for the key that signs receipts"), "{made:?}");
    assert_eq!(run(&["verify", "--sandbox", "--receipt", "two", "Two plus two is four."]).code(), 0);
    for file in ["one", "two"] {
        let checked = run(&["receipt", "verify", file]);
        assert!(checked.code() == 0 && checked.stderr.contains("signed by "), "{checked:?}");
        assert!(checked.stderr.contains("sandbox"), "{checked:?}");
    }
    let key = run(&["receipt", "key"]).stdout;
    assert_eq!(run(&["backup", "mk.tar"]).code(), 0);
    assert_eq!(run(&["restore", "mk.tar", "--data-dir", "restored"]).code(), 0);
    assert_eq!(run(&["receipt", "key", "--data-dir", "restored"]).stdout, key);
}
