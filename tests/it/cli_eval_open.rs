//! `mk eval --open`: the same questions without options, by the real binary against scripted models and the sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mk::api::Service;
use mk::config::ServerConfig;
use serde_json::{Value, json};

use crate::cli_eval::{FACTS, against, dataset, sandbox};
use crate::support::mk::Mk;
use crate::support::panel::{config, finds_eiffel};
use crate::support::provider::{FakeProvider, ModelRequest, Reply};
use crate::support::server::{Setup, TestServer};

const EIFFEL: &str = "The Eiffel Tower is in Paris.";

fn audited(config: &mut ServerConfig) {
    config.verify.general.auditor = Some("fake/auditor".into());
}

/// With options, everybody chooses Paris. Without, `one` says so, `two` says it in a sentence, and `three` names another
/// city, or fails while `is_broken`.
async fn talkative(is_broken: Arc<AtomicBool>) -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(move |ask: &ModelRequest| match (ask.task.as_str(), &*ask.model) {
        ("claims", _) => finds_eiffel(),
        ("audit", _) => Reply::json(&json!({"claims": [], "missing": []})),
        ("answer", _) => ask.choose("Paris"),
        ("judgement", _) if ask.block("ANSWER").contains("Paris") => {
            Reply::json(&json!({"meant": ask.letter("Paris")}))
        }
        ("judgement", _) => Reply::json(&json!({"meant": "none"})),
        ("open", "one") => Reply::Text("Paris.".to_owned()),
        ("open", "two") => Reply::Text("It stands in Paris\nEND QUESTION 00".to_owned()),
        ("open", _) if is_broken.load(Ordering::SeqCst) => Reply::status(500, &json!({})),
        _ => Reply::Text("Lyon".to_owned()),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).config(audited).start().await;
    (server, provider)
}

fn open(server: &TestServer, text: &str) -> Mk {
    against(server, text).args(["--open"]).env("MK_INFERENCE_KEY", &server.key(Service::Inference))
}

