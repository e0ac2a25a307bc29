//! The endpoints: each path and its methods are stated here and nowhere else. The server routes by this table, refuses
//! other methods, counts, logs and describes what it serves; the client calls by it.
//!
//! Placeholders stand for ids. Under `/v1/` an id is one part of the path, and a trailing slash makes another path, as
//! `Location` is relative to the requested one. Elsewhere a trailing slash is ignored, and a placeholder, which is
//! always last, stands for the rest: identifiers of models and names of files have slashes in them.

use serde::Deserialize;

/// Makes of each row a variant of [`Endpoint`] and its entry in the table.
macro_rules! endpoints {
    ($($name:ident $methods:literal $path:literal,)+) => {
        /// What is served at a path.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[expect(missing_docs, reason = "the table says what each is")]
        pub enum Endpoint {
            $($name,)+
        }

        /// Each endpoint with its methods and its path, in the order of the enum.
        const TABLE: [(Endpoint, &str, &str); [$($path),+].len()] = [$((Endpoint::$name, $methods, $path),)+];
    };
}

// The methods are as `Allow` lists them; the busiest endpoints come first.
endpoints! {
    ChatCompletions "POST" "/inference/v1/chat/completions",
    Verify "POST" "/verify/v1/stream",
    Extract "POST" "/verify/v1/extract",
    VerifyHealth "GET, HEAD" "/verify/v1/health",
    InferenceHealth "GET, HEAD" "/inference/v1/health",
    Embeddings "POST" "/inference/v1/embeddings",
    Models "GET, HEAD" "/inference/v1/models",
    Model "GET, HEAD" "/inference/v1/models/{model}",
    ReceiptKey "GET, HEAD" "/verify/v1/receipt-key",
    Apps "GET, HEAD, POST" "/v1/apps",
    App "GET, HEAD, PATCH, DELETE" "/v1/apps/{app_id}",
    Keys "GET, HEAD, POST" "/v1/apps/{app_id}/keys",
    Key "GET, HEAD, PATCH, DELETE" "/v1/apps/{app_id}/keys/{key_id}",
    Rotation "POST" "/v1/apps/{app_id}/keys/{key_id}/rotate",
    Statement "GET, HEAD" "/v1/apps/{app_id}/statement",
    Try "GET, HEAD" "/v1/apps/{app_id}/try",
    TryChat "POST" "/v1/apps/{app_id}/try/chat",
    TryVerify "POST" "/v1/apps/{app_id}/try/verify",
    Usage "GET, HEAD" "/v1/usage",
    ForgetUser "POST" "/v1/usage/forget",
    Billing "GET, HEAD" "/v1/billing",
    Audit "GET, HEAD" "/v1/audit",
    OwnKey "GET, HEAD" "/v1/key",
    Session "GET, HEAD, POST, DELETE" "/v1/auth/session",
    Setup "POST" "/v1/auth/setup",
    Metrics "GET, HEAD" "/metrics",
    OpenApi "GET, HEAD" "/openapi.json",
    Dashboard "GET, HEAD" "/",
    Asset "GET, HEAD" "/assets/{file}",
    Docs "GET, HEAD" "/docs",
    Topic "GET, HEAD" "/docs/{topic}",
    Llms "GET, HEAD" "/llms.txt",
    OpenAiChatCompletions "POST" "/openai/v1/chat/completions",
    Responses "POST" "/openai/v1/responses",
    OpenAiEmbeddings "POST" "/openai/v1/embeddings",
    OpenAiModels "GET, HEAD" "/openai/v1/models",
    OpenAiModel "GET, HEAD" "/openai/v1/models/{model}",
    OpenAiBase "GET, HEAD" "/openai/v1",
    AnthropicBase "GET, HEAD" "/anthropic",
    Messages "POST" "/anthropic/v1/messages",
    CountTokens "POST" "/anthropic/v1/messages/count_tokens",
    AnthropicModels "GET, HEAD" "/anthropic/v1/models",
    AnthropicModel "GET, HEAD" "/anthropic/v1/models/{model}",
}

/// An entrance to the API, with a protocol of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The documented API: all paths but those of the other doors.
    Documented,
    /// `/openai/v1`, for what speaks chat completions or Responses.
    OpenAi,
    /// `/anthropic`, for what speaks Messages.
    Anthropic,
}

impl Door {
    /// The door that a path is behind, whether or not anything is served there.
    pub fn of(path: &str) -> Self {
        match path.split('/').nth(1) {
            Some("openai") => Self::OpenAi,
            Some("anthropic") => Self::Anthropic,
            _ => Self::Documented,
        }
    }
}

/// What begins the paths whose parts count one by one.
const CONSOLE: &str = "/v1/";

impl Endpoint {
    /// How many there are.
    pub const COUNT: usize = TABLE.len();

