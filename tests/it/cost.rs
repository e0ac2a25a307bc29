//! What a verification costs with the default panel: real prompts, catalogue prices, answers as models give them.
//!
//! `cargo test --test it cost:: -- --nocapture` prints the arithmetic. Scripted models report no usage, so that `mk` books
//! its own estimate of four characters a token. English prose and these prompts have 4.3 to 4.7, so that a real bill is
//! some 10 % lower; what providers add for the schema of an answer (30 to 100 tokens a call with some) is not in it, nor is
//! what a model thinks at its lowest effort.

use mk::api::Service;
use mk::config::{Env, ServerArgs, ServerConfig};
use serde_json::{Value, json};

use crate::support::events::Events;
use crate::support::provider::{FakeProvider, ModelRequest, Reply};
use crate::support::server::{NOON, Setup, client};

/// Texts with their claims.
const CASES: &str = include_str!("../data/anchors/en.jsonl");
const MANUAL: &str = include_str!("../../man/mk-verification.7.md");
/// How many claims 1,000 words of dense prose make: 278 were counted by hand in 2,528 words. Since then each number has to
/// be asked for, which made 129 claims of 122 in the English texts of `data/anchors`.
const CLAIMS_PER_1000_WORDS: f64 = 116.0;
/// The most that 1,000 words may cost, in dollars.
const MOST: f64 = 0.18;
/// What stands between the texts, so that claims are as dense as in real ones.
const OPINION: &str =
    "It is hard to say why, but nearly everybody finds such things rather charming on a long evening.";

struct Case {
    text: String,
    claims: Vec<Vec<String>>,
}

fn cases() -> Vec<Case> {
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        Case {
            text: case["text"].as_str().unwrap().to_owned(),
            claims: serde_json::from_value(case["good"].clone()).unwrap(),
        }
    };
    CASES.lines().map(case).collect()
}

/// Other answers of the same kind: six for a number, three otherwise.
fn rivals(answer: &str, others: &[String]) -> Vec<String> {
    let digits: String =
        answer.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    if let Ok(number) = digits.parse::<i64>() {
        let other = |by: i64| (number + by * (number / 10).max(1)).to_string();
        return [-3, -2, -1, 1, 2, 3].map(|by| answer.replacen(&digits, &other(by), 1)).to_vec();
    }
    let has_digits = |other: &str| other.contains(|c: char| c.is_ascii_digit());
    let usable = others.iter().filter(|other| *other != answer && !has_digits(other));
    usable.take(3).cloned().collect()
}

/// What a careful extractor answers about a section; asked again, it has no more to say.
fn extraction(ask: &ModelRequest) -> Value {
    if ask.text().contains("BEGIN MISSING") || ask.text().contains("BEGIN FAULTS") {
        return json!({"claims": [], "skipped": []});
    }
    let section = ask.block("SECTION");
    let mut claims = Vec::new();
    for case in cases().into_iter().filter(|case| section.contains(&case.text[..40])) {
        let answers: Vec<String> = case.claims.iter().map(|row| row[3].clone()).collect();
        claims.extend(case.claims.iter().filter(|row| section.contains(&row[0])).map(|row| {
            let rivals = rivals(&row[3], &answers);
            json!({"quote": row[0], "claim": row[1], "question": row[2], "claimed_answer": row[3], "rivals": rivals, "best": row[3]})
        }));
    }
    let skipped = json!({"quote": OPINION, "reason": "opinion"});
    json!({"claims": claims, "skipped": vec![skipped; section.matches(OPINION).count()]})
}

fn answer(ask: &ModelRequest) -> Value {
    match ask.task.as_str() {
        "audit" => json!({"claims": [], "missing": []}),
        "claims" => extraction(ask),
        _ => {
            let options = ask.options();
            let (letter, option) = options.iter().find(|(_, option)| !option.contains("None of")).unwrap();
            json!({"found": option, "answer": letter})
        }
    }
}

