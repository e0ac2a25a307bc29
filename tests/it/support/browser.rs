//! A browser using the console, as far as the server can tell: it keeps the session cookie and sends `Origin`.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::server::{TestServer, client};

/// A browser with a session.
pub struct Browser {
    base: String,
    /// `name=value`.
    pub cookie: String,
}

impl Browser {
    /// Logs in with this console key.
    pub async fn log_in(server: &TestServer, key: &str) -> Self {
        let response = log_in(server, key).await;
        assert_eq!(response.status(), 201);
        Self::with(server, &set_cookie(&response))
    }

    /// A browser holding the cookie from this `Set-Cookie` header.
    pub fn with(server: &TestServer, set_cookie: &str) -> Self {
        Self::at(&server.base, set_cookie)
    }

    /// As [`Self::with`], for the server with this base address.
    pub fn at(base: &str, set_cookie: &str) -> Self {
        let cookie = set_cookie.split(';').next().unwrap().to_owned();
        Self { base: base.to_owned(), cookie }
    }

    /// The cookie's value.
    pub fn token(&self) -> &str {
        self.cookie.split_once('=').unwrap().1
    }

    /// A request with the cookie but without `Origin`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        client().request(method, format!("{}{path}", self.base)).header("cookie", &self.cookie)
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    /// Sends a writing request with the server's own origin.
    pub async fn write(&self, method: Method, path: &str, body: &Value) -> Response {
        let request = self.request(method, path).header("origin", &self.base).json(body);
        request.send().await.unwrap()
    }
}

/// Tries to log in and returns the response.
pub async fn log_in(server: &TestServer, key: &str) -> Response {
    let post = client().post(format!("{}/v1/auth/session", server.base));
    post.json(&json!({"key": key})).send().await.unwrap()
}

/// The only `Set-Cookie` header of a response.
pub fn set_cookie(response: &Response) -> String {
    let mut found = response.headers().get_all("set-cookie").iter();
    let value = found.next().expect("no Set-Cookie header").to_str().unwrap().to_owned();
    assert!(found.next().is_none(), "two Set-Cookie headers");
    value
}

/// Whether the gate admitted the request.
pub fn is_let_in(response: &Response) -> bool {
    ![401, 403, 429, 503].contains(&response.status().as_u16())
}

/// Status and error code of a response; the code is empty if it is not an error.
pub async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

/// The audit log of a server, oldest first: action, channel, actor, object and the object's name.
pub fn audit(server: &TestServer) -> Vec<[String; 5]> {
    let file = server.dir.path().join("data/mk.db");
    let db = rusqlite::Connection::open(file).unwrap();
    let mut query = db
        .prepare(
            "SELECT action, channel, coalesce(actor, actor_name, ''), object, coalesce(object_name, '')
             FROM audit WHERE address IS NOT NULL AND request_id IS NOT NULL ORDER BY id",
        )
        .unwrap();
    let rows =
        query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]));
    rows.unwrap().map(Result::unwrap).collect()
}
