//! Every row of the rules by which a claim is judged, over real sockets.

use std::time::Duration;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::panel::{config, eiffel, finds_eiffel, panel_by, with_panel};
use crate::support::provider::{Ask, FakeProvider, Turn, claim, claims};
use crate::support::server::{Setup, TestServer};

async fn judge(server: &TestServer, body: Value) -> Value {
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &body).send().await.unwrap()).await;
    let results = events.results();
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].clone()
}

/// What the panel makes of the usual claim when the three models choose these options.
async fn vote(choices: [&'static str; 3]) -> Value {
    let (server, _provider) = with_panel(move |model, ask| {
        let seat = ["one", "two", "three"].iter().position(|name| *name == model).unwrap();
        ask.choose(choices[seat])
    })
    .await;
    judge(&server, json!({"fact": "x"})).await
}

fn outcome(result: &Value) -> (&str, &str, &str) {
    let text = |name: &str| result[name].as_str().unwrap();
    (text("assessment"), text("consensus_answer"), text("reason_code"))
}

#[tokio::test]
async fn the_claimed_answer_on_top_is_true() {
    assert_eq!(outcome(&vote(["Paris", "Paris", "Rome"]).await), ("TRUE", "A", "consensus"));
}

#[tokio::test]
async fn another_answer_on_top_is_false() {
    assert_eq!(outcome(&vote(["Rome", "Paris", "Rome"]).await), ("FALSE", "C", "consensus"));
}

#[tokio::test]
async fn none_of_these_is_a_vote() {
    let none = "None of these";
    assert_eq!(outcome(&vote([none, none, "Paris"]).await), ("FALSE", "E", "consensus"));
}

#[tokio::test]
async fn three_answers_of_three_models_are_a_split() {
    assert_eq!(outcome(&vote(["Paris", "Rome", "London"]).await), ("NO CONSENSUS", "", "split"));
}

#[tokio::test]
async fn cannot_be_determined_is_no_vote_but_an_answer() {
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
    let result = judge(&server, json!({"fact": "x", "totalModels": 4})).await;
    assert_eq!(outcome(&result), ("NO CONSENSUS", "", "tie"));
}

#[tokio::test]
async fn min_required_three_wants_all_three() {
    let (server, _provider) =
        with_panel(|model, ask| ask.choose(if model == "one" { "Rome" } else { "Paris" })).await;
    let result = judge(&server, json!({"fact": "x", "minRequired": 3})).await;
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
    judge(&server, json!({"fact": "A statement of its own."})).await;
    let panel: Vec<Ask> = provider.asks().into_iter().filter(|ask| ask.task == "answer").collect();
    assert_eq!(panel.len(), 3);
    for ask in panel {
        let text = ask.text();
        assert!(!text.contains("claim nobody may see"), "{text}");
        assert!(!text.contains("A statement of its own"), "{text}");
        assert_eq!(ask.body["messages"].as_array().unwrap().len(), 2, "a fresh conversation");
        assert_eq!(ask.body["temperature"], 0.0);
    }
}

#[tokio::test]
async fn a_liking_for_a_letter_makes_no_consensus() {
    // Every model always says "A"; over many claims the shuffled options must make them differ.
    let provider = FakeProvider::start(|ask| match ask.task.as_str() {
        "claims" => {
            let claims: Vec<Value> = (0..20)
                .map(|n| claim(&format!("Claim {n}."), &format!("Which is {n}?"), "right", &["p", "q", "r"]))
                .collect();
            self::claims(&claims)
        }
        _ => Turn::json(&json!({"answer": "A"})),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": "x"})).send().await.unwrap()).await;
    let unanimous = events
        .results()
        .iter()
        .filter(|result| {
            let answers = result["model_answers"].as_array().unwrap();
            answers.iter().all(|answer| answer["answer"] == answers[0]["answer"])
        })
        .count();
    assert!(unanimous < 10, "{unanimous} of 20 claims were answered alike by models that only like a letter");
}

#[tokio::test]
async fn a_malformed_answer_gets_one_repair() {
    let (server, provider) = with_panel(|model, ask| {
        let repaired = ask.body["messages"].as_array().unwrap().len() > 2;
        if model == "two" && !repaired {
            Turn::Text("I think it is Paris.".into())
        } else {
            ask.choose("Paris")
        }
    })
    .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 3);
    assert_eq!(provider.asks_of("two").len(), 2);
}

#[tokio::test]
async fn a_model_that_stays_malformed_gave_no_answer() {
    let (server, provider) = with_panel(|model, ask| match model {
        "two" => Turn::Text("{\"answer\": \"Z\"}".into()),
        _ => ask.choose("Paris"),
    })
    .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/two", "code": "malformed"}]));
    assert_eq!(provider.asks_of("two").len(), 2, "asked once more, not for ever");
}

#[tokio::test]
async fn a_model_that_fails_is_replaced_by_the_next_standby() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one" | "four") => Turn::status(500, &json!({})),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.standby = vec!["fake/four".into(), "fake/five".into()])
        .start()
        .await;
    let result = judge(&server, json!({"fact": "x"})).await;
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
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert!(provider.asks_of("four").is_empty());
}

#[tokio::test]
async fn a_refusal_is_no_vote() {
    let refusal = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": null, "refusal": "I cannot help with that."}}]});
    let (server, _provider) = with_panel(move |model, ask| match model {
        "one" => Turn::status(200, &refusal),
        _ => ask.choose("Paris"),
    })
    .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/one", "code": "refused"}]));
}

#[tokio::test]
async fn too_few_answers_are_no_consensus() {
    let (server, _provider) = with_panel(|model, ask| match model {
        "one" => ask.choose("Paris"),
        _ => Turn::status(500, &json!({})),
    })
    .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("NO CONSENSUS", "", "insufficient_answers"));
}

