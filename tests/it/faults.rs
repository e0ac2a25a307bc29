//! Faults of the machine below a server: what callers are told, that it goes on by itself once the cause is gone, that
//! nothing is lost or corrupt, and that the log names the cause without being flooded.

mod clock;
mod descriptors;
mod desk;
#[cfg(target_os = "linux")]
mod disk;
mod locked;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod readonly;
