//! What goes on at a server while it lives: its console is written to, commands write beside it, and callers verify
//! and chat. Each part goes on until the server is gone.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::lane::{Keys, MAY_BE_LOST};
use super::told::Told;
use crate::support::chat::{hello, hello_stream};
use crate::support::mk::{Mk, operator};
use crate::support::serve::data_dir;

/// What the model `m` costs, so that money is summed as well; and as many wrong keys a minute as are asked about.
pub(super) fn configure(call: &Mk) {
    let path = call.home().join("server.toml");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(
        b"[providers.fake.models.m]\ninput_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n\
          [limits]\nfailed_auth_per_minute = 0\n",
    )
    .unwrap();
}

/// A verification's request.
pub(super) async fn verify(http: &Client, base: &str, key: &str, body: &Value) -> reqwest::Result<Response> {
    http.post(format!("{base}/verify/v1/stream")).bearer_auth(key).json(body).send().await
}

async fn chat(http: &Client, base: &str, key: &str, body: &Value) -> reqwest::Result<Response> {
    http.post(format!("{base}/inference/v1/chat/completions")).bearer_auth(key).json(body).send().await
}

/// A write of the console that was answered in full; `None` once the server is gone.
async fn write(base: &str, keys: &Keys, method: Method, path: &str, body: &Value) -> Option<Value> {
    let request = keys.http.request(method, format!("{base}{path}")).bearer_auth(&keys.console).json(body);
    let response = request.send().await.ok()?;
    let status = response.status();
    let text = response.text().await.ok()?;
    assert!(status.is_success(), "{path}: {status} {text}");
    Some(serde_json::from_str(&text).unwrap())
}

/// Makes apps and keys and revokes keys; notes what was told to be done.
pub(super) async fn administrate(base: &str, keys: &Keys, told: &mut Told) {
    loop {
        let name = told.next_name();
        let Some(app) = write(base, keys, Method::POST, "/v1/apps", &json!({"name": name})).await else {
            return;
        };
        told.apps.push((app["id"].as_str().unwrap().to_owned(), name));
        let path = format!("/v1/apps/{}/keys", keys.app);
        for _ in 0..2 {
            let Some(key) = write(base, keys, Method::POST, &path, &json!({"service": "verify"})).await
            else {
                return;
            };
            told.made(key["id"].as_str().unwrap(), key["key"].as_str().unwrap());
        }
        let Some(id) = told.begin_to_revoke() else { continue };
        let revoked = write(base, keys, Method::DELETE, &format!("{path}/{id}"), &Value::Null).await;
        if revoked.is_none() {
            return;
        }
        told.revoked(&id);
    }
}

/// Half-done work: a command that is killed while it writes.
pub(super) async fn kill_writer(server: &Mk, life: Duration) {
    let call = operator(&data_dir(server.home()), &["keys", "create", "--service", "verify"]);
    let mut writer = call.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    tokio::time::sleep(life).await;
    // One that is done already has nothing to be killed.
    let _ = writer.kill();
    writer.wait().unwrap();
}

/// When requests were sent and answered.
#[derive(Default)]
pub(super) struct Knocks {
    pub(super) sent: usize,
    answered: Vec<Instant>,
}

impl Knocks {
    /// How many were answered so long before any crash that they must be on the disk.
    pub(super) fn safe(&self, crashes: &[Instant]) -> usize {
        let is_safe =
            |at: &&Instant| !crashes.iter().any(|crash| **at <= *crash && **at + MAY_BE_LOST > *crash);
        self.answered.iter().filter(is_safe).count()
    }
}

/// All callers of a lane, over all its lives.
#[derive(Default)]
pub(super) struct Callers {
    pub(super) crashes: Vec<Instant>,
    pub(super) plenty: Knocks,
    verified: Knocks,
    completed: Knocks,
    streamed: Knocks,
    scarce: Knocks,
}