#[tokio::test]
async fn without_any_answer_the_stream_ends_with_an_error() {
    let (server, _provider) = with_panel(|_, _| Turn::status(503, &json!({}))).await;
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": "x"})).send().await.unwrap()).await;
    assert_eq!(events.end("error")["code"], "provider_overloaded");
    assert_eq!(events.end("error")["error"], "Service Unavailable");
}

#[tokio::test]
async fn a_failing_extractor_has_fallbacks() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", "extractor") => Turn::status(500, &json!({})),
        ("claims", _) => finds_eiffel(),
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.extractor_fallbacks = vec!["fake/two".into()])
        .start()
        .await;
    assert_eq!(outcome(&judge(&server, json!({"fact": "x"})).await).0, "TRUE");
}

#[tokio::test]
async fn at_the_deadline_open_claims_have_no_consensus() {
    let (server, _provider) = {
        let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
            ("claims", _) => claims(&[eiffel(), claim("2 + 2 = 4.", "What is 2 + 2?", "4", &["5", "3"])]),
            _ if ask.block("QUESTION").contains("2 + 2") => Turn::Hang,
            _ => ask.choose("Paris"),
        })
        .await;
        let setup = Setup::new(config(&provider.base_url))
            .config(|config| config.verify.general.deadline = Duration::from_secs(2));
        (setup.start().await, provider)
    };
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": "x"})).send().await.unwrap()).await;
    let results = events.results();
    assert_eq!(outcome(&results[0]), ("TRUE", "A", "consensus"));
    assert_eq!(outcome(&results[1]), ("NO CONSENSUS", "", "insufficient_answers"));
    assert_eq!(results[1]["model_errors"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn of_two_answers_within_prose_none_is_a_vote_but_one_may_be_given_again() {
    let prose = |ask: &Ask| {
        let [paris, rome] = ["Paris", "Rome"].map(|city| json!({"answer": ask.letter(city)}));
        Turn::Text(format!("It is either {paris} or {rome}."))
    };
    let (server, provider) = with_panel(move |model, ask| match model {
        "one" => prose(ask),
        _ => ask.choose("Rome"),
    })
    .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result).0, "FALSE");
    assert_eq!(result["model_errors"], json!([{"model": "fake/one", "code": "malformed"}]));
    assert_eq!(provider.asks_of("one").len(), 2, "it is asked once more, and no further");
}

