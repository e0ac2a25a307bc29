//! Every rule by which a claim is assessed, over real sockets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::panel::{config, eiffel, finds_eiffel, panel_by, with_panel};
use crate::support::provider::{FakeProvider, ModelRequest, Reply, claim, claims};
use crate::support::server::{Setup, TestServer};

async fn judge(server: &TestServer, body: Value) -> Value {
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &body).send().await.unwrap()).await;
    let results = events.results();
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].clone()
}

/// The result for the usual claim when the three models choose these options.
async fn vote(choices: [&'static str; 3]) -> Value {
    let (server, _provider) = with_panel(move |model, ask| {
        let seat = ["one", "two", "three"].iter().position(|name| *name == model).unwrap();
        ask.choose(choices[seat])
    })
    .await;
    judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await
}

fn outcome(result: &Value) -> (&str, &str, &str) {
    let text = |name: &str| result[name].as_str().unwrap();
    (text("assessment"), text("consensus_answer"), text("reason_code"))
}

#[tokio::test]
async fn a_majority_for_the_claimed_answer_is_true() {
    assert_eq!(outcome(&vote(["Paris", "Paris", "Rome"]).await), ("TRUE", "A", "consensus"));
}

#[tokio::test]
async fn a_majority_for_another_answer_is_false() {
    assert_eq!(outcome(&vote(["Rome", "Paris", "Rome"]).await), ("FALSE", "C", "consensus"));
}

#[tokio::test]
async fn none_of_these_counts_as_a_vote() {
    let none = "None of these";
    assert_eq!(outcome(&vote([none, none, "Paris"]).await), ("FALSE", "E", "consensus"));
}

#[tokio::test]
async fn three_different_answers_are_a_split() {
    assert_eq!(outcome(&vote(["Paris", "Rome", "London"]).await), ("NO CONSENSUS", "", "split"));
}

#[tokio::test]
async fn cannot_be_determined_is_an_answer_but_not_a_vote() {
    let unsure = "Cannot be determined";
    let result = vote([unsure, unsure, "Paris"]).await;
    assert_eq!(outcome(&result), ("NO CONSENSUS", "", "abstained"));
    assert_eq!(result["model_answers"][0], json!({"model": "fake/one", "answer": "F"}));
}

#[tokio::test]
async fn two_answers_with_equally_many_votes_are_a_tie() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one" | "two") => ask.choose("Paris"),
        _ => ask.choose("Rome"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.panel.push("fake/four".to_owned()))
        .start()
        .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris.", "totalModels": 4})).await;
    assert_eq!(outcome(&result), ("NO CONSENSUS", "", "tie"));
}

#[tokio::test]
async fn min_required_three_needs_all_three_models_to_agree() {
    let (server, _provider) =
        with_panel(|model, ask| ask.choose(if model == "one" { "Rome" } else { "Paris" })).await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris.", "minRequired": 3})).await;
    assert_eq!(outcome(&result), ("NO CONSENSUS", "", "split"));
}