/// An answer without a word about usage.
fn without_usage(ask: &ModelRequest) -> Reply {
    let mut body: Value =
        serde_json::from_str(&ask.format.answer(&ask.model, &answer(ask).to_string())).unwrap();
    for name in ["usage", "usageMetadata"] {
        body.as_object_mut().unwrap().remove(name);
    }
    Reply::Raw(200, vec![("content-type", "application/json".to_owned())], body.to_string())
}

/// A server with three providers, and everything else as it comes.
fn config(base_url: &str) -> ServerConfig {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    let provider =
        |name: &str| format!("[providers.{name}]\nbase_url = \"{base_url}\"\napi_key_env = \"KEY\"\n");
    let providers = ["openai", "anthropic", "google"].map(provider).concat();
    std::fs::write(&file, format!("data_dir = \"/nowhere\"\n{providers}")).unwrap();
    let arguments = ServerArgs { config: Some(file), ..ServerArgs::default() };
    mk::config::load_server(&arguments, &Env::bare([("KEY", "sk-any")], NOON)).unwrap()
}

#[tokio::test]
#[allow(clippy::print_stdout, reason = "the arithmetic is for whoever asks")]
async fn a_thousand_words_cost_what_the_manual_says() {
    let provider = FakeProvider::start(without_usage).await;
    let server = Setup::new(config(&provider.base_url)).start().await;
    let text: Vec<String> = cases().iter().map(|case| format!("{}\n\n{OPINION}", case.text)).collect();
    let text = text.join("\n\n");
    let key = server.key(Service::Verify);
    let events = Events::read(server.verify(&key, &json!({"fact": text})).send().await.unwrap()).await;
    let response = events.end("completed");
    assert_eq!(response["audited"], true, "{response}");

    let words = f64::from(u32::try_from(text.split_whitespace().count()).unwrap());
    let claims = f64::from(u32::try_from(events.results().len()).unwrap());
    // Some are not asked, as the rivals made here for ranges overlap; real ones need not.
    let drafted: usize = cases().iter().map(|case| case.claims.len()).sum();
    let drafted = f64::from(u32::try_from(drafted).unwrap());
    let per_1000 = drafted / words * 1000.0;
    println!("{words} words, {drafted} claims ({per_1000:.0} in 1,000 words), {claims} asked");
    let requests = provider.requests();
    println!("skipped: {}", response["skipped"]);
    assert!((per_1000 - CLAIMS_PER_1000_WORDS).abs() < 8.0, "{drafted} claims of {words} words");
    for task in ["claims", "audit", "answer"] {
        let calls = requests.iter().filter(|ask| ask.task == task);
        let characters: Vec<usize> = calls.map(|ask| ask.text().chars().count()).collect();
        let (calls, characters) = (characters.len(), characters.iter().sum::<usize>());
        println!("{task}: {calls} calls, {} tokens of prompt each", characters / 4 / calls);
    }
    for model in response["tokenUsage"]["modelUsage"].as_array().unwrap() {
        println!(
            "{}: {} in, {} out, {} USD",
            model["model"], model["promptTokens"], model["completionTokens"], model["cost_usd"]
        );
    }
    let cost = response["cost_usd"].as_f64().unwrap();
    // What the claims of 1,000 words cost: each is drafted and audited, and then put to the panel.
    let url = format!("{}/verify/v1/extract", server.base);
    let extract = client().post(url).bearer_auth(&key).json(&json!({"fact": text}));
    let extracted: Value = extract.send().await.unwrap().json().await.unwrap();
    let drafting = extracted["cost_usd"].as_f64().unwrap();
    let (a_draft, a_vote) = (drafting / drafted, (cost - drafting) / claims);
    let of_1000 = (a_draft + a_vote) * CLAIMS_PER_1000_WORDS;
    println!(
        "{cost} USD: {a_draft:.5} to draft a claim, {a_vote:.5} to ask it; {of_1000:.3} for 1,000 words"
    );
    assert!(of_1000 <= MOST, "{of_1000}");
    let said = format!(
        "1,000 words of dense prose (about {CLAIMS_PER_1000_WORDS:.0} claims) cost at most ${MOST:.2}"
    );
    assert!(MANUAL.contains(&said), "man/mk-verification.7.md should say: {said}");
}
