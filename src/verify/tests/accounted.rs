//! What of a statement passes as checked: only what a claim says, and nothing that one model alone has seen.

use serde_json::{Value, json};

use super::audit::{approves, audited, claim, json_reply, sentence_claims, skipped};
use super::support::{Call, Reply, Scenario, block};
use crate::api::verify::{Format, SkipReason, VerifyResponse};
use crate::inference::Failure;

const PARIS: &str = "Paris is the capital of France.";

fn paris(quote: &str) -> Value {
    claim(quote, PARIS, "Which city is the capital of France?", "Paris", &["Lyon", "Nice", "Lille"])
}

fn answer(claims: &[Value], aside: &[(&str, &str)]) -> Reply {
    let aside: Vec<Value> =
        aside.iter().map(|(quote, reason)| json!({"quote": quote, "reason": reason})).collect();
    json_reply(&json!({"claims": claims, "skipped": aside}))
}

/// An auditor's or judge's answer.
fn says(objections: &[(&str, &str)], missing: &[&str]) -> Reply {
    let claims: Vec<Value> = objections
        .iter()
        .map(|(id, fault)| json!({"id": id, "fault": fault, "options": [], "text": "No."}))
        .collect();
    let missing: Vec<Value> = missing.iter().map(|quote| json!({"quote": quote})).collect();
    json_reply(&json!({"claims": claims, "missing": missing}))
}

fn counts(response: &VerifyResponse) -> (usize, usize, usize, bool) {
    let coverage = &response.coverage;
    (coverage.sentences, coverage.checked, coverage.unchecked, response.complete)
}

fn audits(scenario: &Scenario) -> Vec<String> {
    let chats = scenario.chats().into_iter();
    chats
        .filter(|(_, chat)| chat.schema.as_ref().is_some_and(|schema| schema.name == "audit"))
        .map(|(model, _)| model)
        .collect()
}

fn sent_back(scenario: &Scenario) -> String {
    let chats = scenario.chats();
    let (_, chat) = chats.iter().find(|(_, chat)| chat.messages.len() > 2).expect("something went back");
    chat.messages[3].content.clone().into_owned()
}

#[tokio::test]
async fn a_good_extraction_takes_one_call_and_one_audit() {
    let fact = "Paris is the capital of France. How nice it is.";
    let scenario = audited(
        fact,
        |_| answer(&[paris("Paris is the capital of France")], &[("How nice it is.", "opinion")]),
        |_| approves(),
    );
    let response = scenario.complete().await;
    assert_eq!((counts(&response), response.audited), ((2, 1, 0, true), true));
    assert_eq!(scenario.called_models().len(), 2 + 3);
    let (_, audit) = scenario.chats().into_iter().find(|(model, _)| model == "z/1").unwrap();
    assert_eq!(block(&audit, "ASIDE"), "- opinion: How nice it is.");
}

#[tokio::test]
async fn a_quote_accounts_only_for_the_sentences_that_its_claim_is_about() {
    let fact = "Paris is the capital of France. Everest is 9,100 m tall. The Moon is larger than the Earth. The capital \
                of Australia is Sydney.";
    let missing = ["Everest is 9,100 m tall.", "The Moon is larger than the Earth."];
    for judged in [says(&[], &missing), approves()] {
        let Reply::Text(judged) = judged else { unreachable!() };
        let scenario = audited(
            fact,
            move |_| answer(&[paris(fact)], &[]),
            move |call| if call.model == "z/1" { says(&[], &missing) } else { Reply::Text(judged.clone()) },
        );
        let response = scenario.complete().await;
        assert_eq!(counts(&response), (4, 1, 3, false), "{:?}", response.skipped);
        assert!(sent_back(&scenario).contains("the quote is longer than it need be"));
    }
    // Without a number, a name or an auditor.
    let fact = "Paris is the capital of France. The moon is larger than the earth.";
    let mut scenario = audited(fact, move |_| answer(&[paris(fact)], &[]), |_| unreachable!("there is none"));
    scenario.settings.general.auditor = None;
    let response = scenario.complete().await;
    assert_eq!(skipped(&response), [("The moon is larger than the earth.", SkipReason::NotExtracted)]);
    assert_eq!(counts(&response), (2, 1, 1, false));
}

