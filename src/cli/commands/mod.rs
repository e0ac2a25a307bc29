//! One file or folder for each command: its arguments with their help, and its entry function.

pub(super) mod apps;
pub(super) mod audit;
pub(super) mod backup;
pub(super) mod budget;
pub(super) mod chat;
pub(super) mod complete;
pub(super) mod config;
pub(super) mod doctor;
pub(super) mod eval;
pub(super) mod extract;
pub(super) mod generate;
pub(super) mod help;
pub(super) mod keys;
pub(super) mod login;
pub(super) mod models;
pub(super) mod receipt;
pub(super) mod serve;
pub(super) mod usage;
pub(super) mod verify;
pub(super) mod whoami;
