//! Usage, billing, statements and the audit log.

use serde_json::{Value, json};

use super::super::operation::{either, json_with_example, path, text};
use super::super::schemas::Schemas;
use super::{READ, READ_ONE, WRITE, example, operation};
use crate::api::console::{
    AuditEntry, Billing, Dimension, ForgetUser, ForgottenUser, Page, Statement, UsageReport,
};
use crate::api::endpoint::Endpoint;

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    schemas.response::<Dimension>();
    let (report, bill) = (schemas.response::<UsageReport>(), schemas.response::<Billing>());
    let (asked, forgotten) = (schemas.request::<ForgetUser>(), schemas.response::<ForgottenUser>());
    let (statement, entries) = (schemas.response::<Statement>(), schemas.response::<Page<AuditEntry>>());
    let usage = operation(
        "Usage",
        "getUsage",
        "Sum usage",
        "By UTC day, by default of the last 30 days. With `Accept: text/csv`, as a table.",
    )
    .parameters(&["From", "To", "By", "AppFilter", "KeyFilter", "AskingFilter", "ModelFilter"])
    .response(
        200,
        "The sums.",
        either(
            json_with_example(&report, &example::usage()),
            text("text/csv", "One line per row, below the column names.", example::USAGE_CSV),
        ),
        &["Cache-Control"],
    )
    .errors(&READ);
    let forget = operation(
        "Usage",
        "forgetUser",
        "Forget an end user",
        "Deletes their sums and what is counted against their limits. What they used stays in all other sums.",
    )
    .body(&asked, &[("all_apps", json!({"user": "user-4711"}))])
    .response(
        200,
        "They are forgotten.",
        json_with_example(&forgotten, &json!({"forgotten_sums": 31, "forgotten_at": "2026-11-20T19:26:00.123Z"})),
        &["Cache-Control"],
    )
    .errors(&WRITE);
    let billing = operation(
        "Usage",
        "getBilling",
        "Show the month so far",
        "Costs, budgets and a forecast for this UTC month.",
    )
    .response(200, "The month.", json_with_example(&bill, &example::billing()), &["Cache-Control"])
    .errors(&READ);
    let stated = operation(
        "Usage",
        "getStatement",
        "An app's statement for a month",
        "One line per service, key and model. With `Accept: text/csv`, as a table.",
    )
    .parameters(&["AppId", "Month"])
    .response(
        200,
        "The statement.",
        either(
            json_with_example(&statement, &example::statement()),
            text(
                "text/csv",
                "One line per line of the statement, below the column names.",
                example::STATEMENT_CSV,
            ),
        ),
        &["Cache-Control"],
    )
    .errors(&READ_ONE);
    let audit =
        operation("Usage", "listAudit", "Show the audit log", "Newest first. Entries are never changed.")
            .parameters(&[
                "ObjectFilter",
                "ObjectNameFilter",
                "AppAndKeysFilter",
                "ActorFilter",
                "ActorNameFilter",
                "ActionFilter",
                "Limit",
                "EntryCursor",
            ])
            .response(
                200,
                "A page of entries.",
                json_with_example(&entries, &example::page(&example::audit_entry())),
                &["Cache-Control"],
            )
            .errors(&READ);
    vec![
        path(Endpoint::Usage, [("get", usage)]),
        path(Endpoint::ForgetUser, [("post", forget)]),
        path(Endpoint::Billing, [("get", billing)]),
        path(Endpoint::Statement, [("get", stated)]),
        path(Endpoint::Audit, [("get", audit)]),
    ]
}