#[tokio::test]
async fn half_a_sentence_is_not_checked() {
    for fact in [
        "Paris is the capital of France and was founded by Napoleon in 1999.",
        "Paris is the capital of France; the Eiffel Tower is 9,000 m tall.",
        "Paris is the capital of France.The Eiffel Tower is 9,000 m tall.",
    ] {
        let first = |call: &Call<'_>| {
            let claims = [paris("Paris is the capital of France")];
            answer(if call.is_repair() { &[] } else { &claims }, &[])
        };
        // Whatever auditor and judge say.
        let scenario = audited(fact, first, |_| approves());
        let response = scenario.complete().await;
        assert_eq!((response.results.len(), response.complete), (1, false), "{fact}");
        assert!(response.coverage.unchecked > 0);
        assert!(sent_back(&scenario).contains(&fact[40..]), "{}", sent_back(&scenario));
    }
}

#[tokio::test]
async fn a_name_in_no_claim_is_put_to_another_model() {
    let fact = "Paris is the capital of France and was founded by Napoleon.";
    for (judged, complete) in [
        (says(&[], &["was founded by Napoleon"]), false),
        (approves(), true),
        (Reply::Fail(Failure::Timeout), false),
    ] {
        let judged = std::sync::Mutex::new(Some(judged));
        let scenario = audited(
            fact,
            |call| {
                answer(&if call.is_repair() { vec![] } else { vec![paris(PARIS.trim_end_matches('.'))] }, &[])
            },
            move |call| match call.model {
                "z/1" => approves(),
                _ => judged.lock().unwrap().take().unwrap_or(Reply::Fail(Failure::Timeout)),
            },
        );
        assert_eq!(scenario.complete().await.complete, complete);
    }
}

const EVEREST: &str = "Mount Everest is 9,100 m tall.";

fn corrected() -> Value {
    let rivals = ["8,000 m", "8,200 m", "8,400 m", "9,000 m", "9,100 m", "9,200 m"];
    claim(EVEREST, "Mount Everest is 8,849 m tall.", "How tall is Mount Everest?", "8,849 m", &rivals)
}

#[tokio::test]
async fn no_skipped_part_answers_a_hard_fault() {
    let fact = format!("{PARIS} {EVEREST}");
    for skips_at_once in [false, true] {
        let scenario = audited(
            &fact,
            move |call| {
                let skip = [(EVEREST, "opinion")];
                match (call.is_repair(), skips_at_once) {
                    (false, true) => answer(&[paris(PARIS), corrected()], &skip),
                    (false, false) => answer(&[paris(PARIS), corrected()], &[]),
                    (true, true) => answer(&[], &[]),
                    (true, false) => answer(&[], &skip),
                }
            },
            |_| approves(),
        );
        let response = scenario.complete().await;
        assert_eq!(skipped(&response), [(EVEREST, SkipReason::Unfaithful)]);
        assert_eq!(counts(&response), (2, 1, 1, false));
    }
}

#[tokio::test]
async fn a_part_is_a_duplicate_only_of_what_is_said() {
    let fact = format!("{PARIS} {EVEREST}");
    let scenario = audited(&fact, |_| answer(&[paris(PARIS)], &[(EVEREST, "duplicate")]), |_| approves());
    assert_eq!(counts(&scenario.complete().await), (2, 1, 1, false));
    // Honest ones; of words in another order, another model has to say that they say the same.
    for (second, says_so, unchecked, calls) in [
        ("So Paris is the capital of France.", true, 0, 2 + 3),
        ("So the capital of France is Paris.", true, 0, 2 + 2 + 3),
        ("So the capital of France is Paris.", false, 1, 2 + 2 + 3),
    ] {
        let fact = format!("{PARIS} {second}");
        let scenario = audited(
            &fact,
            move |_| answer(&[paris(PARIS)], &[(second, "duplicate")]),
            move |call| if says_so || call.model == "z/1" { approves() } else { says(&[], &[second]) },
        );
        assert_eq!(counts(&scenario.complete().await), (2, 1, unchecked, unchecked == 0), "{second}");
        assert_eq!(scenario.called_models().len(), calls, "{second}");
    }
}

