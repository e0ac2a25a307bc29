//! Verifications over scripted models.

mod faults;
mod random;
mod rules;
mod simulation;
mod support;
