//! The process: how it starts, waits, logs, is supervised and ends.

pub(super) mod end;
pub(super) mod exit;
pub(super) mod log;
pub(super) mod panic_hook;
#[cfg_attr(not(unix), allow(dead_code, reason = "nothing asks for a reload there"))]
pub(super) mod reload;
pub(super) mod resources;
pub(super) mod runtime;
pub(super) mod supervisor;