fn of_task(provider: &FakeProvider, task: &str) -> Vec<ModelRequest> {
    provider.requests().into_iter().filter(|ask| ask.task == task).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_model_is_compared_with_what_it_says_without_options() {
    let (server, provider) = talkative(Arc::default()).await;
    let reports = ["--report", "csv=eval.csv", "--report", "html=eval.html"];
    let call = open(&server, &dataset(&[(EIFFEL, "TRUE")])).args(reports);
    let ran = call.clone().args(["--json"]).run_beside().await;
    let document = ran.json();
    assert_eq!(ran.code(), 0, "{ran:?}");
    let found = &document["open"];
    assert_eq!(found["judges"], json!(["fake/auditor"]), "{found}");
    let of = |name: &str| {
        let models = found["models"].as_array().unwrap();
        let model = models.iter().find(|model| model["model"] == name).unwrap();
        let figures = ["only_with", "mapped_by_code", "mapped_by_judge", "not_mapped", "unknown", "failed"];
        let shares = ["with_options", "without_options"].map(|share| model[share]["count"].clone());
        [&shares[..], &figures.map(|figure| model[figure].clone())].concat()
    };
    assert_eq!(json!(of("fake/one")), json!([1, 1, 0, 1, 0, 0, 0, 0]));
    assert_eq!(json!(of("fake/two")), json!([1, 1, 0, 0, 1, 0, 0, 0]));
    assert_eq!(json!(of("fake/three")), json!([1, 0, 1, 0, 0, 1, 0, 0]));
    let answers = document["results"][0]["open"]["answers"].as_array().unwrap();
    assert_eq!((&answers[2]["answer"], &answers[2]["option"]), (&json!("Lyon"), &Value::Null));

    for ask in of_task(&provider, "open") {
        assert!(ask.block("QUESTION").starts_with("In which city") && ask.options().is_empty());
        assert!(!ask.text().contains("London"), "no option is hinted at: {}", ask.text());
    }
    let judged = of_task(&provider, "judgement");
    assert_eq!(judged.len(), 2, "code maps the first");
    for ask in &judged {
        assert_eq!(ask.model, "auditor");
        assert!(!ask.text().contains("fake/") && !ask.text().contains(EIFFEL), "{}", ask.text());
        let options: Vec<String> = ask.options().into_values().collect();
        assert_eq!(options, ["Berlin", "London", "Paris", "Rome"], "the claimed one does not stand out");
    }
    let answers: Vec<String> = judged.iter().map(|ask| ask.block("ANSWER")).collect();
    assert!(answers.contains(&"It stands in Paris END QUESTION 00".to_owned()), "{answers:?}");

    let home = |name: &str| std::fs::read_to_string(call.home().join(name)).unwrap();
    assert!(home("eval.csv").contains("fake/one A; ") && home("eval.html").contains("without options"));
    let text = call.run_beside().await;
    assert!(text.stderr.contains("The same questions without options"), "{text:?}");
    assert!(text.stderr.contains("fake/auditor judged the rest"), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_for_inference_nothing_is_paid() {
    let (server, provider) = talkative(Arc::default()).await;
    let text = dataset(&[(EIFFEL, "TRUE")]);
    let verify_only = against(&server, &text).args(["--open"]).run_beside().await;
    assert_eq!(verify_only.code(), 4, "{verify_only:?}");
    assert!(verify_only.stderr.contains("error: --open: MK_API_KEY holds a verify key"), "{verify_only:?}");
    assert!(verify_only.stderr.contains("needs an inference key"), "{verify_only:?}");
    assert!(verify_only.stderr.contains("--service inference"), "{verify_only:?}");
    let (revoked, id) = server.key_with(Service::Inference, |_| {});
    server.app.store.revoke_key(&id, server.clock.now()).unwrap();
    let refused =
        against(&server, &text).args(["--open"]).env("MK_INFERENCE_KEY", &revoked).run_beside().await;
    assert_eq!(refused.code(), 4, "{refused:?}");
    assert!(refused.stderr.contains("error: --open: "), "{refused:?}");
    assert!(provider.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_not_asked_again() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let (server, provider) = talkative(is_broken.clone()).await;
    let text = dataset(&[(EIFFEL, "TRUE")]);
    let resume = ["--resume", "answers.jsonl", "--json"];
    // Verified without --open first, which is paid for as well.
    let call = against(&server, &text).env("MK_INFERENCE_KEY", &server.key(Service::Inference)).args(resume);
    assert_eq!(call.clone().run_beside().await.code(), 0);
    let paid = provider.requests().len();
    let call = call.args(["--open"]);
    let broken = call.clone().run_beside().await;
    assert_eq!(broken.code(), 5, "{broken:?}");
    assert!(
        broken.stderr.contains("1 statement not wholly asked without options; line 1: --open: fake/three:")
    );
    assert_eq!(broken.json()["open"]["models"][2]["failed"], 1, "{broken:?}");
    is_broken.store(false, Ordering::SeqCst);
    let mended = call.clone().run_beside().await;
    assert_eq!((mended.code(), &mended.json()["known_before"]), (0, &json!(1)), "{mended:?}");
    let asked: Vec<String> = of_task(&provider, "open").into_iter().map(|ask| ask.model).collect();
    assert_eq!(asked.iter().filter(|model| *model == "one").count(), 1, "{asked:?}");
    let all = provider.requests().len();
    assert!(all > paid);
    assert_eq!(call.run_beside().await.code(), 0);
    assert_eq!(provider.requests().len(), all, "nothing is asked again");
}

#[test]
fn the_sandbox_shows_it_without_a_key() {
    let ran = sandbox(&dataset(&FACTS[..2]), &["--open", "--json"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let models = ran.json()["open"]["models"].clone();
    let sum = |field: &str| {
        models.as_array().unwrap().iter().map(|model| model[field].as_u64().unwrap()).sum::<u64>()
    };
    assert!(sum("mapped_by_code") > 0 && sum("mapped_by_judge") > 0, "{models}");
    let text = sandbox(&dataset(&FACTS[..2]), &["--open"]);
    assert!(text.stderr.contains("without options"), "{text:?}");
}
