//! Verdicts are about what the text says: extractors that correct, invent, leave out and give questions away, by the real
//! binary against scripted models. Without an auditor, so that what is caught here is caught by code alone.

use std::collections::BTreeMap;

use mk::api::Service;
use serde_json::{Value, json};

use crate::support::mk::{CommandOutput, Mk};
use crate::support::panel::config;
use crate::support::provider::{FakeProvider, ModelRequest, Reply};
use crate::support::server::{Setup, TestServer};

/// A claim as an extractor drafts it.
fn drafted(quote: &str, claim: &str, question: &str, answer: &str, rivals: &[&str]) -> Value {
    json!({"quote": quote, "claim": claim, "question": question, "claimed_answer": answer, "rivals": rivals, "best": ""})
}

/// A server whose extractor gives this answer whatever it is told, and whose panel answers by `vote`.
async fn stubborn(
    claims: Vec<Value>,
    vote: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
) -> (TestServer, FakeProvider) {
    extracting(json!({"claims": claims, "skipped": []}), vote).await
}

/// The same with all of its extractor's answer.
async fn extracting(
    answer: Value,
    vote: impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static,
) -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(move |ask| match ask.task.as_str() {
        "claims" => Reply::json(&answer),
        // Who is asked about a doubt sees no fault.
        "audit" => Reply::json(&json!({"claims": [], "missing": []})),
        _ => vote(ask),
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    (server, provider)
}

async fn verify(server: &TestServer, arguments: &[&str]) -> CommandOutput {
    let mk = Mk::new().args(["verify", "--json"]).args(arguments.iter().copied());
    mk.env("MK_SERVER", &server.base).env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await
}

/// Chooses the first of these texts that is an option; an honest model that finds none says so.
fn choose_of(ask: &ModelRequest, texts: &[&str]) -> Reply {
    let options = ask.options();
    let known = texts.iter().find(|text| options.values().any(|option| option == *text));
    ask.choose(known.unwrap_or(&"None of these"))
}

/// The texts of skipped parts, by their reason.
fn skipped(document: &Value) -> BTreeMap<String, Vec<String>> {
    let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in document["skipped"].as_array().unwrap() {
        let text = |name: &str| part[name].as_str().unwrap().to_owned();
        parts.entry(text("reason")).or_default().push(text("text"));
    }
    parts
}

/// Fails unless the gate stays shut because of these parts, with no verdict at all.
fn assert_unchecked(ran: &CommandOutput, reason: &str, texts: &[&str]) {
    assert_eq!(ran.code(), 13, "{ran:?}");
    let document = ran.json();
    assert_eq!(document["results"], json!([]), "{ran:?}");
    assert_eq!(document["complete"], false, "{ran:?}");
    assert_eq!(skipped(&document)[reason], texts, "{ran:?}");
}

const EVEREST: &str = "Mount Everest is 9,100 m high. The capital of Australia is Sydney.";

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_its_extractor_corrects_does_not_pass() {
    let claims = vec![
        drafted(
            "Mount Everest is 9,100 m high.",
            "Mount Everest is 8,849 m high.",
            "How high is Mount Everest?",
            "8,849 m",
            &["8,000 m", "8,500 m", "8,700 m", "9,100 m", "9,500 m", "9,900 m"],
        ),
        drafted(
            "The capital of Australia is Sydney.",
            "The capital of Australia is Canberra.",
            "Which city is the capital of Australia?",
            "Canberra",
            &["Sydney", "Melbourne", "Perth"],
        ),
    ];
    let (server, _provider) = stubborn(claims, |ask| choose_of(ask, &["8,849 m", "Canberra"])).await;
    let ran = verify(&server, &[EVEREST]).await;
    // The number is certainly another. Only a second model can tell that Canberra is a correction and no other name for
    // Sydney: without one, the extractor's word stands, and is shown to be doubted.
    assert_ne!(ran.code(), 0, "{ran:?}");
    let document = ran.json();
    assert_eq!(skipped(&document)["unfaithful"][0], "Mount Everest is 9,100 m high.", "{ran:?}");
    for result in document["results"].as_array().unwrap() {
        assert_eq!(
            (&result["contested"], &result["claim"]),
            (&json!(true), &json!("The capital of Australia is Canberra."))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_claim_does_not_give_does_not_pass() {
    let claim = drafted(
        "Mount Everest is 9,100 m high.",
        "Mount Everest is 9,100 m high.",
        "How high is Mount Everest?",
        "8,849 m",
        &["8,000 m", "8,500 m", "8,700 m", "9,100 m", "9,500 m", "9,900 m"],
    );
    let (server, provider) = stubborn(vec![claim], |ask| ask.choose("8,849 m")).await;
    let ran = verify(&server, &["Mount Everest is 9,100 m high."]).await;
    assert_unchecked(&ran, "unfaithful", &["Mount Everest is 9,100 m high."]);
    let told = &provider.requests()[1].text();
    assert!(told.contains("the claimed answer \"8,849 m\" is not what the claim says"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_an_extractor_leaves_out_do_not_pass() {
    let claim = drafted(
        "Paris is in France.",
        "Paris is in France.",
        "Where is Paris?",
        "France",
        &["Spain", "Italy"],
    );
    let (server, _provider) = stubborn(vec![claim], |ask| ask.choose("France")).await;
    let text = "Rome is the capital of Spain. Oslo has 9 million inhabitants. Lisbon was founded in 1950. Paris is in France.";
    let ran = verify(&server, &[text]).await;
    assert_eq!(ran.code(), 13, "{ran:?}");
    let document = ran.json();
    let left_out =
        ["Rome is the capital of Spain.", "Oslo has 9 million inhabitants.", "Lisbon was founded in 1950."];
    assert_eq!(skipped(&document)["not_extracted"], left_out);
    assert_eq!(document["coverage"], json!({"sentences": 4, "checked": 1, "skipped": 0, "unchecked": 3}));
    assert!(ran.stderr.contains("Lisbon was founded in 1950."), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_extractor_adds_does_not_pass() {
    let claim = drafted(
        "The museum was renovated.",
        "The Louvre was renovated in 1989.",
        "When was the Louvre renovated?",
        "1989",
        &["1979", "1982", "1985", "1991", "1994", "1997"],
    );
    let (server, _provider) = stubborn(vec![claim], |ask| ask.choose("1989")).await;
    assert_unchecked(
        &verify(&server, &["The museum was renovated."]).await,
        "unfaithful",
        &["The museum was renovated."],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_that_stands_nowhere_leaves_its_sentence_unextracted() {
    let claim = drafted(
        "Gold was found in Ohio.",
        "Gold was found in Ohio.",
        "Where was gold found?",
        "Ohio",
        &["Utah", "Iowa"],
    );
    let (server, _provider) = stubborn(vec![claim], |ask| ask.choose("Ohio")).await;
    let ran = verify(&server, &["Silver was found in Nevada by two brothers."]).await;
    assert_unchecked(&ran, "unfaithful", &["Gold was found in Ohio."]);
    let document = ran.json();
    assert_eq!(skipped(&document)["not_extracted"], ["Silver was found in Nevada by two brothers."]);
    // What is counted are sentences of the text: the invented one is none of them, but the run is not complete.
    assert_eq!(document["coverage"], json!({"sentences": 1, "checked": 0, "skipped": 0, "unchecked": 1}));
    let invented = document["skipped"].as_array().unwrap().iter().find(|part| part["reason"] == "unfaithful");
    assert!(invented.unwrap()["span"].is_null(), "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invented_quote_beside_a_checked_sentence_keeps_the_gate_shut() {
    let text = "Silver was found in Nevada.";
    let claims = vec![
        drafted(text, text, "Where was silver found?", "Nevada", &["Utah", "Iowa"]),
        drafted(
            "Gold was found in Ohio.",
            "Gold was found in Ohio.",
            "Where was gold found?",
            "Ohio",
            &["Utah", "Iowa"],
        ),
    ];
    let (server, _provider) = stubborn(claims, |ask| choose_of(ask, &["Nevada", "Ohio"])).await;
    let ran = verify(&server, &[text]).await;
    assert_eq!(ran.code(), 13, "{ran:?}");
    let document = ran.json();
    assert_eq!(document["coverage"], json!({"sentences": 1, "checked": 1, "skipped": 0, "unchecked": 0}));
    assert_eq!((&document["complete"], document["results"].as_array().unwrap().len()), (&json!(false), 1));
}

/// A sentence of a long text, and the claim that it makes.
fn fact(n: usize) -> String {
    let colour = if n == 46 { "green" } else { "blue" };
    format!(
        "The house with the number {n} at the end of the long and winding High Street of Ashton, which everybody there knows, is painted {colour}."
    )
}

/// An extractor that finds each sentence of a section, and a panel that knows all houses to be blue.
async fn houses() -> (TestServer, FakeProvider) {
    let provider = FakeProvider::start(|ask| {
        if ask.task != "claims" {
            return ask.choose("blue");
        }
        let section = ask.block("SECTION");
        let found = section.split_inclusive('.').map(str::trim).filter(|sentence| !sentence.is_empty());
        let claim = |sentence: &str| {
            let number = sentence.split_whitespace().nth(5).unwrap();
            let colour = sentence.trim_end_matches('.').split(' ').next_back().unwrap();
            let other = if colour == "blue" { "green" } else { "blue" };
            let question = format!("Which colour has house {number} at the end of High Street?");
            drafted(sentence, sentence, &question, colour, &[other, "red", "white"])
        };
        Reply::json(&json!({"claims": found.map(claim).collect::<Vec<_>>(), "skipped": []}))
    })
    .await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    (server, provider)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_46th_of_60_sentences_is_checked_like_the_first() {
    let (server, _provider) = houses().await;
    let text: Vec<String> = (1..=60).map(fact).collect();
    let ran = verify(&server, &["-q", &text.join(" ")]).await;
    assert_eq!(ran.code(), 10, "{ran:?}");
    assert!(ran.stderr.contains("FALSE") && ran.stderr.contains("number 46"), "{ran:?}");
    let document = ran.json();
    assert_eq!(document["coverage"], json!({"sentences": 60, "checked": 60, "skipped": 0, "unchecked": 0}));
    let corrections: Vec<&Value> = document["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["correction"])
        .filter(|it| !it.is_null())
        .collect();
    assert_eq!(corrections, ["blue"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_text_of_more_than_22_kb_all_is_reached_and_each_claim_says_where_it_stands() {
    let (server, provider) = houses().await;
    let text: Vec<String> = (100..300).map(fact).collect();
    let text = text.join(" ").replace("everybody there knows", "« tout le monde » connaît — 東京");
    assert!(text.len() > 22_000, "{}", text.len());
    let ran = verify(&server, &[&text]).await;
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(document["coverage"], json!({"sentences": 200, "checked": 200, "skipped": 0, "unchecked": 0}));
    let characters: Vec<char> = text.chars().collect();
    for result in document["results"].as_array().unwrap() {
        let place = |name: &str| usize::try_from(result["span"][name].as_u64().unwrap()).unwrap();
        let found: String = characters[place("start")..place("end")].iter().collect();
        assert_eq!(result["quote"], found);
    }
    let extractions = provider.requests().iter().filter(|ask| ask.task == "claims").count();
    assert!((text.chars().count() / 2_000..=40).contains(&extractions), "{extractions}");
}

/// A claim whose rivals hold the claimed answer in other words; what right models choose is either.
#[tokio::test(flavor = "multi_thread")]
async fn rivals_that_equal_the_claimed_answer_make_no_true_claim_false() {
    for (claim, question, answer, equal, others) in [
        ("The board has 16 fields.", "How many fields has the board?", "16", "sixteen", ["12", "20"]),
        (
            "The games began on 26 July 2024.",
            "On which day did the games begin?",
            "26 July 2024",
            "July 26, 2024",
            ["27 July 2024", "2 August 2024"],
        ),
        (
            "The firm is based in the USA.",
            "Where is the firm based?",
            "USA",
            "United States",
            ["Canada", "Mexico"],
        ),
        (
            "Water boils there at 100 °C.",
            "At how many degrees does water boil there?",
            "100 °C",
            "212 °F",
            ["90 °C", "110 °C"],
        ),
        (
            "Das Werk kostete 13 Mio. Euro.",
            "Wie viel kostete das Werk?",
            "13 Mio. Euro",
            "13.000.000 Euro",
            ["12 Mio. Euro", "15 Mio. Euro"],
        ),
    ] {
        let rivals = [equal, others[0], others[1]];
        // Each right model has a liking for the other wording.
        let (server, _provider) =
            stubborn(vec![drafted(claim, claim, question, answer, &rivals)], move |ask| {
                choose_of(ask, &[equal, answer])
            })
            .await;
        let ran = verify(&server, &[claim]).await;
        assert_eq!(ran.code(), 0, "{claim}: {ran:?}");
        let result = &ran.json()["results"][0];
        assert_eq!(
            (&result["assessment"], &result["reason_code"]),
            (&json!("TRUE"), &json!("consensus")),
            "{claim}"
        );
        let options = result["original_options"].as_object().unwrap();
        assert!(!options.values().any(|option| option == equal), "{options:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_can_be_right_together_are_never_asked_together() {
    let claim = "Jupiter has at least 79 moons.";
    let draft = drafted(
        claim,
        claim,
        "How many moons has Jupiter?",
        "at least 79",
        &["95", "more than 90", "12", "50"],
    );
    // Three right models, each with another of the options that are right.
    let (server, provider) = stubborn(vec![draft], |ask| match ask.model.as_str() {
        "one" => choose_of(ask, &["95", "at least 79"]),
        "two" => choose_of(ask, &["more than 90", "at least 79"]),
        _ => choose_of(ask, &["at least 79"]),
    })
    .await;
    let ran = verify(&server, &[claim]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let vote = provider.requests().into_iter().find(|ask| ask.task == "answer").unwrap();
    let options = vote.options();
    let shown: Vec<&String> = options.values().collect();
    assert_eq!(shown.len(), 5, "{shown:?}");
    assert!(!shown.iter().any(|option| ["95", "more than 90"].contains(&option.as_str())), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_place_of_a_claimed_number_among_the_options_tells_nothing() {
    let claim = |n: usize| {
        let claim = format!("Tower {n} is {} m high.", 1_000 + n);
        let rivals: Vec<String> = [-300, -200, -100, 100, 200, 300]
            .map(|by| format!("{} m", 1_000_i64 + i64::try_from(n).unwrap() + by))
            .to_vec();
        let rivals: Vec<&str> = rivals.iter().map(String::as_str).collect();
        drafted(&claim, &claim, &format!("How high is tower {n}?"), &format!("{} m", 1_000 + n), &rivals)
    };
    let provider = FakeProvider::start(move |ask| {
        if ask.task != "claims" {
            return ask.choose("None of these");
        }
        let section = ask.block("SECTION");
        let numbers = section.split("Tower ").filter_map(|part| part.split(' ').next()?.parse().ok());
        Reply::json(&json!({"claims": numbers.map(claim).collect::<Vec<_>>(), "skipped": []}))
    })
    .await;
    let server = Setup::new(config(&provider.base_url))
        .config(|config| config.verify.general.max_claims = 400)
        .start()
        .await;
    let text: Vec<String> = (0..200).map(|n| format!("Tower {n} is {} m high.", 1_000 + n)).collect();
    let document = verify(&server, &["--fail-on", "never", &text.join(" ")]).await.json();
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 200);
    let mut ranks = [0; 4];
    for result in results {
        let options = result["original_options"].as_object().unwrap();
        let metres = |option: &Value| {
            option.as_str().unwrap().strip_suffix(" m").and_then(|it| it.parse::<u32>().ok())
        };
        let claimed = metres(&options["A"]).unwrap();
        ranks[options.values().filter_map(metres).filter(|other| *other < claimed).count()] += 1;
    }
    // A quarter each: beyond these bounds once in some million runs.
    assert!(ranks.iter().all(|count| (20..=82).contains(count)), "{ranks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_give_their_answer_away_are_not_asked() {
    for (claim, question, answer, rivals) in [
        ("Gold has the symbol Au.", "Is Au the symbol of gold?", "Au", &["Ag", "Fe"][..]),
        ("Mars has 2 moons.", "Which 2 moons, if any other number, has Mars?", "2", &["1", "3"]),
        ("東京は日本の首都である。", "日本の首都は東京であるか。", "東京", &["京都", "大阪"]),
        ("长江是亚洲最长的河流。", "长江是亚洲哪条最长的河流？", "长江", &["黄河", "湄公河"]),
        ("Penguins cannot fly.", "Is it true that penguins cannot fly?", "True", &["False"]),
        ("Whales are mammals.", "Are whales mammals?", "Yes", &["No"]),
    ] {
        let draft = drafted(claim, claim, question, answer, rivals);
        let (server, provider) = stubborn(vec![draft], |ask| ask.choose("None of these")).await;
        let ran = verify(&server, &[claim]).await;
        assert_unchecked(&ran, "not_extracted", &[claim]);
        assert!(provider.requests().iter().all(|ask| ask.task == "claims"), "{question}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn evasive_rivals_are_not_shown_in_any_language() {
    for (claim, question, answer, evasive, other) in [
        ("The bridge is in Prague.", "In which city is the bridge?", "Prague", "Other", "Vienna"),
        ("京都は古い都である。", "古い都はどこか。", "京都", "不明", "大阪"),
        ("東京タワーは赤い。", "東京タワーは何色か。", "赤い", "その他", "青い"),
        ("Мост стоит в Праге.", "В каком городе стоит мост?", "Прага", "Другое", "Вена"),
    ] {
        let draft = drafted(claim, claim, question, answer, &[evasive, other]);
        let (server, provider) = stubborn(vec![draft], move |ask| ask.choose(answer)).await;
        let ran = verify(&server, &[claim]).await;
        assert_eq!(ran.code(), 0, "{claim}: {ran:?}");
        let votes: Vec<ModelRequest> =
            provider.requests().into_iter().filter(|ask| ask.task == "answer").collect();
        assert_eq!(votes.len(), 3);
        assert!(votes.iter().all(|ask| !ask.options().values().any(|option| option == evasive)), "{claim}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_votes_on_a_context_begin_alike_so_that_it_can_be_cached() {
    let claims = vec![
        drafted(
            "Ada owns 3 boats.",
            "Ada owns 3 boats.",
            "How many boats does Ada own?",
            "3",
            &["0", "1", "2", "4", "5", "6"],
        ),
        drafted(
            "Ada lives in Bern.",
            "Ada lives in Bern.",
            "Where does Ada live?",
            "Bern",
            &["Rome", "Oslo"],
        ),
    ];
    let (server, provider) = stubborn(claims, |ask| choose_of(ask, &["3", "Bern"])).await;
    let context = "Ada keeps her boats on the lake. ".repeat(150);
    let mk = Mk::new().args(["verify", "--context", "context.txt", "Ada owns 3 boats. Ada lives in Bern."]);
    std::fs::write(mk.home().join("context.txt"), &context).unwrap();
    let ran =
        mk.env("MK_SERVER", &server.base).env("MK_API_KEY", &server.key(Service::Verify)).run_beside().await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let votes: Vec<String> =
        provider.requests().iter().filter(|ask| ask.task == "answer").map(ModelRequest::text).collect();
    assert_eq!(votes.len(), 6);
    let shared =
        |vote: &String| vote.bytes().zip(votes[0].bytes()).take_while(|(one, other)| one == other).count();
    let context_end = votes[0].find("\nEND CONTEXT").unwrap();
    assert!(votes.iter().all(|vote| shared(vote) > context_end), "{votes:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reason_of_an_extractor_is_told_and_nothing_of_it_is_unchecked() {
    let tower = "The Eiffel Tower is in Paris.";
    let parts = [
        ("Lisbon is the loveliest of all cities.", "opinion"),
        ("The winters there will be mild.", "prediction"),
        ("Who would not like to live there?", "question"),
        ("Take a jacket along on your journey.", "instruction"),
        ("It was later changed by them.", "ambiguous"),
        ("Our office closed early for the holiday.", "private"),
        ("Kind regards to all of our readers.", "no_claim"),
    ];
    let quoted: Vec<Value> =
        parts.iter().map(|(quote, reason)| json!({"quote": quote, "reason": reason})).collect();
    let claim = drafted(tower, tower, "In which city is the Eiffel Tower?", "Paris", &["Rome", "Bern"]);
    let answer = json!({"claims": [claim], "skipped": quoted});
    let (server, _provider) = extracting(answer, |ask| choose_of(ask, &["Paris"])).await;
    let text = [tower].into_iter().chain(parts.iter().map(|(quote, _)| *quote)).collect::<Vec<_>>().join(" ");
    let ran = verify(&server, &[&text]).await;
    assert_eq!(ran.code(), 0, "{ran:?}");
    let document = ran.json();
    for (quote, reason) in parts {
        assert_eq!(skipped(&document)[reason], [quote], "{ran:?}");
    }
    assert_eq!(document["coverage"], json!({"sentences": 8, "checked": 1, "skipped": 7, "unchecked": 0}));
    let all = [&text, "--fail-on", "skipped"];
    assert_eq!(verify(&server, &all).await.code(), 13, "what is skipped fails only where that is chosen");
}
