//! Simulated models, in-process, for first steps, client tests and demonstrations.
//!
//! They take the same prompts as real models and answer in the same form, so everything around them works as in
//! production. All of them extract claims in the same way; as a panel they differ deliberately:
//!
//! | model | |
//! |---|---|
//! | `alpha`, `extractor`, `auditor` | right about everything in `data/facts.tsv` |
//! | `beta` | believes common misconceptions, such as Sydney for Australia's capital |
//! | `gamma` | abstains on chemistry and on what is disputed |
//! | `delta` | abstains on history and law |
//!
//! With the panel alpha, beta and gamma, and two matching answers required:
//!
//! | statement | outcome |
//! |---|---|
//! | The Eiffel Tower is in Paris. | TRUE, 3/3 |
//! | The capital of Australia is Canberra. | TRUE, 2/3: beta says Sydney |
//! | The capital of Australia is Sydney. | FALSE, 2/3 |
//! | Gold has the chemical symbol Au. | TRUE, 2/3: gamma cannot tell |
//! | The Nile is the longest river in the world. | NO CONSENSUS: as claimed, the Amazon, cannot tell |
//! | Bees make honey. | NO CONSENSUS: nobody can tell |
//!
//! With a context, the answer is the one option that the context names. The trigger words of `triggers` in a statement
//! make models fail, stall, refuse or answer garbage. Nothing here is evidence of anything, and every place that shows
//! a simulated answer says so.

mod answer;
mod audit;
pub(super) mod chat;
mod embeddings;
mod extract;
mod knowledge;
mod open;
mod reading;
mod recognise;
mod script;

use std::time::Duration;

use tokio::time::sleep;

use super::catalog::estimate;
use super::{Answer, Chat, FailedCall, Failure, Finish};
use crate::money::Tokens;
use crate::net::thread_pool::ThreadPool;
use reading::fences;
use reading::triggers::{self, Act};

/// The names of the simulated models.
pub const MODELS: [&str; 6] = ["extractor", "alpha", "beta", "gamma", "delta", "auditor"];

/// The schema names that identify the tasks; see [`super::Schema::name`].
const EXTRACTION: &str = "claims";
const PANEL: &str = "answer";
const AUDIT: &str = "audit";

/// Where models are simulated: reading a long text takes seconds, in which connections would stand still.
static THREAD: ThreadPool = ThreadPool::new("sandbox", 1, Duration::MAX);

/// Answers a prompt as `model` would.
///
/// # Errors
/// [`Failure::UnknownModel`] for models that are not in [`MODELS`], and the failures that trigger words ask for.
pub(super) async fn complete(chat: Chat, model: &str) -> Result<Answer, FailedCall> {
    if !MODELS.contains(&model) {
        return Err(Failure::UnknownModel.into());
    }
    let name = model.to_owned();
    let simulated = THREAD.run(move || Simulated::of(&chat, &name)).await;
    // No thread, or a defect in here: as from a real provider in trouble.
    let Simulated { acts, text, prompt } =
        simulated.map_err(|_| Failure::Broken { status: 500, retry_after: None })?;
    if acts.contains(&Act::Slow) {
        sleep(latency(model)).await;
    }
    if acts.contains(&Act::Stall) {
        std::future::pending::<()>().await;
    }
    if acts.contains(&Act::Fail) {
        return Err(Failure::Broken { status: 500, retry_after: None }.into());
    }
    if acts.contains(&Act::Refuse) {
        let usage = Some(Tokens::of_prompt(prompt));
        return Err(FailedCall { failure: Failure::Refused, usage });
    }
    let garbage = "Well, that depends.\n```\n{\"answer\": [42";
    let text = if acts.contains(&Act::Garbage) { garbage.to_owned() } else { text };
    let completion = estimate::text_tokens(&text);
    let usage = Some(Box::new(Tokens::new(prompt, completion)));
    Ok(Answer { text, finish: Finish::Stop, usage, model: Answer::reported_model(model) })
}

/// What a model does with a prompt.
struct Simulated {
    acts: Vec<Act>,
    text: String,
    /// The prompt's tokens.
    prompt: u64,
}

