//! Apps.

use serde_json::{Value, json};

use super::super::operation::{at, json_like};
use super::super::schemas::Schemas;
use super::example;
use super::{END, READ, READ_ONE, WRITE, budget, name, operation};
use crate::api::console::{App, DeletedApp, Page};
use crate::keys::MAX_APP_NAME_CHARS;

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let (app, page) = (schemas.answer::<App>(), schemas.answer::<Page<App>>());
    let new = schemas.write("NewApp", new_app());
    let changes = schemas.write("AppChanges", changes());
    let deleted = schemas.answer::<DeletedApp>();
    let list = operation(
        "Apps",
        "listApps",
        "List apps",
        "Oldest first. Those that were deleted are not among them.",
    )
    .takes(&["Limit", "AppCursor"])
    .answers(200, "A page of apps.", json_like(&page, &example::page(&example::app())), &["Cache-Control"])
    .fails(&READ);
    let create = operation("Apps", "createApp", "Make an app", "Names are unique; a taken one is a 409.")
        .body(
            &new,
            &[
                ("plain", json!({"name": "website"})),
                ("budget", json!({"name": "website", "budget_usd": 100})),
            ],
        )
        .answers(201, "The app.", json_like(&app, &example::app()), &["Location", "Cache-Control"])
        .fails(&WRITE);
    let show = operation("Apps", "getApp", "Show an app", "By its id. One that was deleted is a 404.")
        .takes(&["AppId"])
        .answers(200, "The app.", json_like(&app, &example::app()), &["Cache-Control"])
        .fails(&READ_ONE);
    let update = operation("Apps", "updateApp", "Change an app", "Holds from the next request on.")
        .takes(&["AppId"])
        .body(&changes, &[("rename", json!({"name": "shop"})), ("unlimited", json!({"budget_usd": null}))])
        .answers(200, "The app as it is now.", json_like(&app, &example::app()), &["Cache-Control"])
        .fails(&WRITE);
    let delete = operation(
        "Apps",
        "deleteApp",
        "Delete an app",
        "Revokes its keys for ever and keeps its usage. May be repeated. The last app cannot go (409).",
    )
    .takes(&["AppId"])
    .answers(200, "It is deleted.", json_like(&deleted, &example::deleted_app()), &["Cache-Control"])
    .fails(&END);
    vec![
        at("/v1/apps", [("get", list), ("post", create)]),
        at("/v1/apps/{app_id}", [("get", show), ("patch", update), ("delete", delete)]),
    ]
}

fn new_app() -> Value {
    json!({
        "type": "object",
        "description": "A new app.",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": name(MAX_APP_NAME_CHARS, "Unique among the apps."),
            "budget_usd": budget("The app's"),
        },
    })
}

fn changes() -> Value {
    let mut schema = new_app();
    schema["description"] = "What is to change of an app; the rest stays.".into();
    schema["required"] = json!([]);
    schema
}
