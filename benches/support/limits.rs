//! The limits of a measured server: enabled, so that they are counted as users' are, but never reached.

/// The `[limits]` table of the configuration.
pub(crate) const OUT_OF_REACH: &str = "\
[limits]
per_minute = 1000000000
per_day = 1000000000
open_pages_per_minute = 1000000000
failed_auth_per_minute = 1000000000
";