impl Simulated {
    fn of(chat: &Chat, model: &str) -> Self {
        let task = chat.schema.as_ref().map_or("", |schema| schema.name);
        let (acts, text) = match task {
            EXTRACTION => extraction(chat),
            PANEL => panel(chat, model),
            AUDIT => audit(chat),
            _ => (Vec::new(), "I am a simulated model and know no other task than verification.".to_owned()),
        };
        Self { acts, text, prompt: estimate::prompt_tokens(chat) }
    }
}

fn extraction(chat: &Chat) -> (Vec<Act>, String) {
    let section = fences::block(chat, "SECTION").unwrap_or_default();
    let (_, triggers) = triggers::split(&section);
    let is_mending = fences::block(chat, "FAULTS").or_else(|| fences::block(chat, "MISSING")).is_some();
    let task = extract::Task { section: &section, is_mending };
    (triggers.iter().filter_map(triggers::Trigger::for_extraction).collect(), extract::answer(&task))
}

fn audit(chat: &Chat) -> (Vec<Act>, String) {
    let section = fences::block(chat, "SECTION").unwrap_or_default();
    let claims = fences::block(chat, "CLAIMS").unwrap_or_default();
    let (_, triggers) = triggers::split(&section);
    (triggers.iter().filter_map(triggers::Trigger::for_audit).collect(), audit::answer(&claims))
}

fn panel(chat: &Chat, model: &str) -> (Vec<Act>, String) {
    let question = fences::block(chat, "QUESTION").unwrap_or_default();
    let options = fences::block(chat, "OPTIONS").unwrap_or_default();
    let context = fences::block(chat, "CONTEXT");
    let explain =
        chat.schema.as_ref().is_some_and(|schema| schema.value()["properties"]["reason"].is_object());
    let (_, triggers) = triggers::split(&question);
    let acts = triggers.iter().filter_map(|trigger| trigger.for_panel(model)).collect();
    let task =
        answer::Task { model, question: &question, options: &options, context: context.as_deref(), explain };
    (acts, answer::answer(&task))
}

