//! Files as they are on disk: Markdown is told by name and content, and what is found in a file has a line and a column.

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk};
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, claim, claims};
use crate::support::server::{Setup, TestServer};

const NOTES: &str = "---\ntitle: Notes\n---\n\n# Paris is in Spain\n\n\
    The Eiffel Tower is in Paris.\n\n```\nTower 2 is 7 m high.\n```\n\n* Größe: Tower 1 is 8 m high, says [Ada](https://example.org).\n";

/// A server whose panel knows that each tower is 9 m high.
async fn towers() -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let statement = ask.block("SECTION");
            let found = [("The Eiffel Tower is in Paris.", "Where is the Eiffel Tower?", "Paris", "Rome")];
            let mut list: Vec<Value> = found
                .iter()
                .filter(|found| statement.contains(found.0))
                .map(|found| claim(found.0, found.1, found.2, &[found.3]))
                .collect();
            if statement.contains("Tower 1 is 8 m high") {
                let mut tower = claim("Tower 1 is 8 m high.", "How high is tower 1?", "8 m", &["9 m", "7 m"]);
                tower["quote"] = json!("Tower 1 is 8 m high");
                list.push(tower);
            }
            let in_code = "Tower 2 is 7 m high.";
            if statement.contains(in_code) {
                list.push(claim(in_code, "How high is tower 2?", "7 m", &["9 m", "8 m"]));
            }
            claims(&list)
        }
        _ if ask.options().values().any(|option| option == "9 m") => ask.choose("9 m"),
        _ => ask.choose("Paris"),
    })
    .await;
    (Setup::new(config(&provider.base_url)).start().await, provider)
}

async fn verify(server: &TestServer, files: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
    let mk = Mk::new().args(["verify"]).args(arguments.iter().copied());
    for (name, text) in files {
        std::fs::write(mk.home().join(name), text).unwrap();
    }
    mk.env("MK_SERVER", &server.base).env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_in_a_file_has_a_line_and_a_column() {
    let (server, _provider) = towers().await;
    let ran = verify(&server, &[("notes.md", NOTES)], &["--json", "notes.md"]).await;
    assert_eq!(ran.code(), 10, "{ran:?}");
    let document = ran.json();
    let place = |at: usize| {
        let claim = &document["results"][at];
        [&claim["file"], &claim["line"], &claim["column"]].map(Value::clone)
    };
    assert_eq!(place(0), [json!("notes.md"), json!(7), json!(1)], "{document}");
    assert_eq!(place(1), [json!("notes.md"), json!(13), json!(10)], "{document}");

    let lines = verify(&server, &[("notes.md", NOTES)], &["--jsonl", "notes.md"]).await.stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["type"] == "claim" && line["line"] == 13), "{lines:?}");
    assert!(lines.last().unwrap()["coverage"]["sentences"].is_u64(), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_names_file_line_and_column() {
    let (server, _provider) = towers().await;
    for files in [&["notes.md"][..], &["notes.md", "other.md"]] {
        let given = [("notes.md", NOTES), ("other.md", "The Eiffel Tower is in Paris.\n")];
        let ran = verify(&server, &given, &[&["-q"], files].concat()).await;
        assert_eq!(ran.code(), 10, "{ran:?}");
        let named = "notes.md:13:10  FALSE         Tower 1 is 8 m high.\n";
        assert!(ran.stderr.contains(named), "{ran:?}");
        assert!(ran.stderr.contains("models say 9 m (3/3) · \"Tower 1 is 8 m high\""), "{ran:?}");
    }
    let long = "a-file-whose-name-is-longer-than-a-third-of-a-line.md";
    let ran = verify(&server, &[(long, NOTES)], &["-q", long]).await;
    assert!(ran.stderr.contains(&format!("{long}:13:10  FALSE  ")), "{ran:?}");
    let list = verify(&server, &[("notes.md", NOTES)], &["--view", "list", "notes.md"]).await.stdout;
    assert!(list.contains("at notes.md:13:10\n"), "{list}");
    assert!(!list.contains("notes.md:7"), "where all is right, no place is needed: {list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_is_told_by_name_and_by_content_unless_it_is_said() {
    let (server, _provider) = towers().await;
    let code_is_a_statement = |ran: &CommandOutput| {
        let document = ran.json();
        document["results"].as_array().unwrap().iter().any(|found| found["claim"] == "Tower 2 is 7 m high.")
    };
    for (name, options, is_plain) in [
        ("notes.md", &[][..], false),
        ("NOTES", &[], false),
        ("notes.txt", &[], true),
        ("notes.md", &["--format", "text"], true),
        ("notes.txt", &["--format", "markdown"], false),
    ] {
        let ran = verify(&server, &[(name, NOTES)], &[options, &["--json", name]].concat()).await;
        assert_eq!(code_is_a_statement(&ran), is_plain, "{name} {options:?}: {ran:?}");
    }
}

#[test]
fn a_long_text_says_first_what_it_will_take() {
    let long = "The Eiffel Tower is in Paris. ".repeat(300);
    let ran = Mk::new().args(["verify", "--sandbox", &long]).run();
    let said = "a long text: about 163 claims and 489 model calls\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let short = Mk::new().args(["verify", "--sandbox", "The Eiffel Tower is in Paris."]).run();
    assert!(!short.stderr.contains("a long text"), "{short:?}");
}
