//! The page that Prometheus reads: values with their labels, in the OpenMetrics text format as the library writes it.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::table::{Kind, Metric};
use super::value::Reading;

/// The value of a sample.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A whole number.
    Count(u64),
    /// Any other number.
    Amount(f64),
    /// The distribution of durations.
    Histogram(Reading),
}

/// A snapshot of all metrics.
#[derive(Debug, Default)]
pub(super) struct Page(Vec<Family>);

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    samples: Vec<(Vec<String>, Value)>,
}

impl Page {
    /// Adds a metric with its samples: values of the labels, and the value.
    pub(super) fn add(
        &mut self,
        metric: &'static Metric,
        samples: impl IntoIterator<Item = (Vec<String>, Value)>,
    ) {
        self.0.push(Family { metric, samples: samples.into_iter().collect() });
    }

    /// Adds a metric without labels.
    pub(super) fn add_one(&mut self, metric: &'static Metric, value: Value) {
        self.add(metric, [(Vec::new(), value)]);
    }

    /// The metrics on the page, in their order.
    #[cfg(test)]
    pub(super) fn metrics(&self) -> Vec<&'static Metric> {
        self.0.iter().map(|family| family.metric).collect()
    }

    /// If the library refuses a value; it refuses none of ours.
    pub(super) fn into_text(self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::new();
        text::encode(&mut page, &registry)?;
        Ok(page)
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Metric { kind, labels, unit, help, .. } = *self.metric;
        let unit = match unit {
            "" => None,
            "seconds" => Some(Unit::Seconds),
            other => Some(Unit::Other(other.to_owned())),
        };
        let kind = match kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut family = encoder.encode_descriptor(self.metric.stem(), help, unit.as_ref(), kind)?;
        for (values, value) in &self.samples {
            let pairs: Vec<(&str, &str)> =
                labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
            // An empty label set would be written as `{}`.
            if pairs.is_empty() {
                write(&mut family, self.metric.kind, value)?;
            } else {
                write(&mut family.encode_family(&pairs)?, self.metric.kind, value)?;
            }
        }
        Ok(())
    }
}

fn write(
    sample: &mut prometheus_client::encoding::MetricEncoder<'_>,
    kind: Kind,
    value: &Value,
) -> fmt::Result {
    match (kind, value) {
        (Kind::Counter, Value::Count(count)) => sample.encode_counter::<NoLabelSet, _, u64>(count, None),
        (Kind::Counter, Value::Amount(amount)) => sample.encode_counter::<NoLabelSet, _, u64>(amount, None),
        (_, Value::Count(count)) => sample.encode_gauge(count),
        (_, Value::Amount(amount)) => sample.encode_gauge(amount),
        (_, Value::Histogram(Reading { sum, count, buckets })) => {
            sample.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
        }
    }
}
