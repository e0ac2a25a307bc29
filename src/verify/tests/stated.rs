//! What of a statement has to be asked for, and what of Markdown is no statement.

use serde_json::{Value, json};

use super::audit::{approves, audited, claim, json_reply, skipped};
use super::support::{Call, Reply, Scenario};
use crate::api::verify::{Format, SkipReason};

const PARIS: &str = "Paris is the capital of France.";
const EVEREST: &str = "Mount Everest in Asia is 9,100 m tall.";

fn paris() -> Value {
    claim(PARIS, PARIS, "Which city is the capital of France?", "Paris", &["Lyon", "Nice", "Lille"])
}

fn everest() -> Value {
    let question = "On which continent is Mount Everest, 9,100 m tall?";
    claim(EVEREST, EVEREST, question, "Asia", &["Europe", "Africa", "America"])
}

fn answer(claims: &[Value]) -> Reply {
    json_reply(&json!({"claims": claims, "skipped": []}))
}

#[tokio::test]
async fn a_number_that_only_a_question_has_goes_back_and_is_then_for_another_model() {
    let height = claim(
        EVEREST,
        EVEREST,
        "How tall is Mount Everest in Asia?",
        "9,100 m",
        &["8,000 m", "8,200 m", "8,400 m", "9,200 m", "9,300 m", "9,400 m"],
    );
    let objection = json!({"claims": [{"id": "1", "fault": "answer", "text": ""}], "missing": []});
    // What the extractor answers then, whether a judge objects, and whether its claims are contested: none is left if one
    // does.
    let (none, same) = (vec![], vec![everest()]);
    for (second, objects, contested) in [
        (none.clone(), false, vec![true]),
        (same, false, vec![true]),
        (none, true, vec![]),
        (vec![height], false, vec![false, false]),
    ] {
        let extract =
            move |call: &Call<'_>| if call.is_repair() { answer(&second) } else { answer(&[everest()]) };
        let objection = objection.clone();
        let judge = move |call: &Call<'_>| match call.model {
            "z/1" => approves(),
            _ if objects => json_reply(&objection),
            _ => approves(),
        };
        let scenario = audited(EVEREST, extract, judge);
        let response = scenario.complete().await;
        let found: Vec<bool> = response.results.iter().map(|result| result.contested).collect();
        assert_eq!((&found, response.complete), (&contested, !objects), "{:?}", response.skipped);
        let chats = scenario.chats();
        let (_, chat) = chats.iter().find(|(_, chat)| chat.messages.len() > 2).unwrap();
        assert!(chat.messages[3].content.contains("no claim asks for \"9,100 m\""));
    }
}

fn markdown(fact: &str, claims: Vec<Value>, missed: &'static [&'static str]) -> Scenario {
    let audit = json!({"claims": [], "missing": missed});
    let mut scenario = audited(fact, move |_| answer(&claims), move |_| json_reply(&audit));
    scenario.job.format = Format::Markdown;
    scenario
}

#[tokio::test]
async fn a_claim_of_a_heading_is_skipped_and_said_so() {
    const HEADING: &str = "Mount Everest in Asia is 9,100 m tall";
    let mut claim = everest();
    claim["quote"] = HEADING.into();
    let fact = format!("# {HEADING}\n\n{PARIS}");
    let response = markdown(&fact, vec![claim, paris()], &[]).complete().await;
    assert_eq!(skipped(&response), [(HEADING, SkipReason::NoClaim)]);
    assert_eq!((response.results.len(), response.complete), (1, true));
    // An auditor that misses it is not followed.
    let scenario = markdown(&fact, vec![paris()], &[HEADING]);
    assert!(scenario.complete().await.complete);
    assert_eq!(scenario.called_models().len(), 2 + 3, "nothing goes back");
    // Nor is one of code.
    let mut code = everest();
    code["quote"] = EVEREST.into();
    let fact = format!("```\n{EVEREST}\n```\n\n{PARIS}");
    let response = markdown(&fact, vec![code, paris()], &[]).complete().await;
    assert_eq!((skipped(&response), response.complete), (vec![(EVEREST, SkipReason::NoClaim)], true));
    // A sentence is one also with the marks of a heading, or indented.
    for sentence in [format!("# {EVEREST}\n\n"), format!("    {EVEREST}\n\n"), format!("{EVEREST}\n---\n\n")]
    {
        let response = markdown(&format!("{sentence}{PARIS}"), vec![paris()], &[]).complete().await;
        let [(part, SkipReason::NotExtracted)] = skipped(&response)[..] else { panic!("{sentence}") };
        assert!(part.contains(EVEREST), "{part}");
        assert!(!response.complete);
    }
}

