//! What the server answers: a file or folder for each group of paths, behind the gate.

mod asked_models;
pub(super) mod chat;
pub(super) mod console;
pub(super) mod dashboard;
pub(super) mod docs;
pub(super) mod embeddings;
pub(super) mod health;
pub(super) mod messages;
pub(super) mod metrics;
pub(super) mod models;
pub(super) mod openapi;
pub(super) mod receipt_key;
pub(super) mod responses;
pub(super) mod verify;
