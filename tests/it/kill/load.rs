//! The load on a server while it runs: console requests that write, commands that write to the same database, and
//! callers of verifications and completions. Each part continues until the server is gone.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::acknowledged::Acknowledged;
use super::disk::Disk;
use super::lane::Keys;
use crate::support::chat::{hello, hello_stream};
use crate::support::mk::{Mk, operator};
use crate::support::serve::data_dir;

/// Sets prices for the model `m`, so that costs are summed as well, and disables the limit of failed authentications.
pub(super) fn configure(call: &Mk) {
    let path = call.home().join("server.toml");
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(
        b"[providers.fake.models.m]\ninput_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n\
          [limits]\nfailed_auth_per_minute = 0\n",
    )
    .unwrap();
}

/// Requests a verification.
pub(super) async fn verify(http: &Client, base: &str, key: &str, body: &Value) -> reqwest::Result<Response> {
    http.post(format!("{base}/verify/v1/stream")).bearer_auth(key).json(body).send().await
}

async fn chat(http: &Client, base: &str, key: &str, body: &Value) -> reqwest::Result<Response> {
    http.post(format!("{base}/inference/v1/chat/completions")).bearer_auth(key).json(body).send().await
}

/// Sends a writing console request and reads its response; `None` once the server is gone.
async fn write(base: &str, keys: &Keys, method: Method, path: &str, body: &Value) -> Option<Value> {
    let request = keys.http.request(method, format!("{base}{path}")).bearer_auth(&keys.console).json(body);
    let response = request.send().await.ok()?;
    let status = response.status();
    let text = response.text().await.ok()?;
    assert!(status.is_success(), "{path}: {status} {text}");
    Some(serde_json::from_str(&text).unwrap())
}

/// Creates apps and keys and revokes keys; records which of these writes the server acknowledged.
pub(super) async fn administrate(base: &str, keys: &Keys, acknowledged: &mut Acknowledged) {
    loop {
        let name = acknowledged.next_name();
        let Some(app) = write(base, keys, Method::POST, "/v1/apps", &json!({"name": name})).await else {
            return;
        };
        acknowledged.apps.push((app["id"].as_str().unwrap().to_owned(), name));
        let path = format!("/v1/apps/{}/keys", keys.app);
        for _ in 0..2 {
            let Some(key) = write(base, keys, Method::POST, &path, &json!({"service": "verify"})).await
            else {
                return;
            };
            acknowledged.created(key["id"].as_str().unwrap(), key["key"].as_str().unwrap());
        }
        let Some(id) = acknowledged.begin_to_revoke() else { continue };
        let revoked = write(base, keys, Method::DELETE, &format!("{path}/{id}"), &Value::Null).await;
        if revoked.is_none() {
            return;
        }
        acknowledged.revoked(&id);
    }
}

/// Starts a command that creates a key, and kills it while it writes.
pub(super) async fn kill_writer(server: &Mk, life: Duration) {
    let call = operator(&data_dir(server.home()), &["keys", "create", "--service", "verify"]);
    let mut writer = call.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    tokio::time::sleep(life).await;
    // Fails if the command has already finished.
    let _ = writer.kill();
    writer.wait().unwrap();
}

/// How many requests were sent, and when responses arrived.
#[derive(Default)]
pub(super) struct Requests {
    pub(super) sent: usize,
    answered: Vec<Instant>,
}

/// The requests of a lane, over all its servers.
pub(super) struct Callers {
    disk: Disk,
    pub(super) crashes: Vec<Instant>,
    pub(super) plenty: Requests,
    verified: Requests,
    completed: Requests,
    streamed: Requests,
    scarce: Requests,
}

impl Callers {
    pub(super) fn new(disk: Disk) -> Self {
        Self {
            disk,
            crashes: Vec::new(),
            plenty: Requests::default(),
            verified: Requests::default(),
            completed: Requests::default(),
            streamed: Requests::default(),
            scarce: Requests::default(),
        }
    }

    /// How many of these were answered long enough before any crash that they must be on disk.
    pub(super) fn safe(&self, requests: &Requests) -> usize {
        let is_safe = |at: &&Instant| {
            self.crashes.iter().all(|crash| **at > *crash || self.disk.must_have(**at, *crash))
        };
        requests.answered.iter().filter(is_safe).count()
    }