#[tokio::test]
async fn a_quote_in_a_heading_and_a_sentence_is_that_of_the_sentence() {
    let fact = format!("# {}\n\n{PARIS}", PARIS.trim_end_matches('.'));
    let response = markdown(&fact, vec![paris()], &[]).complete().await;
    assert_eq!(response.results[0].span.start, PARIS.len() + 3);
    assert_eq!((skipped(&response), response.complete), (vec![], true));
}

#[tokio::test]
async fn the_opposite_is_no_duplicate() {
    const HEAVY: &str = "Gold is heavier than water.";
    let gold = |quote: &str| {
        claim(quote, HEAVY, "How does gold compare with water?", "It is heavier", &["It is as heavy"])
    };
    let both = |first: &str, second: &str| format!("{first} {second}");
    let extracted = |claims: Vec<Value>, aside: Option<&str>| {
        let aside: Vec<Value> =
            aside.iter().map(|quote| json!({"quote": quote, "reason": "duplicate"})).collect();
        json!({"claims": claims, "skipped": aside})
    };
    let others = [("Gold is lighter than water.", false), ("Gold is not heavier than water.", false)];
    for (second, complete) in others.into_iter().chain([(HEAVY, true)]) {
        let fact = both(HEAVY, second);
        let quoted_twice = extracted(vec![gold(HEAVY), gold(second)], None);
        let set_aside = extracted(vec![gold(HEAVY)], Some(second));
        for answer in [quoted_twice, set_aside] {
            // Where words differ, a model other than the auditor has to say that it is the same.
            let judge = move |call: &Call<'_>| match call.model {
                "z/1" => approves(),
                _ => json_reply(&json!({"claims": [], "missing": [second]})),
            };
            let response = audited(&fact, move |_| json_reply(&answer), judge).complete().await;
            assert_eq!(response.complete, complete, "{second} {:?}", response.skipped);
            assert_eq!(response.results.len(), 1);
        }
    }
    // Other words for the same, of which a claim was made that fits both.
    let fact = both("Paris is the capital of France.", "Its capital is Paris, as we all know.");
    let mut second = paris();
    second["quote"] = "Its capital is Paris".into();
    let scenario = audited(&fact, move |_| answer(&[paris(), second.clone()]), |_| approves());
    let response = scenario.complete().await;
    assert_eq!(skipped(&response), [("Its capital is Paris", SkipReason::Duplicate)]);
    assert!(response.complete);
}

#[tokio::test]
async fn a_passage_that_an_auditor_misses_is_the_one_that_nothing_quotes() {
    let tall = "It is 300 m tall.";
    let fact = format!("The tower is in Paris. {tall} The mast is in Rome. {tall}");
    let rivals = ["Bonn", "Oslo", "Bern"];
    let heights = ["100 m", "150 m", "200 m", "400 m", "450 m", "500 m"];
    let claims = [
        claim("The tower is in Paris.", "The tower is in Paris.", "Where is the tower?", "Paris", &rivals),
        claim(tall, "The tower is 300 m tall.", "How tall is the tower?", "300 m", &heights),
        claim("The mast is in Rome.", "The mast is in Rome.", "Where is the mast?", "Rome", &rivals),
    ];
    let aside = json!([{"quote": tall, "reason": "duplicate"}]);
    let first = json!({"claims": claims, "skipped": aside});
    let scenario = audited(
        &fact,
        move |_| json_reply(&first),
        move |_| json_reply(&json!({"claims": [], "missing": [tall]})),
    );
    let response = scenario.complete().await;
    let unchecked: Vec<usize> = response
        .skipped
        .iter()
        .filter(|part| part.reason == SkipReason::NotExtracted)
        .filter_map(|part| part.span.map(|span| span.start))
        .collect();
    assert_eq!(unchecked, [fact.rfind(tall).unwrap()]);
}