#[tokio::test]
async fn a_part_skipped_for_a_wrong_reason_is_missing_if_two_models_say_so() {
    let fact = format!("{PARIS} {EVEREST}");
    for (judged, complete) in [
        (json!({"claims": [], "missing": [EVEREST]}).to_string(), false),
        (json!({"claims": [], "missing": []}).to_string(), true),
        ("garbage".to_owned(), false),
    ] {
        let scenario = audited(
            &fact,
            |_| answer(&[paris(PARIS)], &[(EVEREST, "opinion")]),
            // Not copied letter by letter.
            move |call| match call.model {
                "z/1" => says(&[], &["Mount Everest is 9100 m tall"]),
                _ => Reply::Text(judged.clone()),
            },
        );
        assert_eq!(scenario.complete().await.complete, complete);
    }
}

#[tokio::test]
async fn words_of_a_sentence_do_not_stand_for_it_when_they_are_skipped() {
    let fact = "Paris is the capital of France. Everest is 9,100 m tall. Gold is lighter than water.";
    let scenario = audited(
        fact,
        |_| answer(&[paris(PARIS)], &[(".", "no_claim"), ("m tall.", "no_claim"), ("than", "no_claim")]),
        |_| approves(),
    );
    assert_eq!(counts(&scenario.complete().await), (3, 1, 2, false));
}

fn jupiter(said: &str) -> Value {
    let rivals = ["Jupiter is smaller", "They are equal"];
    claim(JUPITER, said, "How do Mars and Jupiter compare in size?", "Mars is smaller", &rivals)
}

const JUPITER: &str = "Jupiter is smaller than Mars.";
const REVERSED: &str = "Mars is smaller than Jupiter.";

/// The number of the claim about Jupiter in an audit's list.
fn number_of_jupiter(call: &Call<'_>) -> Option<String> {
    let claims = block(call.chat, "CLAIMS");
    let line = claims.lines().find(|line| line.contains(". quote: Jupiter"))?;
    line.split('.').next().map(str::to_owned)
}

#[tokio::test]
async fn a_claim_of_the_second_answer_is_audited_as_well() {
    let fact = format!("{PARIS} {JUPITER}");
    let extract = |call: &Call<'_>| {
        if call.is_repair() { answer(&[jupiter(REVERSED)], &[]) } else { answer(&[paris(PARIS)], &[]) }
    };
    let scenario = audited(&fact, extract, |call| match number_of_jupiter(call) {
        Some(id) => says(&[(&id, "meaning")], &[]),
        None => approves(),
    });
    let response = scenario.complete().await;
    assert_eq!(skipped(&response), [(JUPITER, SkipReason::Unfaithful)]);
    assert_eq!((response.results.len(), response.audited), (1, true));
    assert_eq!(audits(&scenario), ["z/1", "a/1"]);
    // Nobody has seen it.
    let scenario = audited(&fact, extract, |call| match number_of_jupiter(call) {
        Some(_) => Reply::Fail(Failure::Timeout),
        None => approves(),
    });
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.audited), (2, false));
    // Two judges, then the auditor itself.
    assert_eq!(audits(&scenario), ["z/1", "a/1", "b/1", "z/1"]);
}

#[tokio::test]
async fn without_a_judges_word_a_doubted_claim_is_contested() {
    for reworded in ["Mars is smaller than Jupiter .", "MARS is smaller than Jupiter!"] {
        let extract = move |call: &Call<'_>| {
            answer(&[jupiter(if call.is_repair() { reworded } else { REVERSED })], &[])
        };
        let objects = |_: &Call<'_>| says(&[("1", "meaning")], &[]);
        for judged in ["garbage", r#"{"claims": [], "missing": []}"#] {
            let scenario = audited(JUPITER, extract, move |call| match call.model {
                "z/1" => objects(call),
                _ => Reply::Text(judged.to_owned()),
            });
            let response = scenario.complete().await;
            assert_eq!((response.results.len(), response.results[0].contested), (1, true), "{judged}");
        }
        // The next judge is asked if the first fails.
        let mut scenario = audited(JUPITER, extract, move |call| match call.model {
            "a/1" => Reply::Fail(Failure::Timeout),
            _ => objects(call),
        });
        scenario.settings.general.extractor_fallbacks.clear();
        assert_eq!(skipped(&scenario.complete().await), [(JUPITER, SkipReason::Unfaithful)]);
    }
}

#[tokio::test]
async fn no_model_audits_itself() {
    let mut scenario = audited(PARIS, |_| answer(&[paris(PARIS)], &[]), |_| approves());
    scenario.settings.general.auditor = Some("x/1".to_owned());
    assert!(scenario.complete().await.audited);
    assert_eq!(audits(&scenario), ["a/1"]);
}