    /// Sends requests until the server is gone.
    pub(super) async fn send_requests(&mut self, base: &str, keys: &Keys) {
        let http = &keys.http;
        let Self { plenty, verified, completed, streamed, scarce, .. } = self;
        let (whole, stream) = (hello(), hello_stream());
        tokio::join!(
            Self::verify_until_gone(plenty, verified, http, base, &keys.verify),
            Self::chat_until_gone(completed, http, base, &keys.chat, &whole, "\"finish_reason\":\"stop\""),
            Self::chat_until_gone(streamed, http, base, &keys.chat, &stream, "data: [DONE]\n\n"),
            Self::invalid_until_gone(scarce, http, base, &keys.scarce),
        );
    }

    /// Every other request is a valid verification; the others are invalid, but count as well.
    async fn verify_until_gone(
        all: &mut Requests,
        whole: &mut Requests,
        http: &Client,
        base: &str,
        key: &str,
    ) {
        for number in 0.. {
            let is_whole = number % 2 == 0;
            let body = if is_whole { json!({"fact": "The Eiffel Tower is in Paris."}) } else { json!({}) };
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

    async fn chat_until_gone(
        requests: &mut Requests,
        http: &Client,
        base: &str,
        key: &str,
        body: &Value,
        end: &str,
    ) {
        loop {
            requests.sent += 1;
            let Ok(response) = chat(http, base, key, body).await else { return };
            assert_eq!(response.status(), 200);
            let Ok(text) = response.text().await else { return };
            if text.contains(end) {
                requests.answered.push(Instant::now());
            }
        }
    }

    /// Sends invalid requests, which count as well; records only those that were admitted.
    async fn invalid_until_gone(requests: &mut Requests, http: &Client, base: &str, key: &str) {
        loop {
            let Ok(response) = verify(http, base, key, &json!({})).await else { return };
            match response.status().as_u16() {
                400 => requests.answered.push(Instant::now()),
                other => assert_eq!(other, 429),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asserts that no more requests were admitted than the daily limit, except those whose count a crash may have
    /// lost.
    pub(super) fn assert_scarce_limit(&self, per_day: usize) {
        let Requests { answered, .. } = &self.scarce;
        let kept = self.safe(&self.scarce);
        assert!(
            kept <= per_day,
            "{kept} of {} admitted requests were safely counted, but the limit is {per_day}",
            answered.len()
        );
    }

    /// Asserts that the ledger holds all usage, except what a crash may have lost, and no more. To be called after a
    /// regular shutdown.
    pub(super) fn assert_recorded(&self, data: &Path) {
        let ledger = rusqlite::Connection::open(data.join("ledger.db")).unwrap();
        let count = |of: &str| -> usize {
            let query = format!("SELECT count(*) FROM (SELECT 1 FROM {of})");
            let found: i64 = ledger.query_row(&query, [], |row| row.get(0)).unwrap();
            usize::try_from(found).unwrap()
        };
        let whole = count(
            "attempts WHERE service = 'verify' AND outcome = 'ok' GROUP BY request_id HAVING count(*) = 4",
        );
        let (least, most) = (self.safe(&self.verified), self.verified.sent);
        assert!(
            (least..=most).contains(&whole),
            "{whole} verifications are recorded, expected {least} to {most}"
        );
        let chats = count("attempts WHERE service = 'inference' AND outcome = 'ok'");
        let least = self.safe(&self.completed) + self.safe(&self.streamed);
        let most = self.completed.sent + self.streamed.sent;
        assert!(
            (least..=most).contains(&chats),
            "{chats} completions are recorded, expected {least} to {most}"
        );

        let duplicated =
            "attempts GROUP BY request_id HAVING count(*) > CASE service WHEN 'verify' THEN 4 ELSE 1 END";
        assert_eq!(count(duplicated), 0, "more attempts are recorded than were made");
        let sum = |query: &str| -> i64 { ledger.query_row(query, [], |row| row.get(0)).unwrap() };
        let of_days = sum("SELECT coalesce(sum(attempts), 0) FROM usage_days");
        assert_eq!(
            usize::try_from(of_days).unwrap(),
            count("attempts"),
            "the daily sums differ from the attempts"
        );
        let spent = sum("SELECT coalesce(sum(nano_usd), 0) FROM spend WHERE subject LIKE 'key_%'");
        let costs = sum("SELECT coalesce(sum(cost_nano_usd), 0) FROM attempts");
        assert_eq!(spent, costs, "the recorded spending differs from the cost of the attempts");
    }
}
