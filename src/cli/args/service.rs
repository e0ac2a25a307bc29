//! The service as a flag value: a fixed list that shells can complete and error messages show.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::api::Service;

/// The services that call models and therefore have usage.
pub(crate) const MODEL_SERVICES: [Service; 2] = [Service::Verify, Service::Inference];

/// A value parser for the name of one of these services.
pub(crate) fn one_of<const N: usize>(services: [Service; N]) -> impl TypedValueParser<Value = Service> {
    PossibleValuesParser::new(services.map(Service::as_str)).try_map(|name| name.parse::<Service>())
}
