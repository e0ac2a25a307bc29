//! The integration tests, by capability, in one binary: they run the server through `server::serve` and the command
//! line through the real `mk` binary, both against scripted fake providers on real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    clippy::missing_panics_doc,
    reason = "tests fail by panicking"
)]

mod accounting;
mod backup;
mod breaker;
mod budgets;
mod budgets_late;
mod budgets_verify;
mod cached_prompts;
mod chat;
mod chat_accounts;
mod chat_compatible;
mod chat_errors;
mod chat_extras;
mod chat_refusals;
mod chat_resume;
mod chat_resume_ends;
mod chat_sandbox;
mod chat_stream;
mod chat_together;
mod chat_traps;
mod cli_apps_delete;
mod cli_audit;
mod cli_budgets;
mod cli_chat;
mod cli_chat_model;
mod cli_complete;
mod cli_config;
mod cli_database;
mod cli_doctor;
mod cli_eval;
mod cli_eval_figures;
mod cli_eval_runs;
mod cli_gate;
mod cli_hostile;
mod cli_input;
mod cli_interrupt;
mod cli_key_files;
mod cli_keys;
mod cli_keys_list;
mod cli_keys_update;
mod cli_line;
mod cli_line_modes;
mod cli_login;
mod cli_messages;
mod cli_models;
mod cli_network;
mod cli_person;
mod cli_places;
mod cli_remote;
mod cli_remote_same;
mod cli_secrets;
mod cli_setup;
mod cli_terminal;
mod cli_usage;
mod cli_verify;
mod console_apps;
mod console_audit;
mod console_auth;
mod console_input;
mod console_keys;
mod console_lists;
mod console_origin;
mod console_own_key;
mod console_restrictions;
mod console_sessions;
mod console_setup;
mod console_threads;
mod console_together;
mod console_trials;
mod crash;
mod dashboard;
mod dashboard_files;
mod dialects;
mod disconnect;
mod docs;
mod errors;
mod faults;
mod full;
mod headers;
mod hostile;
mod http2;
mod judging;
mod keys;
mod kill;
mod layers;
mod limits;
mod limits_shared;
mod logs;
mod many;
mod metrics;
mod models;
mod openapi;
mod openapi_answers;
mod openapi_console;
mod openapi_requests;
mod parked;
mod patience;
mod postgres;
mod provider_faults;
mod random;
mod reload;
mod reload_kept;
mod reload_process;
mod reports_memory;
mod shutdown;
mod slow;
mod slow_peers;
mod store;
mod stream;
mod supervisor;
mod support;
mod threats;
mod tls;
mod usage;
mod verdict_cache;
mod verdict_cache_kept;
mod verify_random;
