//! A service as flags take it: one of a list, which shells complete and a wrong name is answered with.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::api::Service;

/// What asks models, and so has usage.
pub(crate) const ASKING: [Service; 2] = [Service::Verify, Service::Inference];

/// A parser of the name of one of these.
pub(crate) fn one_of<const N: usize>(services: [Service; N]) -> impl TypedValueParser<Value = Service> {
    PossibleValuesParser::new(services.map(Service::as_str)).try_map(|name| name.parse::<Service>())
}
