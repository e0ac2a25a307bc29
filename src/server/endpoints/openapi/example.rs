//! Examples of a verification and a completion, complete and as streams.

use serde_json::{Value, json};

const MODEL: &str = "openai/gpt-5.4-mini";
const OTHER: &str = "anthropic/claude-haiku-4-5";
const CLAIM: &str = "Canberra is the capital of Australia.";

/// The key of receipts.
pub(super) fn receipt_key() -> Value {
    json!({
        "key_id": "21fe31dfa154a261",
        "algorithm": "Ed25519",
        "public_key": "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n",
    })
}

/// The result of a verification.
pub(super) fn verification() -> Value {
    json!({
        "requestId": "ver_019aa0e7c2f47b1c8d3e5f60718293a4",
        "original_fact": CLAIM,
        "results": [{
            "id": "claim_1",
            "claim": CLAIM,
            "assessment": "TRUE",
            "original_question": "Which city is the capital of Australia?",
            "original_options": options(),
            "claimed_answer": "A",
            "model_answers": answers(),
            "consensus_answer": "A",
            "reason_code": "consensus",
            "model_errors": [],
            "quote": CLAIM,
            "span": span(),
        }],
        "timestamp": "2026-11-20T19:26:00.123Z",
        "tokenUsage": {
            "promptTokens": 512,
            "completionTokens": 96,
            "totalTokens": 608,
            "extractionTokens": 268,
            "verificationTokens": 340,
            "modelUsage": [
                {"model": MODEL, "promptTokens": 360, "completionTokens": 78, "totalTokens": 438, "cost_usd": 0.000_246},
                {"model": OTHER, "promptTokens": 152, "completionTokens": 18, "totalTokens": 170, "cost_usd": null},
            ],
        },
        "minRequired": 2,
        "skipped": [],
        "complete": true,
        "audited": true,
        "auditor": OTHER,
        "coverage": {"sentences": 1, "checked": 1, "skipped": 0, "unchecked": 0},
        "domain": "general",
        "asOf": "2026-11-20T19:26:00.123Z",
        "totalModels": 2,
        "cost_usd": null,
    })
}

fn span() -> Value {
    json!({"start": 0, "end": CLAIM.chars().count()})
}

fn answers() -> Value {
    json!([
        {"model": MODEL, "answer": "A", "found": "Canberra"},
        {"model": OTHER, "answer": "A", "found": "Canberra"},
    ])
}

fn options() -> Value {
    json!({
        "A": "Canberra",
        "B": "Sydney",
        "C": "Melbourne",
        "D": "Perth",
        "E": "None of these",
        "F": "Cannot be determined",
    })
}

/// The result of an extraction.
pub(super) fn extraction() -> Value {
    let mut claim = details();
    claim["claim"] = CLAIM.into();
    claim["claimed_answer"] = "A".into();
    let mut result = verification();
    let mut extraction = json!({"claims": [claim]});
    for field in [
        "requestId",
        "original_fact",
        "skipped",
        "complete",
        "audited",
        "auditor",
        "coverage",
        "timestamp",
        "cost_usd",
        "domain",
        "asOf",
    ] {
        extraction[field] = result[field].take();
    }
    extraction["tokenUsage"] = json!({
        "promptTokens": 240,
        "completionTokens": 28,
        "totalTokens": 268,
        "extractionTokens": 268,
        "verificationTokens": 0,
        "modelUsage": [
            {"model": MODEL, "promptTokens": 240, "completionTokens": 28, "totalTokens": 268, "cost_usd": null},
        ],
    });
    extraction
}

fn details() -> Value {
    json!({
        "id": "claim_1",
        "quote": CLAIM,
        "span": span(),
        "question": "Which city is the capital of Australia?",
        "options": options(),
    })
}

/// What begins a stream.
fn first_frames() -> [(&'static str, Value); 3] {
    [
        ("starting", json!({"status": "starting", "requestId": "ver_019aa0e7c2f47b1c8d3e5f60718293a4"})),
        ("extracting_claims", json!({"status": "extracting_claims"})),
        ("claims_extracted", json!({"claims": [CLAIM], "count": 1, "skipped": [], "details": [details()]})),
    ]
}

fn frames(then: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let frames = first_frames().into_iter().chain(then);
    frames.map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect::<Vec<_>>().concat()
}

/// The same verification as a stream.
pub(super) fn stream() -> String {
    let claim_verified =
        json!({"claimIndex": 0, "assessment": "TRUE", "consensus_answer": "A", "model_answers": answers()});
    frames([
        ("verifying_claims", json!({"totalClaims": 1})),
        ("verifying_claim", json!({"claimIndex": 0, "claim": CLAIM})),
        ("claim_verified", claim_verified),
        ("completed", verification()),
    ])
}

/// The same extraction as a stream.
pub(super) fn extraction_stream() -> String {
    frames([("completed", extraction())])
}

/// A complete answer.
pub(super) fn completion() -> Value {
    let message = json!({"role": "assistant", "content": "Canberra."});
    json!({
        "id": "chatcmpl-019aa0e7c2f4",
        "object": "chat.completion",
        "created": 1_795_202_760,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage(),
    })
}

fn usage() -> Value {
    json!({"prompt_tokens": 18, "completion_tokens": 3, "total_tokens": 21})
}

/// The same answer as a stream.
pub(super) fn chunks() -> String {
    let choice = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let chunk = |choices: Value| {
        json!({
            "id": "chatcmpl-019aa0e7c2f4",
            "object": "chat.completion.chunk",
            "created": 1_795_202_760,
            "model": MODEL,
            "choices": choices,
        })
    };
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    let chunks = [
        chunk(choice(json!({"role": "assistant", "content": ""}), Value::Null)),
        chunk(choice(json!({"content": "Canberra."}), Value::Null)),
        chunk(choice(json!({}), "stop".into())),
        last,
    ];
    chunks.map(|chunk| format!("data: {chunk}\n\n")).concat() + "data: [DONE]\n\n"
}

/// A list of models.
pub(super) fn models() -> Value {
    json!({
        "object": "list",
        "data": [{
            "id": MODEL,
            "object": "model",
            "created": 1_795_202_760,
            "owned_by": "openai",
            "kind": "chat",
            "context_window": 400_000,
            "max_output_tokens": 128_000,
            "input_usd_per_mtok": 0.25,
            "output_usd_per_mtok": 2.0,
            "cached_input_usd_per_mtok": 0.025,
        }],
    })
}
