//! One file for each kind of foreign bytes, and what must hold whatever they are.

mod answers;
mod client;
mod completions;
mod config;
mod console;
mod frames;
mod models;
mod quotes;
mod readings;
mod receipts;
mod sentences;
mod sse;
mod streams;
mod terminal;
mod values;

/// What an input is tried on.
pub(crate) type Target = fn(&[u8]);

/// All targets by name.
const TARGETS: [(&str, Target); 15] = [
    ("answers", answers::run),
    ("client", client::run),
    ("completions", completions::run),
    ("config", config::run),
    ("console", console::run),
    ("frames", frames::run),
    ("models", models::run),
    ("quotes", quotes::run),
    ("readings", readings::run),
    ("receipts", receipts::run),
    ("sentences", sentences::run),
    ("sse", sse::run),
    ("streams", streams::run),
    ("terminal", terminal::run),
    ("values", values::run),
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub(crate) fn named(name: &str) -> Target {
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    found
        .unwrap_or_else(|| {
            panic!("there is no fuzz target {name:?}: MK_FUZZ_TARGET names one of src/targets")
        })
        .1
}
