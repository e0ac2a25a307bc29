//! Usage, billing, statements and the audit.

use serde_json::Value;

use super::super::operation::{at, either, json_like, text};
use super::super::schemas::Schemas;
use super::example;
use super::{READ, READ_ONE, operation};
use crate::api::console::{AuditEntry, Billing, Dimension, Page, Statement, UsageReport};

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    schemas.answer::<Dimension>();
    let (report, bill) = (schemas.answer::<UsageReport>(), schemas.answer::<Billing>());
    let (statement, entries) = (schemas.answer::<Statement>(), schemas.answer::<Page<AuditEntry>>());
    let usage = operation(
        "Usage",
        "getUsage",
        "Sum usage",
        "By UTC days, the last 30 unless others are asked for. With `Accept: text/csv` as a table.",
    )
    .takes(&["From", "To", "By", "AppFilter", "KeyFilter", "AskingFilter", "ModelFilter"])
    .answers(
        200,
        "The sums.",
        either(
            json_like(&report, &example::usage()),
            text("text/csv", "A line for each row, below their names.", example::USAGE_CSV),
        ),
        &["Cache-Control"],
    )
    .fails(&READ);
    let billing = operation(
        "Usage",
        "getBilling",
        "The month so far",
        "Costs, budgets and a forecast for this UTC month.",
    )
    .answers(200, "The month.", json_like(&bill, &example::billing()), &["Cache-Control"])
    .fails(&READ);
    let stated = operation(
        "Usage",
        "getStatement",
        "An app's statement for a month",
        "A line for each service, key and model. With `Accept: text/csv` as a table.",
    )
    .takes(&["AppId", "Month"])
    .answers(
        200,
        "The statement.",
        either(
            json_like(&statement, &example::statement()),
            text(
                "text/csv",
                "A line for each of the statement's, below their names.",
                example::STATEMENT_CSV,
            ),
        ),
        &["Cache-Control"],
    )
    .fails(&READ_ONE);
    let audit = operation("Usage", "listAudit", "Who did what", "Newest first. Entries are never changed.")
        .takes(&["ObjectFilter", "ActorFilter", "ActionFilter", "Limit", "EntryCursor"])
        .answers(
            200,
            "A page of entries.",
            json_like(&entries, &example::page(&example::audit_entry())),
            &["Cache-Control"],
        )
        .fails(&READ);
    vec![
        at("/v1/usage", [("get", usage)]),
        at("/v1/billing", [("get", billing)]),
        at("/v1/apps/{app_id}/statement", [("get", stated)]),
        at("/v1/audit", [("get", audit)]),
    ]
}
