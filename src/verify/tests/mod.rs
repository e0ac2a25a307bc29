//! Verifications over scripted models.

mod accounted;
mod audit;
mod bad_extractions;
mod extraction;
mod faults;
mod random;
mod rate_limits;
mod receipts;
mod rules;
mod simulation;
mod stated;
mod support;
mod verdicts;
