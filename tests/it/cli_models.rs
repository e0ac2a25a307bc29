//! `mk models`: a table on a terminal, lines in a pipe, or JSON.

use serde_json::{Value, json};

use crate::support::chat::gateway;
use crate::support::mk::{INFERENCE_KEY, Mk};
use crate::support::provider::stream;
use crate::support::pty;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_s_models_are_listed_with_known_prices() {
    let gateway = gateway(|_| stream(&["The Eiffel Tower is in Paris."])).await;
    let call = Mk::new()
        .args(["models"])
        .env("MK_SERVER", &gateway.server.base)
        .env("MK_INFERENCE_KEY", &gateway.key);
    let ran = call.run_beside().await;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[..2], ["fake/m\t1\t2\t-\t-\t-\t-", "fake/n\t-\t-\t-\t-\t-\t-"], "{ran:?}");
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    let document = call.clone().args(["--json"]).run_beside().await.json();
    assert_eq!((&document["schema"], &document["exit"]), (&json!("mk.models/1"), &json!(0)));
    assert_eq!(document["models"][0]["output_usd_per_mtok"], 2.0);
    assert_eq!(document["models"][1].get("output_usd_per_mtok"), None);
    let refused = call.env("MK_INFERENCE_KEY", INFERENCE_KEY).args(["--json"]).run_beside().await;
    assert_eq!((refused.code(), &refused.json()["exit"]), (4, &json!(4)));
}

#[test]
fn local_models_are_listed_with_catalogue_data() {
    let ran = Mk::new()
        .args(["models", "--local", "--json"])
        .env("OPENAI_API_KEY", "sk-x")
        .env("MISTRAL_API_KEY", "x")
        .run();
    assert_eq!(ran.code(), 0, "{ran:?}");
    let document = ran.json();
    let models = document["models"].as_array().unwrap();
    let known: Vec<&Value> = models.iter().filter(|model| model["id"] == "openai/gpt-5.4-mini").collect();
    assert_eq!(known.len(), 1);
    assert_eq!(
        (&known[0]["input_usd_per_mtok"], &known[0]["output_usd_per_mtok"]),
        (&json!(0.75), &json!(4.5))
    );
    assert_eq!(known[0]["max_output_tokens"], 128_000);
    assert!(models.iter().any(|model| model["deprecation_date"].is_string()));
    assert!(models.iter().all(|model| model["id"] != "openai/gpt-4"), "it is retired");
}

#[test]
fn a_terminal_gets_a_table() {
    let shown = pty::run(&Mk::new().args(["models", "--sandbox"]), 100, 30).last;
    for words in ["SANDBOX", "model", "$/M in", "context", "sandbox/alpha"] {
        assert!(shown.contains(words), "{words:?} is not in\n{shown}");
    }
}

#[test]
fn a_table_of_real_models_fits_80_columns() {
    let call = Mk::new().args(["models", "--local"]).env("ANTHROPIC_API_KEY", "x").env("GEMINI_API_KEY", "x");
    let shown = pty::run(&call, 80, 120).last;
    for words in ["model", "$/M in", "retired on"] {
        assert!(shown.contains(words), "{words:?} is not in\n{shown}");
    }
    let line = shown.lines().find(|line| line.contains("anthropic/claude-haiku-4-5 ")).unwrap_or_default();
    assert!(line.contains(" 1 ") && line.contains(" 5 "), "one line per model:\n{shown}");
}
