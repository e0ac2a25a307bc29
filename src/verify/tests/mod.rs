//! Verifications over scripted models.

mod extraction;
mod faults;
mod random;
mod rules;
mod simulation;
mod support;
