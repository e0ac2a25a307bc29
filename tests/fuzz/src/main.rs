//! Fuzzes the target that `MK_FUZZ_TARGET` names. All of them are one program, so that it is built and linked once.
#![no_main]

mod input;
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<targets::Target> =
    LazyLock::new(|| targets::named(&std::env::var("MK_FUZZ_TARGET").unwrap_or_default()));

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
