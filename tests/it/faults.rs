//! Faults of the machine that a server runs on: callers get a clear error, the server recovers by itself once the cause
//! is gone, nothing is lost or corrupted, and the log names the cause without being flooded.

mod clock;
mod descriptors;
#[cfg(target_os = "linux")]
mod disk;
mod fixture;
mod locked;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod readonly;
