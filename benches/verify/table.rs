//! The table: a line for each figure, with its bound and whether that holds.

use std::time::Duration;

/// The lines so far.
pub(crate) struct Table {
    is_kept: bool,
}

/// A figure.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    value: Option<f64>,
    unit: &'static str,
    /// The ratio to what the models alone take.
    ratio: Option<f64>,
}

impl Figure {
    /// A value with its unit; `None` where the system does not report it.
    pub(crate) const fn of(value: Option<f64>, unit: &'static str) -> Self {
        Self { value, unit, ratio: None }
    }

    /// A time.
    pub(crate) const fn ms(time: Duration) -> Self {
        Self::of(Some(time.as_secs_f64() * 1000.0), "ms")
    }

    /// The same, with its ratio to the time `of`.
    pub(crate) fn beside(self, of: Duration) -> Self {
        let of_ms = of.as_secs_f64() * 1000.0;
        Self { ratio: self.value.map(|value| value / of_ms), ..self }
    }
}

impl Table {
    /// Prints its head.
    pub(crate) fn begin() -> Self {
        println!("{:<58} {:>12} {:>12} {:>8}", "measured", "result", "bound", "ratio");
        Self { is_kept: true }
    }

    /// Prints a figure without a bound.
    pub(crate) fn tell(&mut self, what: &str, figure: Figure) {
        self.line(what, figure, None);
    }

    /// Prints a figure that may be at most `most`.
    pub(crate) fn hold(&mut self, what: &str, figure: Figure, most: f64) {
        self.line(what, figure, Some(most));
    }

    /// Whether all bounds were checked and hold.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn line(&mut self, what: &str, figure: Figure, most: Option<f64>) {
        let Figure { value, unit, ratio } = figure;
        let verdict = match (value, most) {
            (_, None) => "",
            (None, Some(_)) => "not checked",
            (Some(value), Some(most)) if value > most => "MISSED",
            _ => "ok",
        };
        self.is_kept &= matches!(verdict, "" | "ok");
        let value = value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1} {unit}"));
        let most = most.map_or_else(String::new, |most| format!("<= {most} {unit}"));
        let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
        println!("{}", format!("{what:<58} {value:>12} {most:>12} {ratio:>8}  {verdict}").trim_end());
    }
}

/// The smallest of these times that is at least as long as `percent` of them.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent).div_ceil(100).saturating_sub(1)]
}
