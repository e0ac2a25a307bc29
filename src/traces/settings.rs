//! Where traces are sent, and which.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

/// The settings of a server's traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The address that takes spans, whole (`http://127.0.0.1:4318/v1/traces`); `None` for no traces.
    pub endpoint: Option<String>,
    /// Headers of every call there, such as a key; marked sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long one call may take.
    pub timeout: Duration,
    /// What describes this server, beside its version: `service.name` first.
    pub resource: Vec<(String, String)>,
    /// Which requests are recorded.
    pub sampler: Sampler,
    /// Whether spans hold what callers and models write.
    pub capture: bool,
}

/// The `service.name` unless another is set.
const SERVICE_NAME: &str = "mk";

impl Default for Settings {
    /// No traces. The timeout is that of the specification of OTLP exporters.
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: Vec::new(),
            timeout: Duration::from_secs(10),
            resource: vec![("service.name".to_owned(), SERVICE_NAME.to_owned())],
            sampler: Sampler::default(),
            capture: false,
        }
    }
}

/// Which requests are recorded, as `OTEL_TRACES_SAMPLER` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether a caller that is part of a trace decides for its requests.
    pub follows_caller: bool,
    /// Of the others, the share that is recorded, from 0 to 1.
    pub ratio: f64,
}

impl Default for Sampler {
    /// That of the specification: `parentbased_always_on`.
    fn default() -> Self {
        Self { follows_caller: true, ratio: 1.0 }
    }
}

impl Sampler {
    /// The sampler of this name, with the share that goes with it; `None` for one that is not known here.
    pub fn parse(name: &str, ratio: f64) -> Option<Self> {
        let (follows_caller, name) = match name.strip_prefix("parentbased_") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let ratio = match name {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => ratio,
            _ => return None,
        };
        Some(Self { follows_caller, ratio })
    }

    /// Whether a trace without a say of its caller is recorded: other servers that know the same share come to the same
    /// answer, as it depends on the trace alone.
    pub(super) fn records(self, trace: u128) -> bool {
        let bits = u32::try_from(trace & u128::from(u32::MAX)).unwrap_or_default();
        f64::from(bits) < self.ratio * (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samplers_record_their_share() {
        let count = |name: &str, ratio: f64| {
            let sampler = Sampler::parse(name, ratio).unwrap();
            (0..1000_u128)
                .filter(|n| sampler.records(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
                .count()
        };
        assert_eq!(count("always_on", 0.0), 1000);
        assert_eq!(count("parentbased_always_off", 1.0), 0);
        assert!((200..300).contains(&count("traceidratio", 0.25)));
        assert_eq!((count("traceidratio", 1.0), count("parentbased_traceidratio", 0.0)), (1000, 0));
        assert_eq!(Sampler::parse("jaeger_remote", 1.0), None);
        assert_eq!(Sampler::parse("parentbased_always_on", 0.5), Some(Sampler::default()));
    }
}
