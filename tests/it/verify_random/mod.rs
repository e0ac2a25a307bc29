//! Verifications through server, gateway and sockets with randomly behaving models: the stream ends once, its events
//! add up to its result, the JSON response is the same result, and the ledger matches the calls to the models and the
//! tokens they reported. `verify::tests::simulation` tests the same pipeline in paused time, and therefore with many
//! more runs.

mod models;
mod outcome;

use futures_util::StreamExt;
use mk::api::Service;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use self::models::{Behaviour, FakeModels, behaviour, config, sentence};
use self::outcome::{Outcome, tokens};
use crate::support::events::Events;
use crate::support::eventually;
use crate::support::provider::FakeProvider;
use crate::support::server::{Setup, TestServer};

/// Each case starts a server and runs eight verifications concurrently.
const CASES: u32 = 8;
/// The models of a case are a permutation of these, the first of which are the panel.
const MODELS: [&str; 7] =
    ["fake/one", "claude/two", "gemini/three", "fake/four", "claude/five", "gemini/six", "fake/silent"];

#[derive(Clone, Debug)]
struct Case {
    behaviours: Vec<Behaviour>,
    extractor: Vec<Behaviour>,
    claims: usize,
    roster: Vec<&'static str>,
    panel: usize,
    min_required: usize,
    total: usize,
    /// After how many bytes of the stream callers disconnect.
    leave: Vec<usize>,
}

fn case() -> impl Strategy<Value = Case> {
    let models =
        (prop::collection::vec(behaviour(5), 2..14), prop::collection::vec(behaviour(9), 1..4), 0_usize..4);
    let roster = (Just(MODELS.to_vec()).prop_shuffle(), 2_usize..=7, 2_usize..=5);
    let rest = (2_usize..=3, 2_usize..=5, prop::collection::vec(1_usize..4_000, 4));
    (models, roster, rest).prop_map(|(models, roster, (least, total, leave))| {
        let ((behaviours, extractor, claims), (mut roster, known, panel)) = (models, roster);
        roster.truncate(known);
        let panel = panel.min(known);
        let min_required = least.min(panel);
        let total = total.clamp(min_required, panel);
        Case { behaviours, extractor, claims, roster, panel, min_required, total, leave }
    })
}

impl Case {
    fn request(&self, server: &TestServer, key: &str, tag: &str) -> reqwest::RequestBuilder {
        let sentences: Vec<String> = (0..self.claims.max(1)).map(|n| sentence(n, tag)).collect();
        let fact = sentences.join(" ");
        let body = json!({"fact": fact, "minRequired": self.min_required, "totalModels": self.total});
        server.verify(key, &body)
    }

    /// Runs two streams and two JSON requests to their ends, and four callers that disconnect.
    async fn run(&self) {
        let models = FakeModels::new(self.behaviours.clone(), self.extractor.clone(), self.claims);
        let player = models.clone();
        let provider = FakeProvider::start(move |ask| player.respond(ask)).await;
        let server = Setup::new(config(&provider.base_url, &self.roster, self.panel)).start().await;
        let key = server.key(Service::Verify);
        let streams = async {
            let read = async |tag| {
                let request = self.request(&server, &key, tag).header("x-mk-progress", "models");
                Events::read(request.send().await.unwrap()).await
            };
            tokio::join!(read("run-001"), read("run-002"))
        };
        let documents = async {
            let read = async |tag| {
                let request = self.request(&server, &key, tag).header("accept", "application/json");
                let response = request.send().await.unwrap();
                (response.status().as_u16(), response.json::<serde_json::Value>().await.unwrap())
            };
            tokio::join!(read("run-003"), read("run-004"))
        };
        let leavers = futures_util::future::join_all(self.leave.iter().enumerate().map(|(nth, &bytes)| {
            let request = self.request(&server, &key, &format!("run-1{nth:02}"));
            async move {
                let mut body = request.send().await.unwrap().bytes_stream();
                let mut seen = Vec::new();
                while seen.len() < bytes
                    && let Some(chunk) = body.next().await
                {
                    seen.extend_from_slice(&chunk.unwrap());
                }
                String::from_utf8_lossy(&seen).into_owned()
            }
        }));
        let ((first, second), (third, fourth), left) = tokio::join!(streams, documents, leavers);
        eventually("no call is left", || provider.in_flight() == 0).await;

        let outcome = Outcome::of_stream(&first, self.min_required, models::tag_of);
        for other in [
            Outcome::of_stream(&second, self.min_required, models::tag_of),
            Outcome::of_document(third.0, &third.1, models::tag_of),
            Outcome::of_document(fourth.0, &fourth.1, models::tag_of),
        ] {
            assert_eq!(other.plain, outcome.plain, "every run has the same outcome, in either form");
        }
        for (stream, tag) in [(&first, "run-001"), (&second, "run-002")] {
            let id = stream.one("starting")["requestId"].as_str().unwrap();
            let rows = rows_of(&server, id);
            assert_eq!(rows.len(), models.done(tag).calls, "a row for each call");
            let reported: u64 = rows.iter().filter(|row| !row.is_estimated).map(tokens).sum();
            assert_eq!(reported, models.done(tag).reported, "{rows:?}");
            if let Some(total) = stream.frames.last().unwrap().1["tokenUsage"]["totalTokens"].as_u64() {
                assert_eq!(total, rows.iter().map(tokens).sum::<u64>());
            }
        }
        for (nth, seen) in left.iter().enumerate() {
            let Some((_, id)) = seen.split_once("\"requestId\":\"") else { continue };
            let Some((id, _)) = id.split_once('"') else { continue };
            // A call may be cancelled before its request is sent; then there are more rows than calls.
            let calls = models.done(&format!("run-1{nth:02}")).calls;
            eventually("all usage is recorded", || rows_of(&server, id).len() >= calls).await;
        }
    }
}

fn rows_of(server: &TestServer, id: &str) -> Vec<mk::storage::AttemptRow> {
    server.app.flush().unwrap();
    server.app.store.attempts_of(id).unwrap()
}

#[test]
fn whatever_models_do_stream_json_and_ledger_agree() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = Config { cases: CASES, max_shrink_iters: 8, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&case(), |case| {
        runtime.block_on(case.run());
        Ok(())
    });
    outcome.unwrap();
}
