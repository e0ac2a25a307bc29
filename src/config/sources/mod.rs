//! Where settings come from, and how one is read from there: the environment, files, single values; and the origin that
//! each keeps.

pub(super) mod env;
pub(super) mod files;
pub(super) mod lock;
pub(super) mod origin;
pub(super) mod paths;
pub(super) mod reader;
pub(super) mod table;
pub(super) mod values;