/// The latency with `[sandbox:slow]`, which differs between models so that a live view has something to show.
fn latency(model: &str) -> Duration {
    let index = MODELS.iter().position(|known| *known == model).unwrap_or_default();
    Duration::from_millis([1000, 600, 900, 1200, 1500, 700].get(index).copied().unwrap_or(1000))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::providers::{Effort, Message, Role, Schema};

    const MARKER: &str = "00112233";

    fn chat(name: &'static str, schema: Value, blocks: &[(&str, &str)]) -> Chat {
        let mut content = "Answer.\n".to_owned();
        for (label, text) in blocks {
            let fenced = format!("BEGIN {label} {MARKER}\n{text}\nEND {label} {MARKER}\n");
            content.push_str(&fenced);
        }
        let messages = vec![
            Message { role: Role::System, content: "Be exact.".into() },
            Message { role: Role::User, content: content.into() },
        ];
        Chat {
            messages,
            temperature: Some(0.0),
            max_tokens: None,
            schema: Some(Schema::new(name, schema)),
            effort: Effort::Lowest,
        }
    }

    fn question(trigger: &str) -> Chat {
        let question = format!("What is 2 + 2?{trigger}");
        let options = "A) 5\nB) 4\nC) None of these\nD) Cannot be determined";
        let schema = json!({"properties": {"reason": {}, "answer": {}}});
        chat("answer", schema, &[("QUESTION", &question), ("OPTIONS", options)])
    }

    #[tokio::test]
    async fn both_tasks_work_through_the_prompts() {
        let answer = complete(question(""), "beta").await.unwrap();
        assert_eq!(answer.text, r#"{"found":"4","reason":"My table of facts says: 4.","answer":"B"}"#);
        assert!(answer.usage.unwrap().prompt > 10);
        let extraction = chat("claims", json!({}), &[("SECTION", "2 + 2 = 5")]);
        let text = complete(extraction.clone(), "delta").await.unwrap().text;
        assert!(text.contains(r#""claimed_answer":"5""#), "{text}");
    }

    /// The votes of alpha, beta and gamma on a statement's only claim: as claimed (T), another answer (F), cannot tell
    /// (U).
    async fn votes(statement: &str) -> String {
        let extraction = chat("claims", json!({}), &[("SECTION", statement)]);
        let extracted = complete(extraction.clone(), "extractor").await.unwrap().text;
        let claim = serde_json::from_str::<Value>(&extracted).unwrap()["claims"][0].clone();
        let rivals = claim["rivals"].as_array().unwrap();
        let mut texts: Vec<&str> = rivals.iter().map(|rival| rival.as_str().unwrap()).collect();
        texts.insert(1, claim["claimed_answer"].as_str().unwrap());
        texts.extend(["None of these", "Cannot be determined"]);
        let last = char::from(b'A' + u8::try_from(texts.len()).unwrap() - 1);
        let options: Vec<String> = ('A'..).zip(&texts).map(|(key, text)| format!("{key}) {text}")).collect();
        let blocks = [("QUESTION", claim["question"].as_str().unwrap()), ("OPTIONS", &options.join("\n"))];
        let question = chat("answer", json!({}), &blocks);
        let mut votes = String::new();
        for model in ["alpha", "beta", "gamma"] {
            let answer: Value =
                serde_json::from_str(&complete(question.clone(), model).await.unwrap().text).unwrap();
            votes.push(match answer["answer"].as_str().unwrap() {
                "B" => 'T',
                key if key == last.to_string() => 'U',
                _ => 'F',
            });
        }
        votes
    }

    #[tokio::test]
    async fn the_documented_statements_have_the_documented_outcomes() {
        for (statement, expected) in [
            ("The Eiffel Tower is in Paris.", "TTT"),
            ("The Eiffel Tower was completed in 1925.", "FFF"),
            ("The capital of Australia is Canberra.", "TFT"),
            ("The capital of Australia is Sydney.", "FTF"),
            ("The capital of Australia is not Sydney.", "TFT"),
            ("Gold has the chemical symbol Au.", "TTU"),
            ("The Nile is the longest river in the world.", "TFU"),
            ("Bees make honey.", "UUU"),
            ("Two plus two is five.", "FFF"),
            ("The US Constitution was signed in 1787.", "TTT"),
        ] {
            assert_eq!(votes(statement).await, expected, "{statement}");
        }
    }

    #[tokio::test]
    async fn a_repair_turn_still_sees_the_question() {
        let mut chat = question("");
        chat.messages.push(Message { role: Role::Assistant, content: "hm".into() });
        chat.messages.push(Message { role: Role::User, content: "Only the JSON, please.".into() });
        assert!(complete(chat, "alpha").await.unwrap().text.contains(r#""answer":"B""#));
    }

    #[tokio::test]
    async fn triggers_affect_the_models_that_they_name() {
        let failure = |failed: FailedCall| failed.failure;
        let fail = complete(question(" [sandbox:fail=beta]"), "beta").await.map_err(failure);
        assert_eq!(fail, Err(Failure::Broken { status: 500, retry_after: None }));
        assert!(complete(question(" [sandbox:fail=beta]"), "alpha").await.is_ok());
        let refusal = complete(question(" [sandbox:refuse]"), "alpha").await.unwrap_err();
        assert_eq!(refusal.failure, Failure::Refused);
        assert!(refusal.usage.is_some());
        let garbage = complete(question(" [sandbox:garbage]"), "alpha").await.unwrap();
        assert!(serde_json::from_str::<Value>(&garbage.text).is_err());
        let stalled = question(" [sandbox:stall]");
        let stall = tokio::time::timeout(Duration::from_millis(50), complete(stalled, "alpha")).await;
        assert!(stall.is_err());
        let extraction = chat("claims", json!({}), &[("SECTION", "2 + 2 = 5 [sandbox:fail=extractor]")]);
        assert!(complete(extraction.clone(), "alpha").await.is_err());
    }

    #[tokio::test]
    async fn a_long_text_is_not_read_on_the_thread_of_connections() {
        let text = "The museum of the town was built by a famous architect. ".repeat(400);
        let extraction = chat("claims", json!({}), &[("SECTION", &text)]);
        let mut reading = std::pin::pin!(complete(extraction.clone(), "extractor"));
        assert!(futures_util::poll!(&mut reading).is_pending());
        assert!(reading.await.unwrap().text.contains("famous architect"));
    }

    #[tokio::test]
    async fn other_models_are_unknown() {
        let answer = complete(question(""), "omega").await;
        assert_eq!(answer.unwrap_err().failure, Failure::UnknownModel);
    }
}
