//! Verifications over scripted models.

mod extraction;
mod faults;
mod random;
mod rate_limits;
mod rules;
mod simulation;
mod support;
