//! Apps.

use serde_json::{Value, json};

use super::super::operation::{json_with_example, path};
use super::super::schemas::Schemas;
use super::{DELETE, READ, READ_ONE, WRITE, budget, example, name, operation};
use crate::api::console::{App, DeletedApp, Page};
use crate::api::endpoint::Endpoint;
use crate::keys::MAX_APP_NAME_CHARS;

pub(super) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let (app, page) = (schemas.response::<App>(), schemas.response::<Page<App>>());
    let new = schemas.add("NewApp", new_app());
    let changes = schemas.add("AppChanges", changes());
    let deleted = schemas.response::<DeletedApp>();
    let list = operation("Apps", "listApps", "List apps", "Deleted apps are not listed.")
        .parameters(&["Order", "Limit", "AppCursor"])
        .response(
            200,
            "A page of apps.",
            json_with_example(&page, &example::page(&example::app())),
            &["Cache-Control"],
        )
        .errors(&READ);
    let create = operation("Apps", "createApp", "Create an app", "Names are unique; a taken one is a 409.")
        .body(
            &new,
            &[
                ("plain", json!({"name": "website"})),
                ("budget", json!({"name": "website", "budget_usd": 100})),
            ],
        )
        .response(201, "The app.", json_with_example(&app, &example::app()), &["Location", "Cache-Control"])
        .errors(&WRITE);
    let show = operation("Apps", "getApp", "Show an app", "By its id. A deleted app is a 404.")
        .parameters(&["AppId"])
        .response(200, "The app.", json_with_example(&app, &example::app()), &["Cache-Control"])
        .errors(&READ_ONE);
    let update = operation("Apps", "updateApp", "Change an app", "Applies from the next request.")
        .parameters(&["AppId"])
        .body(&changes, &[("rename", json!({"name": "shop"})), ("unlimited", json!({"budget_usd": null}))])
        .response(200, "The app as it is now.", json_with_example(&app, &example::app()), &["Cache-Control"])
        .errors(&WRITE);
    let delete = operation(
        "Apps",
        "deleteApp",
        "Delete an app",
        "Permanently revokes its keys and keeps its usage. May be repeated. The last app cannot be deleted (409).",
    )
    .parameters(&["AppId"])
    .response(200, "It is deleted.", json_with_example(&deleted, &example::deleted_app()), &["Cache-Control"])
    .errors(&DELETE);
    vec![
        path(Endpoint::Apps, [("get", list), ("post", create)]),
        path(Endpoint::App, [("get", show), ("patch", update), ("delete", delete)]),
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
    schema["description"] = "The changes to an app; other fields stay unchanged.".into();
    schema["required"] = json!([]);
    schema
}