#[tokio::test]
async fn an_audit_that_cannot_be_read_is_asked_for_again_and_then_none() {
    for malformed in [
        r#"{"error": "overloaded"}"#,
        "{}",
        r#"{"claims": [{"id": "7", "fault": "meaning"}], "missing": []}"#,
    ] {
        let scenario =
            audited(PARIS, |_| answer(&[paris(PARIS)], &[]), move |_| Reply::Text(malformed.to_owned()));
        assert!(!scenario.complete().await.audited, "{malformed}");
        assert_eq!(audits(&scenario), ["z/1", "z/1"]);
        let scenario = audited(
            PARIS,
            |_| answer(&[paris(PARIS)], &[]),
            move |call| if call.is_repair() { approves() } else { Reply::Text(malformed.to_owned()) },
        );
        assert!(scenario.complete().await.audited);
    }
}

#[tokio::test]
async fn one_bad_item_does_not_undo_what_an_audit_finds() {
    let found = json!({"id": "1", "fault": "meaning", "options": [], "text": "No."});
    for answer in [
        json!({"claims": [found, {"id": "7", "fault": "meaning"}], "missing": []}),
        json!({"claims": [found, {"id": "1-2", "fault": "meaning"}], "missing": []}),
        json!({"claims": [found, {"id": "1", "fault": "ugly"}], "missing": []}),
        json!({"claims": [found]}),
        json!({"claims": [found], "missing": null}),
        json!({"claims": [found], "missing": [null]}),
    ] {
        // The auditor's answer is not whole, the judge's is; then the other way round.
        for (audited_by, judged_by) in [(&answer, &found), (&found, &answer)] {
            let whole = |one: &Value| match one.get("claims") {
                Some(_) => one.to_string(),
                None => json!({"claims": [one], "missing": []}).to_string(),
            };
            let (audit, judgement) = (whole(audited_by), whole(judged_by));
            let scenario = audited(
                JUPITER,
                |_| answer_with(&[jupiter(REVERSED)]),
                move |call| Reply::Text(if call.model == "z/1" { audit.clone() } else { judgement.clone() }),
            );
            let response = scenario.complete().await;
            assert_eq!(skipped(&response), [(JUPITER, SkipReason::Unfaithful)], "{answer}");
        }
    }
    // A judge of whose answer a part cannot be read clears nothing.
    let partial = json!({"claims": [], "missing": ["Nothing of the kind stands here.", null]}).to_string();
    let scenario = audited(
        JUPITER,
        |call| answer_with(&[jupiter(if call.is_repair() { JUPITER } else { REVERSED })]),
        move |call| {
            if call.model == "z/1" { says(&[("1", "meaning")], &[]) } else { Reply::Text(partial.clone()) }
        },
    );
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.results[0].contested), (1, true));
    // What it finds in a first answer, an auditor finds: also if the second one is whole and names it no more.
    let scenario = audited(
        JUPITER,
        |_| answer_with(&[jupiter(REVERSED)]),
        move |call| match (call.model, call.is_repair()) {
            ("z/1", true) => approves(),
            ("z/1", false) => says(&[("1", "meaning"), ("7", "meaning")], &[]),
            _ => says(&[("1", "meaning")], &[]),
        },
    );
    assert_eq!(skipped(&scenario.complete().await), [(JUPITER, SkipReason::Unfaithful)]);
}

fn answer_with(claims: &[Value]) -> Reply {
    answer(claims, &[])
}

#[tokio::test]
async fn claims_that_differ_are_no_duplicates_though_they_are_asked_alike() {
    let germany = "Paris is the capital of Germany.";
    let fact = format!("{PARIS} {germany}");
    let vague = "Which city is the capital?";
    let two = move |questions: [&str; 2]| {
        let france = claim(PARIS, PARIS, questions[0], "Paris", &["Lyon", "Nice", "Lille"]);
        answer(&[france, claim(germany, germany, questions[1], "Paris", &["Berlin", "Bonn", "Hamburg"])], &[])
    };
    let scenario = audited(&fact, move |_| two([vague; 2]), |_| approves());
    let response = scenario.complete().await;
    assert_eq!(skipped(&response), [(PARIS, SkipReason::NotExtracted), (germany, SkipReason::NotExtracted)]);
    assert!(sent_back(&scenario).contains("has the same question and answer"));
    let clear = ["Which city is the capital of France?", "Which city is the capital of Germany?"];
    let scenario =
        audited(&fact, move |call| two(if call.is_repair() { clear } else { [vague; 2] }), |_| approves());
    let response = scenario.complete().await;
    assert_eq!((response.results.len(), response.complete), (2, true));
}