#[tokio::test]
async fn the_panel_never_sees_the_claim_nor_which_option_it_asserts() {
    let secret = "The Eiffel Tower, says the claim nobody may see, is in Paris.";
    let provider = FakeProvider::start(move |ask| match ask.task.as_str() {
        "claims" => {
            claims(&[claim(secret, "In which city is the Eiffel Tower?", "Paris", &["London", "Rome"])])
        }
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    judge(&server, json!({"fact": format!("Not for you\n\n{secret}")})).await;
    let panel: Vec<ModelRequest> =
        provider.requests().into_iter().filter(|ask| ask.task == "answer").collect();
    assert_eq!(panel.len(), 3);
    for ask in panel {
        let text = ask.text();
        assert!(!text.contains("claim nobody may see"), "{text}");
        assert!(!text.contains("Not for you"), "{text}");
        assert_eq!(ask.body["messages"].as_array().unwrap().len(), 2, "a fresh conversation");
        assert_eq!(ask.body["temperature"], 0.0);
    }
}

#[tokio::test]
async fn models_that_always_pick_the_same_letter_reach_no_consensus() {
    // Every model always answers "A"; as options are shuffled for each model, these answers must differ.
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let section = ask.block("SECTION");
            let claims: Vec<Value> = section
                .lines()
                .map(|line| {
                    let question = format!("Which colour has {}?", line.split(" is").next().unwrap());
                    claim(line, &question, "blue", &["red", "green", "white"])
                })
                .collect();
            self::claims(&claims)
        }
        _ => Reply::json(&json!({"answer": "A"})),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let houses: Vec<String> =
        ('A'..='T').map(|name| format!("House {name} at the end of the street is painted blue.")).collect();
    let events =
        Events::read(server.verify(&key, &json!({"fact": houses.join("\n")})).send().await.unwrap()).await;
    let unanimous = events
        .results()
        .iter()
        .filter(|result| {
            let answers = result["model_answers"].as_array().unwrap();
            answers.iter().all(|answer| answer["answer"] == answers[0]["answer"])
        })
        .count();
    assert!(
        unanimous < 10,
        "{unanimous} of 20 claims were unanimous although each model only picks a letter"
    );
}

#[tokio::test]
async fn a_malformed_answer_is_repaired_once() {
    let (server, provider) = with_panel(|model, ask| {
        let repaired = ask.body["messages"].as_array().unwrap().len() > 2;
        if model == "two" && !repaired {
            Reply::Text("I think it is Paris.".into())
        } else {
            ask.choose("Paris")
        }
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 3);
    assert_eq!(provider.requests_for("two").len(), 2);
}

#[tokio::test]
async fn a_model_whose_repaired_answer_is_malformed_counts_as_failed() {
    let (server, provider) = with_panel(|model, ask| match model {
        "two" => Reply::Text("{\"answer\": \"Z\"}".into()),
        _ => ask.choose("Paris"),
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/two", "code": "malformed"}]));
    assert_eq!(provider.requests_for("two").len(), 2, "one repair and no more");
}

#[tokio::test]
async fn a_model_that_fails_is_replaced_by_the_next_standby() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one" | "four") => Reply::status(500, &json!({})),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.standby = vec!["fake/four".into(), "fake/five".into()])
        .start()
        .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    let answered: Vec<&Value> =
        result["model_answers"].as_array().unwrap().iter().map(|answer| &answer["model"]).collect();
    assert_eq!(answered, ["fake/two", "fake/three", "fake/five"]);
    let failed: Vec<&Value> =
        result["model_errors"].as_array().unwrap().iter().map(|error| &error["model"]).collect();
    assert_eq!(failed, ["fake/one", "fake/four"]);
}

#[tokio::test]
async fn a_model_that_abstains_is_not_replaced() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one") => ask.choose("Cannot be determined"),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.standby = vec!["fake/four".into()])
        .start()
        .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert!(provider.requests_for("four").is_empty());
}

#[tokio::test]
async fn a_refusal_is_not_a_vote() {
    let refusal = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": null, "refusal": "I cannot help with that."}}]});
    let (server, _provider) = with_panel(move |model, ask| match model {
        "one" => Reply::status(200, &refusal),
        _ => ask.choose("Paris"),
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/one", "code": "refused"}]));
}

#[tokio::test]
async fn too_few_answers_give_no_consensus() {
    let (server, _provider) = with_panel(|model, ask| match model {
        "one" => ask.choose("Paris"),
        _ => Reply::status(500, &json!({})),
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("NO CONSENSUS", "", "insufficient_answers"));
}

#[tokio::test]
async fn without_any_answer_the_stream_ends_with_an_error() {
    let (server, _provider) = with_panel(|_, _| Reply::status(503, &json!({}))).await;
    let key = server.key(Service::Verify);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    assert_eq!(events.end("error")["code"], "provider_overloaded");
    assert_eq!(events.end("error")["error"], "Service Unavailable");
}

#[tokio::test]
async fn a_failing_extractor_is_replaced_by_its_fallback() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", "extractor") => Reply::status(500, &json!({})),
        ("claims", _) => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.extractor_fallbacks = vec!["fake/two".into()])
        .start()
        .await;
    assert_eq!(outcome(&judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await).0, "TRUE");
}

#[tokio::test]
async fn claims_still_open_at_the_deadline_have_no_consensus() {
    let (server, _provider) = {
        let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
            ("claims", _) => claims(&[
                eiffel(),
                claim("2 + 2 = 4.", "What is 2 + 2?", "4", &["1", "2", "3", "5", "6", "7"]),
            ]),
            _ if ask.block("QUESTION").contains("2 + 2") => Reply::Hang,
            _ => ask.choose("Paris"),
        })
        .await;
        let setup = Setup::new(config(&provider.base_url))
            .config(|config| config.verify.general.deadline = Duration::from_secs(2));
        (setup.start().await, provider)
    };
    let key = server.key(Service::Verify);
    let events = Events::read(
        server
            .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris. 2 + 2 = 4."}))
            .send()
            .await
            .unwrap(),
    )
    .await;
    let results = events.results();
    assert_eq!(outcome(&results[0]), ("TRUE", "A", "consensus"));
    assert_eq!(outcome(&results[1]), ("NO CONSENSUS", "", "insufficient_answers"));
    assert_eq!(results[1]["model_errors"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn of_two_answers_within_prose_none_is_a_vote_but_one_may_be_given_again() {
    let prose = |ask: &ModelRequest| {
        let [paris, rome] = ["Paris", "Rome"].map(|city| json!({"answer": ask.letter(city)}));
        Reply::Text(format!("It is either {paris} or {rome}."))
    };
    let (server, provider) = with_panel(move |model, ask| match model {
        "one" => prose(ask),
        _ => ask.choose("Rome"),
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result).0, "FALSE");
    assert_eq!(result["model_errors"], json!([{"model": "fake/one", "code": "malformed"}]));
    assert_eq!(provider.requests_for("one").len(), 2, "one repair and no more");
}

#[tokio::test]
async fn each_model_call_has_its_own_timeout() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one") => Reply::Hang,
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.model_timeout = Duration::from_secs(2))
        .start()
        .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/one", "code": "timeout"}]));
}

#[tokio::test]
async fn token_usage_includes_failed_attempts() {
    let (server, _provider) = with_panel(|model, ask| {
        let repaired = ask.body["messages"].as_array().unwrap().len() > 2;
        if model == "one" && !repaired { Reply::Text("nonsense".into()) } else { ask.choose("Paris") }
    })
    .await;
    let key = server.key(Service::Verify);
    let events = Events::read(
        server.verify(&key, &json!({"fact": "The Eiffel Tower is in Paris."})).send().await.unwrap(),
    )
    .await;
    let usage = &events.end("completed")["tokenUsage"];
    assert_eq!(usage["totalTokens"], 550, "five calls of 110 tokens, the malformed one included");
    assert_eq!(
        usage["extractionTokens"].as_u64().unwrap() + usage["verificationTokens"].as_u64().unwrap(),
        550
    );
}

#[tokio::test]
async fn duplicates_and_claims_beyond_the_limit_are_skipped() {
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => claims(&[
            eiffel(),
            eiffel(),
            claim("2 + 2 = 4.", "What is 2 + 2?", "4", &["1", "2", "3", "5", "6", "7"]),
            claim("3 + 3 = 6.", "What is 3 + 3?", "6", &["3", "4", "5", "7", "8", "9"]),
        ]),
        _ => Reply::json(&json!({"answer": ask.options().keys().next().unwrap()})),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.max_claims = 2)
        .start()
        .await;
    let key = server.key(Service::Verify);
    let events = Events::read(
        server
            .verify(&key, &json!({"fact": "The Eiffel Tower is in Paris. 2 + 2 = 4. 3 + 3 = 6."}))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(events.one("claims_extracted")["count"], 2);
    let reasons: Vec<&Value> = events.end("completed")["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| &skipped["reason"])
        .collect();
    assert_eq!(reasons, ["duplicate", "over_limit"]);
}

#[tokio::test]
async fn explanation_context_and_date_reach_the_models() {
    let (server, provider) = with_panel(|_, ask| {
        let answer = ask.letter("Paris");
        Reply::json(&json!({"answer": answer, "reason": "It says so.\u{1b}[31m"}))
    })
    .await;
    let body = json!({"fact": "The Eiffel Tower is in Paris.", "explain": true, "context": "The tower stands in Paris.", "asOf": "2020-02-29"});
    let result = judge(&server, body).await;
    let reason = result["model_answers"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("It says so.") && !reason.contains('\u{1b}'), "{reason:?}");
    let ask = provider.requests_for("one").remove(0);
    assert_eq!(ask.block("CONTEXT"), "The tower stands in Paris.");
    assert!(ask.text().contains("2020-02-29"));
}

#[tokio::test]
async fn legal_statements_use_their_own_prompts_and_panel() {
    let provider = panel_by(|_, ask| ask.choose("Paris")).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.legal.panel = vec!["fake/law-a".into(), "fake/law-b".into()])
        .start()
        .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris.", "domain": "legal"})).await;
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 2);
    assert!(provider.requests_for("extractor")[0].text().to_lowercase().contains("jurisdiction"));
}

#[tokio::test]
async fn answers_with_one_meaning_are_votes_however_they_are_written() {
    let (server, provider) = with_panel(|model, ask| {
        let letter = ask.letter("Paris");
        Reply::Text(match model {
            "one" => format!("**{letter}**"),
            "two" => format!("My answer: {}<|im_end|>", json!({"answer": letter.to_lowercase()})),
            _ => format!("{{\"reason\": \"line\nbreak\", \"answer\": \"{letter}) Paris\"}}"),
        })
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 3);
    assert_eq!(provider.requests().len(), 4, "none is asked twice");
}

#[tokio::test]
async fn at_the_deadline_a_claim_is_decided_that_the_model_outstanding_can_no_longer_change() {
    let provider =
        panel_by(|model, ask| if model == "three" { Reply::Hang } else { ask.choose("Paris") }).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.deadline = Duration::from_secs(2))
        .start()
        .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/three", "code": "timeout"}]));
}

#[tokio::test]
async fn what_a_provider_rejects_of_its_own_model_is_repaired() {
    let rejection = json!({"error": {"message": "Failed to validate JSON. Please adjust your prompt.",
        "type": "invalid_request_error", "code": "json_validate_failed", "failed_generation": "{"}});
    let provider = FakeProvider::start(move |ask| {
        let repaired = ask.body["messages"].as_array().unwrap().len() > 2;
        match (ask.task.as_str(), ask.model.as_str()) {
            ("claims", _) | (_, "one") if !repaired => Reply::status(400, &rejection),
            ("claims", _) => finds_eiffel(),
            (_, "two") => Reply::status(400, &rejection),
            _ => ask.choose("Paris"),
        }
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/two", "code": "malformed"}]));
}

#[tokio::test]
async fn a_vote_waits_for_the_rate_limit_of_its_model() {
    let asked = AtomicUsize::new(0);
    let (server, provider) = with_panel(move |model, ask| match model {
        "one" if asked.fetch_add(1, Ordering::SeqCst) == 0 => {
            Reply::Raw(429, vec![("retry-after", "1".to_owned())], "{}".to_owned())
        }
        _ => ask.choose("Paris"),
    })
    .await;
    let result = judge(&server, json!({"fact": "The Eiffel Tower is in Paris."})).await;
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 3, "{result}");
    let calls = provider.requests_for("one");
    assert_eq!(calls.len(), 2);
    assert!(calls[1].at - calls[0].at >= Duration::from_secs(1));
}
