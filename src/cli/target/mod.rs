//! What a command works on: this server or that one, or the database itself, with one face for both.

pub(super) mod admin;
pub(super) mod backend;
pub(super) mod database;
pub(super) mod embedded;
pub(super) mod last_console_key;
pub(super) mod parameters;
pub(super) mod remote;
pub(super) mod server_key;
pub(super) mod setup_link;