#[tokio::test]
async fn a_model_has_a_time_limit_of_its_own() {
    let provider = FakeProvider::start(|ask| match (ask.task.as_str(), ask.model.as_str()) {
        ("claims", _) => finds_eiffel(),
        (_, "one") => Turn::Hang,
        _ => ask.choose("Paris"),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.model_timeout = Duration::from_secs(2))
        .start()
        .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/one", "code": "timeout"}]));
}

#[tokio::test]
async fn failed_attempts_are_in_the_sum() {
    let (server, _provider) = with_panel(|model, ask| {
        let repaired = ask.body["messages"].as_array().unwrap().len() > 2;
        if model == "one" && !repaired { Turn::Text("nonsense".into()) } else { ask.choose("Paris") }
    })
    .await;
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": "x"})).send().await.unwrap()).await;
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
            claim("2 + 2 = 4.", "What is 2 + 2?", "4", &["5"]),
            claim("3 + 3 = 6.", "What is 3 + 3?", "6", &["7"]),
        ]),
        _ => Turn::json(&json!({"answer": ask.options().keys().next().unwrap()})),
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.max_claims = 2)
        .start()
        .await;
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": "x"})).send().await.unwrap()).await;
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
async fn explain_context_and_date_reach_the_models() {
    let (server, provider) = with_panel(|_, ask| {
        let answer = ask.letter("Paris");
        Turn::json(&json!({"answer": answer, "reason": "It says so.\u{1b}[31m"}))
    })
    .await;
    let body =
        json!({"fact": "x", "explain": true, "context": "The tower stands in Paris.", "asOf": "2020-02-29"});
    let result = judge(&server, body).await;
    let reason = result["model_answers"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("It says so.") && !reason.contains('\u{1b}'), "{reason:?}");
    let ask = provider.asks_of("one").remove(0);
    assert_eq!(ask.block("CONTEXT"), "The tower stands in Paris.");
    assert!(ask.text().contains("2020-02-29"));
}

#[tokio::test]
async fn legal_statements_have_prompts_and_panel_of_their_own() {
    let provider = panel_by(|_, ask| ask.choose("Paris")).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.legal.panel = vec!["fake/law-a".into(), "fake/law-b".into()])
        .start()
        .await;
    let result = judge(&server, json!({"fact": "x", "domain": "legal"})).await;
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 2);
    assert!(provider.asks_of("extractor")[0].text().to_lowercase().contains("jurisdiction"));
}

#[tokio::test]
async fn answers_with_one_meaning_are_votes_however_they_are_written() {
    let (server, provider) = with_panel(|model, ask| {
        let letter = ask.letter("Paris");
        Turn::Text(match model {
            "one" => format!("**{letter}**"),
            "two" => format!("My answer: {}<|im_end|>", json!({"answer": letter.to_lowercase()})),
            _ => format!("{{\"reason\": \"line\nbreak\", \"answer\": \"{letter}) Paris\"}}"),
        })
    })
    .await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_answers"].as_array().unwrap().len(), 3);
    assert_eq!(provider.asks().len(), 4, "none is asked twice");
}

#[tokio::test]
async fn at_the_deadline_a_claim_is_decided_that_the_model_outstanding_can_no_longer_change() {
    let provider =
        panel_by(|model, ask| if model == "three" { Turn::Hang } else { ask.choose("Paris") }).await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.deadline = Duration::from_secs(2))
        .start()
        .await;
    let result = judge(&server, json!({"fact": "x"})).await;
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
            ("claims", _) | (_, "one") if !repaired => Turn::status(400, &rejection),
            ("claims", _) => finds_eiffel(),
            (_, "two") => Turn::status(400, &rejection),
            _ => ask.choose("Paris"),
        }
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let result = judge(&server, json!({"fact": "x"})).await;
    assert_eq!(outcome(&result), ("TRUE", "A", "consensus"));
    assert_eq!(result["model_errors"], json!([{"model": "fake/two", "code": "malformed"}]));
}
