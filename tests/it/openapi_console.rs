//! Console requests that write: the server accepts exactly what `/openapi.json` describes.

use mk::api::Service;
use serde_json::{Value, json};

use crate::openapi_requests::each;
use crate::support::description::Description;
use crate::support::server::{Setup, client, sandbox};

#[tokio::test]
async fn app_and_key_requests_are_accepted_as_described() {
    let server = Setup::new(sandbox()).start().await;
    let (key, _) =
        server.key_with(Service::Console, |new| (new.per_minute, new.per_day) = (Some(0), Some(0)));
    // Keys of this service have all settings.
    let (_, asking) = server.key_with(Service::Inference, |_| {});
    let app = server.app.store.apps().unwrap().remove(0).id;
    let description = Description::of(&server).await;
    let (apps, keys) = ("/v1/apps".to_owned(), format!("/v1/apps/{app}/keys"));
    let rotation = format!("{keys}/{asking}/rotate");
    let cases = [
        ("NewApp", "POST", &apps, json!({"name": "a"})),
        ("AppChanges", "PATCH", &format!("{apps}/{app}"), json!({})),
        ("NewKey", "POST", &keys, json!({"service": "inference"})),
        ("KeyChanges", "PATCH", &format!("{keys}/{asking}"), json!({})),
        // Last, as it replaces the key.
        ("Rotation", "POST", &rotation, json!({"grace_seconds": 60})),
    ];
    for (name, method, path, base) in cases {
        let schema = description.named(name);
        let mut bodies = vec![json!([]), json!({"nonsense": 1})];
        let properties = description.0["components"]["schemas"][name]["properties"].as_object().unwrap();
        for field in properties.keys() {
            bodies.extend(each(&base, field, &values(field)));
        }
        for body in bodies {
            let request = client().request(method.parse().unwrap(), format!("{}{path}", server.base));
            let response = request.bearer_auth(&key).json(&body).send().await.unwrap();
            let (status, answer) = (response.status().as_u16(), response.text().await.unwrap());
            assert!([200, 201, 400, 409].contains(&status), "{status}: {answer}");
            assert_eq!(status != 400, schema.is_valid(&body), "{name} {body:.200}: {answer}");
        }
    }
}

/// Valid and invalid values of a field.
fn values(field: &str) -> Vec<Value> {
    let text = |length: usize| json!("é".repeat(length));
    let mut all = match field {
        "name" => vec![
            json!("b"),
            json!(""),
            json!("  "),
            json!("a\u{1b}b"),
            text(64),
            text(65),
            text(100),
            text(101),
        ],
        "service" => vec![json!("verify"), json!("inference"), json!("console"), json!("chat")],
        "budget_usd" => vec![json!(0), json!(0.5), json!(-1), json!(1e9), json!(1_000_000_001), json!("5")],
        "expires_at" => {
            vec![json!("2027-01-31"), json!("2027-01-31T12:00:00Z"), json!("tomorrow"), json!("")]
        }
        "limits" => {
            let each = [
                json!(0),
                json!(7),
                json!(4_294_967_295_u64),
                json!(4_294_967_296_u64),
                json!(-1),
                json!("7"),
                Value::Null,
            ];
            let limits = each.iter().map(|limit| json!({"per_minute": limit, "per_day": limit}));
            limits.chain([json!({}), json!({"per_hour": 1}), json!([])]).collect()
        }
        "models" => {
            let patterns = ["*", "openai/*", "a/b/c", "openai", "a/", "/a", "a/b c", "a b/c", "a/*b"];
            patterns
                .iter()
                .map(|pattern| json!([pattern]))
                .chain([json!(vec!["*"; 101]), json!("*"), json!([])])
                .collect()
        }
        "cache" => ["1h", "1d12h", "30d", "1x", "", "h"].map(Value::from).to_vec(),
        "verify" => ["flag", "block", "off", ""].map(Value::from).to_vec(),
        // The schema does not say what a valid address is, except in its description.
        "addresses" => {
            vec![
                json!([]),
                json!(["10.0.0.0/8"]),
                json!("10.0.0.0/8"),
                json!([1]),
                json!(vec!["10.0.0.1"; 101]),
            ]
        }
        _ => vec![
            json!(0),
            json!(60),
            json!(31_622_400),
            json!(31_622_401),
            json!(-1),
            json!(1.5),
            json!("60"),
        ],
    };
    all.extend([json!(true), Value::Null]);
    all
}
