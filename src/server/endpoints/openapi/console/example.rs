//! Example records of one app.

use serde_json::{Value, json};

const APP: &str = "app_019aa0e7c2f47b1c8d3e5f60718293a4";
const KEY: &str = "key_019aa0e7c2f47b1c8d3e5f60718293a5";
const NOW: &str = "2026-11-20T19:26:00.123Z";

/// An app's usage of a model, as a table.
pub(super) const USAGE_CSV: &str = "\
day,model,requests,attempts,errors,prompt_tokens,completion_tokens,total_tokens,cost_usd,unpriced_attempts,cached_tokens,cache_write_tokens,estimated_attempts\r
2026-11-20,openai/gpt-5.4-mini,12,13,1,4210,1830,6040,0.0047125,0,1024,0,1\r
";

/// The same usage as a statement.
pub(super) const STATEMENT_CSV: &str = "\
app_id,app,month,service,key_id,key,model,requests,attempts,errors,prompt_tokens,completion_tokens,total_tokens,cost_usd,unpriced_attempts,cached_tokens,cache_write_tokens,estimated_attempts\r
app_019aa0e7c2f47b1c8d3e5f60718293a4,website,2026-11,verify,key_019aa0e7c2f47b1c8d3e5f60718293a5,ci,openai/gpt-5.4-mini,12,13,1,4210,1830,6040,0.0047125,0,1024,0,1\r
";

/// The last page of a list, with one record.
pub(super) fn page(record: &Value) -> Value {
    json!({"data": [record], "next_cursor": null})
}

pub(super) fn app() -> Value {
    json!({
        "id": APP,
        "name": "website",
        "budget_usd": 100.0,
        "spent_usd": 12.5,
        "budget_used_percent": 12.5,
        "budget_threshold": null,
        "created_at": NOW,
        "active_keys": 2,
    })
}

pub(super) fn try_offer() -> Value {
    let mut model = super::super::example::models()["data"][0].clone();
    model["is_simulated"] = false.into();
    json!({
        "domains": [
            {"domain": "general", "panel": 3, "is_simulated": false},
            {"domain": "legal", "panel": 3, "is_simulated": false},
        ],
        "default_model": model["id"],
        "models": [model],
    })
}

pub(super) fn deleted_app() -> Value {
    json!({"id": APP, "deleted_at": NOW, "revoked_keys": 2})
}

pub(super) fn key() -> Value {
    json!({
        "id": KEY,
        "app_id": APP,
        "app": "website",
        "service": "verify",
        "name": "ci",
        "last4": "hU6i",
        "state": "active",
        "created_at": NOW,
        "expires_at": "2027-02-18T19:26:00.123Z",
        "last_used_at": null,
        "revoked_at": null,
        "replaced_by": null,
        "limits": {"per_minute": 120, "per_day": null},
        "models": [],
        "addresses": ["10.0.0.0/8"],
        "budget_usd": 20.0,
        "spent_usd": 0.004_712_5,
        "budget_used_percent": 0.0,
        "budget_threshold": null,
        "cache": null,
        "verify": null,
        "end_users": null,
    })
}

pub(super) fn narrow_key() -> Value {
    json!({
        "service": "inference",
        "name": "ci",
        "expires_at": "2027-02-18T19:26:00Z",
        "limits": {"per_minute": 120, "per_day": 0},
        "models": ["openai/*"],
        "addresses": ["10.0.0.0/8"],
        "budget_usd": 20,
        "cache": "1h",
        "verify": "flag",
        "end_users": {"per_minute": 20, "budget_usd_per_month": 5},
    })
}

pub(super) fn created_key() -> Value {
    with_key(key(), "mk_verify_4fJ0aQx7LmZp2VtYb8RnKcWdEs1GhU6i")
}

pub(super) fn revoked_key() -> Value {
    json!({"id": KEY, "revoked_at": NOW})
}

pub(super) fn own_key() -> Value {
    json!({
        "key": key(),
        "minute": {"limit": 120, "remaining": 119, "reset": 1_795_202_820},
        "day": {"limit": 1000, "remaining": 999, "reset": 1_795_219_200},
        "usage": sums(),
    })
}

pub(super) fn session() -> Value {
    json!({
        "key": console_key(),
        "expires_at": "2026-11-21T07:26:00.123Z",
        "idle_seconds": 1800,
        "mode": "live",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

pub(super) fn set_up() -> Value {
    let created = with_key(console_key(), "mk_console_4fJ0aQx7LmZp2VtYb8RnKcWdEs1GhU6i");
    json!({"created": created, "session": session()})
}

pub(super) fn usage() -> Value {
    let mut row = json!({"day": "2026-11-20", "model": "openai/gpt-5.4-mini"});
    merge(&mut row, sums());
    json!({
        "from": "2026-11-01",
        "to": "2026-11-20",
        "by": ["day", "model"],
        "data": [row],
        "totals": sums(),
        "next_cursor": null,
    })
}

pub(super) fn billing() -> Value {
    json!({
        "month": "2026-11",
        "ends_at": "2026-12-01T00:00:00.000Z",
        "month_to_date": sums(),
        "forecast": {"cost_usd": 0.0071, "per_day_usd": 0.000_236, "based_on_days": 19.8},
        "budgets": [{
            "id": APP,
            "name": "website",
            "app_id": APP,
            "budget_usd": 100.0,
            "spent_usd": 52.1,
            "used_percent": 52.1,
            "threshold": 50,
        }],
    })
}

pub(super) fn statement() -> Value {
    let mut line = json!({"service": "verify", "key_id": KEY, "key": "ci", "model": "openai/gpt-5.4-mini"});
    merge(&mut line, sums());
    json!({
        "app_id": APP,
        "app": "website",
        "month": "2026-11",
        "is_preliminary": true,
        "created_at": NOW,
        "budget_usd": 100.0,
        "lines": [line],
        "totals": sums(),
    })
}

pub(super) fn audit_entry() -> Value {
    json!({
        "id": "aud_019aa0e7c2f47b1c8d3e5f60718293a7",
        "at": NOW,
        "actor": "key_019aa0e7c2f47b1c8d3e5f60718293a6",
        "actor_name": "operations",
        "channel": "api",
        "action": "key.created",
        "object": KEY,
        "object_name": "ci",
        "details": {"service": "verify"},
        "address": "192.0.2.7",
        "request_id": "req_019aa0e7c2f47b1c8d3e5f60718293a8",
    })
}

fn console_key() -> Value {
    let mut key = key();
    let own = json!({
        "id": "key_019aa0e7c2f47b1c8d3e5f60718293a6",
        "service": "console",
        "name": "operations",
        "expires_at": null,
        "budget_usd": null,
        "spent_usd": 0.0,
        "budget_used_percent": null,
    });
    merge(&mut key, own);
    key
}

fn with_key(record: Value, key: &str) -> Value {
    let mut created = json!({"key": key});
    merge(&mut created, record);
    created
}

fn sums() -> Value {
    json!({
        "requests": 12,
        "attempts": 13,
        "errors": 1,
        "prompt_tokens": 4210,
        "completion_tokens": 1830,
        "total_tokens": 6040,
        "cost_usd": 0.004_712_5,
        "unpriced_attempts": 0,
        "cached_tokens": 1024,
        "cache_write_tokens": 0,
        "estimated_attempts": 1,
    })
}

fn merge(to: &mut Value, more: Value) {
    if let (Value::Object(to), Value::Object(more)) = (to, more) {
        to.extend(more);
    }
}
