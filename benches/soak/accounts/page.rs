//! The metrics page: series and their values.

use std::collections::BTreeMap;

use anyhow::Context;

/// A page.
#[derive(Debug, Default)]
pub(crate) struct Page(BTreeMap<Series, f64>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    name: String,
    /// By their names. No value contains quotes, commas or escapes.
    labels: BTreeMap<String, String>,
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// With the first line that cannot be parsed.
    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let series = lines.map(|line| series(line).with_context(|| format!("no line of a page: {line}")));
        Ok(Self(series.collect::<anyhow::Result<_>>()?))
    }

    /// The sum over all series of a name.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.0.iter().filter(|(series, _)| series.name == name).map(|(_, value)| value).sum()
    }

    /// The series of a name as whole numbers, by the values of these labels.
    pub(crate) fn by<const N: usize>(&self, name: &str, labels: [&str; N]) -> BTreeMap<[String; N], u64> {
        let mut sums = BTreeMap::new();
        for (series, value) in self.0.iter().filter(|(series, _)| series.name == name) {
            let key = labels.map(|label| series.labels.get(label).cloned().unwrap_or_default());
            *sums.entry(key).or_default() += whole(*value);
        }
        sums
    }
}

/// A counter's value.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counters are whole, below 2^52")]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn series(line: &str) -> Option<(Series, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}')?.split(',').filter(|label| !label.is_empty());
    let labels = labels.map(|label| {
        let (name, value) = label.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    });
    let series = Series { name: name.to_owned(), labels: labels.collect::<Option<_>>()? };
    Some((series, value.parse().ok()?))
}
