//! Verifications over scripted models.

mod faults;
mod random;
mod rules;
mod support;
mod whole;