    /// All of them.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TABLE.iter().map(|(endpoint, ..)| *endpoint)
    }

    /// Its path, with placeholders for ids.
    pub const fn path(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// Its methods, as `Allow` lists them.
    pub const fn methods(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Whether it has this method.
    pub fn allows(self, method: &str) -> bool {
        self.methods().split(", ").any(|allowed| allowed == method)
    }

    /// The endpoint at a path. Nothing is decoded: no path that is not a placeholder needs it. An empty path, as that of
    /// `CONNECT`, is the root's (RFC 9110, section 4.2.3).
    pub fn find(path: &str) -> Option<Self> {
        let path = if path.is_empty() { "/" } else { path };
        let at = |path: &str| Self::all().find(|endpoint| matches(endpoint.path(), path));
        let is_lenient = |path: &&str| path.len() > 1 && !path.starts_with(CONSOLE);
        at(path).or_else(|| at(path.strip_suffix('/').filter(is_lenient)?))
    }

    /// What stands in a path for the placeholders, from left to right; empty for those it does not have.
    pub fn ids(self, path: &str) -> [&str; 2] {
        let mut template = self.path();
        let mut rest = path;
        let mut ids = [""; 2];
        for id in &mut ids {
            let Some((before, after)) = template.split_once('{') else { break };
            rest = rest.get(before.len()..).unwrap_or_default();
            let end = if is_whole_rest(self.path()) { None } else { rest.find('/') };
            (*id, rest) = rest.split_at(end.unwrap_or(rest.len()));
            template = after.split_once('}').map_or("", |(_, after)| after);
        }
        ids
    }
}

/// Whether the placeholder of a path stands for all of its rest.
fn is_whole_rest(template: &str) -> bool {
    !template.starts_with(CONSOLE)
}

/// Whether a path is that of a template, with anything but nothing in place of ids.
fn matches(template: &str, path: &str) -> bool {
    let Some((before, mut template)) = template.split_once('{') else { return template == path };
    let Some(mut path) = path.strip_prefix(before) else { return false };
    if is_whole_rest(before) {
        return !path.is_empty();
    }
    loop {
        template = template.split_once('}').map_or("", |(_, after)| after);
        let end = path.find('/').unwrap_or(path.len());
        if end == 0 {
            return false;
        }
        path = &path[end..];
        let Some((before, after)) = template.split_once('{') else { return template == path };
        let Some(rest) = path.strip_prefix(before) else { return false };
        (template, path) = (after, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_with_its_ids() {
        for (path, endpoint, ids) in [
            ("/verify/v1/stream", Endpoint::Verify, ["", ""]),
            ("/verify/v1/stream/", Endpoint::Verify, ["", ""]),
            ("/v1/apps", Endpoint::Apps, ["", ""]),
            ("/v1/apps/app_1", Endpoint::App, ["app_1", ""]),
            ("/v1/apps/%7Bid%7D/keys", Endpoint::Keys, ["%7Bid%7D", ""]),
            ("/v1/apps/app_1/keys/key_1", Endpoint::Key, ["app_1", "key_1"]),
            ("/v1/apps/app_1/keys/key_1/rotate", Endpoint::Rotation, ["app_1", "key_1"]),
            ("/v1/apps/keys/statement", Endpoint::Statement, ["keys", ""]),
            ("/v1/apps/app_1/try/chat", Endpoint::TryChat, ["app_1", ""]),
            ("/v1/key", Endpoint::OwnKey, ["", ""]),
            ("/v1/auth/session", Endpoint::Session, ["", ""]),
            ("/inference/v1/models/", Endpoint::Models, ["", ""]),
            ("/inference/v1/models/fake/a/b", Endpoint::Model, ["fake/a/b", ""]),
            ("/inference/v1/models/fake%2Fa/", Endpoint::Model, ["fake%2Fa/", ""]),
            ("/assets/1.0/app.js", Endpoint::Asset, ["1.0/app.js", ""]),
            ("", Endpoint::Dashboard, ["", ""]),
            ("/", Endpoint::Dashboard, ["", ""]),
            ("/docs/", Endpoint::Docs, ["", ""]),
            ("/docs/keys.md", Endpoint::Topic, ["keys.md", ""]),
            ("/openai/v1/", Endpoint::OpenAiBase, ["", ""]),
            ("/openai/v1/models/fake/a%2Fb", Endpoint::OpenAiModel, ["fake/a%2Fb", ""]),
            ("/anthropic/", Endpoint::AnthropicBase, ["", ""]),
        ] {
            assert_eq!(Endpoint::find(path), Some(endpoint), "{path}");
            assert_eq!(endpoint.ids(path), ids, "{path}");
        }
    }

    #[test]
    fn what_is_almost_a_path_is_none() {
        for path in [
            "*",
            "/v1",
            "/v1/",
            "/v1/app",
            "/v1/apps/",
            "/v1/apps/a/",
            "/v1/apps//keys",
            "/v1/apps/a/b",
            "/v1/apps/a/keys/",
            "/v1/apps/a/keys//rotate",
            "/v1/apps/a/keys/b/rotate/",
            "/v1/apps/a/keys/b/c",
            "/v1/key/",
            "/v1/key/x",
            "/v1/auth",
            "/V1/apps",
            "/inference/v1/modelss/a",
            "/verify/v1/stream//",
            "/assets",
            "//",
        ] {
            assert_eq!(Endpoint::find(path), None, "{path}");
        }
    }

    #[test]
    fn every_path_is_behind_one_door() {
        for (path, door) in [
            ("/openai/v1/chat/completions", Door::OpenAi),
            ("/openai", Door::OpenAi),
            ("/openai/nothing", Door::OpenAi),
            ("/anthropic", Door::Anthropic),
            ("/anthropic/v1/messages", Door::Anthropic),
            ("/inference/v1/models/anthropic/x", Door::Documented),
            ("/openais/v1", Door::Documented),
            ("/v1/openai", Door::Documented),
            ("", Door::Documented),
        ] {
            assert_eq!(Door::of(path), door, "{path}");
        }
    }

    #[test]
    fn every_path_is_found_as_itself() {
        for endpoint in Endpoint::all() {
            assert_eq!(Endpoint::find(endpoint.path()), Some(endpoint));
            assert!(endpoint.allows("GET") || endpoint.allows("POST"));
            assert!(!endpoint.allows("") && !endpoint.allows("GET, HEAD"));
        }
    }
}
