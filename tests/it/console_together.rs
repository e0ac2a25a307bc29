//! Many operators at once: the audit and the lists show exactly what was acknowledged.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::console::{Console, server, text};
use crate::support::dice::Dice;

const TASKS: u64 = 8;
const STEPS: u64 = 14;

/// The acknowledged requests: request id, action and key id.
type Acknowledged = Vec<(String, &'static str, String)>;

/// The keys that all operators work on, and the acknowledged requests.
#[derive(Default)]
struct Shared {
    keys: Mutex<Vec<String>>,
    acknowledged: Mutex<Acknowledged>,
}

async fn operate(task: u64, console: Console, list: String, shared: Arc<Shared>) {
    let mut dice = Dice(task);
    for step in 0..STEPS {
        let name = format!("{task}-{step}");
        let chosen = {
            let keys = shared.keys.lock().unwrap();
            keys.get(dice.place(keys.len().max(1))).cloned()
        };
        let (action, method, path, body) = match (dice.place(5), &chosen) {
            (0, Some(key)) => {
                ("key.rotated", Method::POST, format!("{list}/{key}/rotate"), json!({"grace_seconds": 60}))
            }
            (1, Some(key)) => ("key.revoked", Method::DELETE, format!("{list}/{key}"), json!({})),
            (2 | 3, Some(key)) => {
                ("key.updated", Method::PATCH, format!("{list}/{key}"), json!({"name": name}))
            }
            _ => ("key.created", Method::POST, list.clone(), json!({"service": "verify", "name": name})),
        };
        let request = console.request(method, &path).header("x-request-id", &name).json(&body);
        let response = Console::ask(request).await;
        let status = response.status().as_u16();
        let answer: Value = response.json().await.unwrap();
        match status {
            200 | 201 => {}
            409 => continue,
            _ => panic!("{path}: {status} {answer}"),
        }
        if status == 201 {
            shared.keys.lock().unwrap().push(text(&answer["id"]));
        }
        let object = if action == "key.created" { text(&answer["id"]) } else { chosen.unwrap() };
        shared.acknowledged.lock().unwrap().push((name, action, object));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_and_lists_match_the_acknowledged_requests() {
    let (_server, console) = server().await;
    let list = format!("/v1/apps/{}/keys", console.app("shared").await);
    let shared = Arc::new(Shared::default());
    let tasks =
        (0..TASKS).map(|task| tokio::spawn(operate(task, console.clone(), list.clone(), shared.clone())));
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }

    // The console's own key was created by the server.
    let mut entries = console.audit().await;
    entries.retain(|entry| entry["channel"] == "api" && text(&entry["action"]).starts_with("key."));
    let acknowledged = std::mem::take(&mut *shared.acknowledged.lock().unwrap());
    let by_request: HashMap<String, &Value> =
        entries.iter().map(|entry| (text(&entry["request_id"]), entry)).collect();
    assert_eq!(by_request.len(), entries.len(), "two entries for one request");
    let mut audited = 0;
    for (request, action, object) in &acknowledged {
        match by_request.get(request) {
            Some(entry) => {
                assert_eq!(
                    (text(&entry["action"]), text(&entry["object"])),
                    ((*action).to_owned(), object.clone())
                );
                audited += 1;
            }
            // Of several revocations of a key, only the first is audited.
            None => assert_eq!(*action, "key.revoked", "{request} is not audited"),
        }
    }
    assert_eq!(audited, entries.len(), "entries for requests that were not acknowledged");

    // Replaying the audit in order yields the state that the list shows.
    let mut expected = BTreeMap::<String, (Value, bool)>::new();
    for entry in &entries {
        let (object, details) = (text(&entry["object"]), &entry["details"]);
        match &*text(&entry["action"]) {
            "key.created" => {
                let twice = expected.insert(object, (entry["object_name"].clone(), false));
                assert_eq!(twice, None);
            }
            "key.rotated" => {
                let name = expected[&object].0.clone();
                assert!(expected.insert(text(&details["replaced_by"]), (name, false)).is_none());
            }
            "key.updated" => {
                let key = expected.get_mut(&object).unwrap();
                assert_eq!((&details["name"]["from"], key.1), (&key.0, false), "out of order: {entry}");
                key.0 = details["name"]["to"].clone();
            }
            "key.revoked" => {
                let key = expected.get_mut(&object).unwrap();
                assert!(!std::mem::replace(&mut key.1, true), "revoked twice: {object}");
            }
            other => panic!("{other}"),
        }
    }
    let shown: BTreeMap<String, (Value, bool)> = console
        .walk(&format!("{list}?"), 3)
        .await
        .into_iter()
        .map(|key| (text(&key["id"]), (key["name"].clone(), key["state"] == "revoked")))
        .collect();
    assert_eq!(shown, expected);
    for action in ["key.created", "key.rotated", "key.updated", "key.revoked"] {
        assert!(entries.iter().any(|entry| entry["action"] == action), "no {action} among {audited}");
    }
}