#[tokio::test]
async fn a_section_that_nothing_can_be_made_of_costs_no_other() {
    let houses: Vec<String> = (0..90)
        .map(|n| format!("House H{n} at the end of the long and winding street is painted blue. "))
        .collect();
    let mut scenario = Scenario::new(|call| {
        if !call.is_extraction() {
            return call.choose("blue");
        }
        if block(call.chat, "SECTION").contains("H89 ") {
            return Reply::Text("garbage".to_owned());
        }
        sentence_claims(call)
    });
    scenario.job.fact = houses.concat();
    let response = scenario.complete().await;
    let (sentences, checked, unchecked, complete) = counts(&response);
    assert_eq!((sentences, complete), (90, false));
    assert!(checked >= 45 && unchecked > 0 && checked + unchecked == 90, "{checked} {unchecked}");
    assert!(response.skipped.iter().all(|part| part.reason == SkipReason::NotExtracted));
}

#[tokio::test]
async fn thousands_of_faulty_claims_make_no_long_prompt() {
    let faulty = |n: usize| claim("Paris", &format!("Lyon {n} is big."), &format!("Q{n}?"), "x", &["a"]);
    let claims: Vec<Value> = (0..4_000).map(faulty).chain([paris(PARIS)]).collect();
    let scenario =
        audited(PARIS, move |call| answer(if call.is_repair() { &[] } else { &claims }, &[]), |_| approves());
    let response = scenario.complete().await;
    assert!(!response.complete);
    let message = sent_back(&scenario);
    assert!(message.len() < 20_000, "{}", message.len());
}

#[tokio::test]
async fn of_equal_passages_a_quote_is_the_one_that_its_claim_is_about() {
    let fact = "Anna said it is big. Bob said it is big.";
    let said = |name: &str| {
        let question = format!("What did {name} say?");
        claim(
            "it is big",
            &format!("{name} said it is big."),
            &question,
            "It is big",
            &["It is small", "It is old"],
        )
    };
    let scenario = audited(fact, move |_| answer(&[said("Anna"), said("Bob")], &[]), |_| approves());
    let response = scenario.complete().await;
    let starts: Vec<usize> = response.results.iter().map(|result| result.span.start).collect();
    assert_eq!((starts, response.complete), (vec![10, 30], true));

    let fact = format!("Gold is heavy. {PARIS} Gold is heavy.");
    let gold = || {
        claim(
            "Gold is heavy.",
            "Gold is heavy.",
            "What weight does gold have?",
            "Heavy",
            &["Light", "Medium"],
        )
    };
    for second in [
        answer(&[gold(), paris(PARIS)], &[("Gold is heavy.", "duplicate")]),
        answer(&[gold(), paris(PARIS), gold()], &[]),
    ] {
        let Reply::Text(second) = second else { unreachable!() };
        let scenario = audited(&fact, move |_| Reply::Text(second.clone()), |_| approves());
        let response = scenario.complete().await;
        assert_eq!((response.results.len(), response.complete), (2, true));
        assert_eq!(skipped(&response), [("Gold is heavy.", SkipReason::Duplicate)]);
        assert_eq!(response.skipped[0].span.as_ref().unwrap().start, fact.len() - 14);
        assert_eq!(scenario.called_models().len(), 2 + 6, "nothing goes back");
    }
}

/// Most documents begin their first sentence with the words of their title.
#[tokio::test]
async fn a_sentence_that_says_what_its_heading_says_is_checked() {
    for part in ["Paris is the capital of France", PARIS] {
        let mut scenario = audited(
            "# Paris is the capital of France\n\nParis is the capital of France.",
            move |_| answer(&[paris(part)], &[]),
            |_| approves(),
        );
        scenario.job.format = Format::Markdown;
        let response = scenario.complete().await;
        assert_eq!((response.results.len(), counts(&response)), (1, (1, 1, 0, true)), "{part}");
        assert_eq!(response.results[0].span.start, 34);
    }
}