impl Callers {
    /// Asks until the server is gone.
    pub(super) async fn go_on(&mut self, base: &str, keys: &Keys) {
        let http = &keys.http;
        let Self { plenty, verified, completed, streamed, scarce, .. } = self;
        let (whole, stream) = (hello(), hello_stream());
        tokio::join!(
            Self::verify_on(plenty, verified, http, base, &keys.verify),
            Self::chat_on(completed, http, base, &keys.chat, &whole, "\"finish_reason\":\"stop\""),
            Self::chat_on(streamed, http, base, &keys.chat, &stream, "data: [DONE]\n\n"),
            Self::knock_on(scarce, http, base, &keys.scarce),
        );
    }

    /// Every other request is a verification, the others are wrong, and count as well.
    async fn verify_on(all: &mut Knocks, whole: &mut Knocks, http: &Client, base: &str, key: &str) {
        for number in 0.. {
            let is_whole = number % 2 == 0;
            let body = if is_whole { json!({"fact": "x"}) } else { json!({}) };
            all.sent += 1;
            whole.sent += usize::from(is_whole);
            let Ok(response) = verify(http, base, key, &body).await else { return };
            all.answered.push(Instant::now());
            let Ok(text) = response.text().await else { return };
            if is_whole && text.contains("event: completed\n") {
                whole.answered.push(Instant::now());
            }
        }
    }

    async fn chat_on(knocks: &mut Knocks, http: &Client, base: &str, key: &str, body: &Value, end: &str) {
        loop {
            knocks.sent += 1;
            let Ok(response) = chat(http, base, key, body).await else { return };
            assert_eq!(response.status(), 200);
            let Ok(text) = response.text().await else { return };
            if text.contains(end) {
                knocks.answered.push(Instant::now());
            }
        }
    }

    /// Only what is admitted is noted.
    async fn knock_on(knocks: &mut Knocks, http: &Client, base: &str, key: &str) {
        loop {
            let Ok(response) = verify(http, base, key, &json!({})).await else { return };
            match response.status().as_u16() {
                400 => knocks.answered.push(Instant::now()),
                other => assert_eq!(other, 429),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// No more was admitted than a day has, but for what was lost with the last second of each life.
    pub(super) fn scarce_was_kept_to(&self, per_day: usize) {
        let Knocks { answered, .. } = &self.scarce;
        let kept = self.scarce.safe(&self.crashes);
        assert!(
            kept <= per_day,
            "{kept} of {} admitted requests were safe, and {per_day} allowed",
            answered.len()
        );
    }

    /// The books of a server that has ended in order hold all that was used, but for what may be lost, and no more.
    pub(super) fn must_be_booked(&self, data: &Path) {
        let ledger = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
        let count = |of: &str| -> usize {
            let query = format!("SELECT count(*) FROM (SELECT 1 FROM {of})");
            let found: i64 = ledger.query_row(&query, [], |row| row.get(0)).unwrap();
            usize::try_from(found).unwrap()
        };
        let whole = count(
            "attempts WHERE service = 'verify' AND outcome = 'ok' GROUP BY request_id HAVING count(*) = 4",
        );
        let (least, most) = (self.verified.safe(&self.crashes), self.verified.sent);
        assert!((least..=most).contains(&whole), "{whole} verifications are booked of {least} to {most}");
        let chats = count("attempts WHERE service = 'inference' AND outcome = 'ok'");
        let least = self.completed.safe(&self.crashes) + self.streamed.safe(&self.crashes);
        let most = self.completed.sent + self.streamed.sent;
        assert!((least..=most).contains(&chats), "{chats} completions are booked of {least} to {most}");

        let too_often =
            "attempts GROUP BY request_id HAVING count(*) > CASE service WHEN 'verify' THEN 4 ELSE 1 END";
        assert_eq!(count(too_often), 0, "booked more than was asked");
        let sum = |query: &str| -> i64 { ledger.query_row(query, [], |row| row.get(0)).unwrap() };
        let of_days = sum("SELECT coalesce(sum(attempts), 0) FROM usage_days");
        assert_eq!(usize::try_from(of_days).unwrap(), count("attempts"), "sums and attempts are apart");
        let spent = sum("SELECT coalesce(sum(nano_usd), 0) FROM spend WHERE subject LIKE 'key_%'");
        let costs = sum("SELECT coalesce(sum(cost_nano_usd), 0) FROM attempts");
        assert_eq!(spent, costs, "what was spent and what it cost are apart");
    }
}
