//! Providers and their models: what files say of them, what is found without being configured, and which of them make
//! the panel.

pub(super) mod discovery;
pub(super) mod key_places;
pub(super) mod models;
pub(super) mod ollama;
pub(super) mod panel;
pub(super) mod pool_file;
pub(super) mod provider_file;
pub(super) mod resilience_file;
