//! `mk`: fact verification and chat inference behind one API, in one binary. This is the map.
//!
//! ```text
//!                    ┌─ client ──────────────── HTTP ───────────────┐
//! terminal ── cli ───┤                                              ▼
//!                    └─ app (composition root) ── server ── gate ── verify ── inference ── providers ── HTTP
//!                       config                      │        │         └───────── usage ──┐
//!                                                   └─ limits┴─ keys ───────────────── storage
//! ```
//!
//! | room | what it does | names |
//! |---|---|---|
//! | `cli` | the terminal side; the only room that prints | app client config keys limits manual metrics providers server storage usage verify |
//! | `config` | flags, environment and files, resolved and checked once | inference limits providers storage traces verify |
//! | `app` | opens storage and builds the rooms | config inference keys limits metrics providers storage traces usage verify |
//! | `server` | HTTP: connections, gate, routes, answers | app config inference keys limits manual metrics storage traces usage verify |
//! | `client` | a running server over HTTP | nobody |
//! | `verify` | from a statement to an assessment of each claim; knows no HTTP | inference traces usage |
//! | `inference` | from a model's identifier to an answer: choice, retries, fallbacks, accounts | providers traces usage |
//! | `providers` | formats of model APIs, and the only sender | nobody |
//! | `keys` | creating, recognising and admitting keys; apps, sessions, the setup link | storage |
//! | `limits` | an exact sliding minute and a UTC day, here or in Redis | storage |
//! | `usage` | what requests cost, a row per attempt; budgets; reports and statements | metrics storage traces |
//! | `manual` | the topics of the manual, from Markdown to roff, HTML and text | nobody |
//! | `metrics` | what the server counts about itself, for Prometheus | nobody |
//! | `traces` | what became of requests, as spans for a collector (OTLP) | nobody |
//! | `storage` | SQLite, or PostgreSQL | nobody |
//! | `api` | the wire's types, shared by client and server | open to all |
//! | `net` | the engine: connections in and out, streams, threads; knows no product | open to all |
//! | `json` | readers of JSON that strangers wrote | open to all |
//! | `cache_entry` `clock` `duration_text` `hex` `id` `lock` `log_scope` `log_throttle` `model_id` `money` `os_error` `private` `secret` `unsafe_chars` | leaves | open to all |
//!
//! A test that reads this table (`tests/it/layers.rs`) enforces which room may name which. Three rules explain the
//! rest: parsing and counting do no I/O (a provider's dialect, the window of a limit), so that they are tested with
//! plain text and numbers; each room has its own errors, which become the API's (`api/error_code.rs`) in `server/reply`
//! and exit codes in `cli/process/exit.rs`, and nowhere else; bytes from outside, whether from callers, providers or
//! models, are untrusted data.

pub mod api;
pub mod app;
pub mod cache_entry;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod duration_text;
pub mod hex;
pub mod id;
pub mod inference;
pub mod json;
pub mod keys;
pub mod limits;
pub mod lock;
pub mod log_scope;
pub mod log_throttle;
pub mod manual;
pub mod metrics;
pub mod model_id;
pub mod money;
pub mod net;
pub mod os_error;
pub mod private;
pub mod providers;
pub mod secret;
pub mod server;
pub mod storage;
pub mod traces;
pub mod unsafe_chars;
pub mod usage;
pub mod verify;
