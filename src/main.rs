//! mk
fn main() {}
