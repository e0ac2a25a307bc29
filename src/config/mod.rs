//! Configuration: flags over `MK_…` variables over files over built-in defaults, resolved and checked once.
//!
//! Other rooms own the types of their settings, with the defaults; a row of a table here (`sources::table`) says how
//! one is read and what it does. This room reads the layers and fills them in. Unknown names are errors
//! with a suggestion; wrong values are reported with the file, the line and what would be correct. A value itself is
//! never repeated, as it may be a secret in the wrong place. [`load_server`] and [`load_client`] are the entry points.
//! Nothing here prints, and only [`Env`] reads the process's environment.
//!
//! ```text
//! server.toml ─ server_file, provider_file ─┐                     ┌─ ServerConfig
//! config.toml, .mk.toml ─ client_file ──────┼─ server, client ────┤
//! credentials.toml, variables, flags ───────┘  (layers, checks)   └─ ClientConfig
//! ```

pub mod client;
mod error;
mod listing;
mod providers;
mod server;
mod sources;
mod suggest;

pub use client::choices::{ColorMode, FailOn, ProgressMode, View};
pub use client::profiles::{add_profile, has_profile, profile_names};
pub use client::{
    ClientArgs, ClientConfig, DEFAULT_JOBS, DEFAULT_SERVER, VerifyDefaults, client_samples, load_client,
};
pub use error::ConfigError;
pub use listing::{Entry, client_listing, server_listing};
pub use providers::discovery::sandbox_providers;
pub use server::changes::{changes, keep_fixed};
pub use server::init::{example, init};
pub use server::{
    NamedProvider, ServerArgs, ServerConfig, StorePlace, load_database, load_limits_store, load_listen,
    load_providers, load_server, load_server_for, load_server_values, panel_warnings, server_path,
};
pub use sources::env::{Env, VARIABLES, Variable, variables};
pub use sources::origin::Origin;
pub use sources::paths::{Paths, paths};
pub use sources::values::whole_numbers;
pub use suggest::closest;
