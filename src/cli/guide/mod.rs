//! What is printed about the program: short help, complaints about arguments, and tables of the manual.

pub(super) mod short_help;
pub(super) mod topic_tables;
pub(super) mod usage_error;
