//! `GET /metrics`, read by a strict parser of the exposition format.

use std::collections::BTreeMap;

use super::server::TestServer;

/// A scraped page: each series with its value, and the declared metric families.
#[derive(Debug, Default)]
pub struct Page {
    /// Values by name and labels, as written on the page.
    pub series: BTreeMap<String, f64>,
    /// The type of each family, by name.
    pub families: BTreeMap<String, String>,
}

/// Scrapes until a condition holds, for about ten seconds.
pub async fn scrape_until(server: &TestServer, what: &str, holds: impl Fn(&Page) -> bool) -> Page {
    for _ in 0..500 {
        let page = scrape(server).await;
        if holds(&page) {
            return page;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never happened: {what}");
}

/// Scrapes a server over loopback.
pub async fn scrape(server: &TestServer) -> Page {
    let response = super::server::client().get(format!("{}/metrics", server.base)).send().await.unwrap();
    assert_eq!(response.status(), 200);
    Page::read(&response.text().await.unwrap())
}

impl Page {
    /// Parses a page and fails on any violation of the format.
    pub fn read(text: &str) -> Self {
        let mut page = Self::default();
        let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("missing EOF: {text}"));
        let mut lines = body.split_terminator('\n').peekable();
        while let Some(line) = lines.next() {
            let (family, help) = declared(line, "HELP");
            assert!(!help.is_empty(), "{line}");
            let (typed, kind) = declared(lines.next().unwrap(), "TYPE");
            assert_eq!(family, typed);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            let twice = page.families.insert(family.to_owned(), kind.to_owned());
            assert_eq!(twice, None, "{family} is declared twice");
            if let Some(line) = lines.next_if(|line| line.starts_with("# UNIT ")) {
                let (named, unit) = declared(line, "UNIT");
                assert!(named == family && family.ends_with(&format!("_{unit}")), "{line}");
            }
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                page.add(family, kind, line);
            }
        }
        page.check_histograms();
        page
    }

    fn add(&mut self, family: &str, kind: &str, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("missing value: {line}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
        let name = series.split('{').next().unwrap();
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            check_labels(labels);
        }
        let suffix =
            name.strip_prefix(family).unwrap_or_else(|| panic!("{name} does not belong to {family}"));
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(suffixes.contains(&suffix), "{line} in a {kind}");
        assert!(value >= 0.0, "{line}");
        assert_eq!(self.series.insert(series.to_owned(), value), None, "{series} appears twice");
    }

    /// Asserts that bucket counts are cumulative and that the last bucket equals the count.
    fn check_histograms(&self) {
        let mut last = BTreeMap::<String, (f64, f64)>::new();
        for (series, value) in self.series.iter().filter(|(series, _)| series.contains("_bucket{le=")) {
            let (name, labels) = series.split_once("_bucket{le=\"").unwrap();
            let (bound, labels) = labels.split_once('"').unwrap();
            let bound = bound.replace("+Inf", "inf").parse::<f64>().unwrap();
            let labels = labels.trim_start_matches(',').trim_end_matches('}');
            let key = format!("{name}_count{{{labels}}}");
            let total = self.series[&key];
            assert!(*value <= total, "{series}");
            if bound.is_infinite() {
                assert!((value - total).abs() < f64::EPSILON, "{series}");
            }
            let (largest, most) = last.entry(key).or_insert((bound, *value));
            assert_eq!(
                bound.total_cmp(largest),
                value.total_cmp(most).then(bound.total_cmp(largest)),
                "{series}"
            );
            if bound > *largest {
                (*largest, *most) = (bound, *value);
            }
        }
    }

    /// The value of a series; zero if it is absent.
    pub fn get(&self, series: &str) -> f64 {
        self.series.get(series).copied().unwrap_or(0.0)
    }

    /// Asserts that these series have these values.
    pub fn assert(&self, expected: &[(&str, f64)]) {
        for (series, value) in expected {
            let found = self.get(series);
            assert!((found - value).abs() < 1e-9, "{series} is {found}, not {value}; {:#?}", self.series);
        }
    }

    /// Asserts that nothing cumulative has decreased since `earlier`.
    pub fn assert_grown_from(&self, earlier: &Self) {
        for (series, value) in &earlier.series {
            let name = series.split('{').next().unwrap();
            if ["_total", "_bucket", "_sum", "_count"].iter().any(|suffix| name.ends_with(suffix)) {
                assert!(self.get(series) >= *value, "{series} has decreased from {value}");
            }
        }
    }
}

fn declared<'a>(line: &'a str, what: &str) -> (&'a str, &'a str) {
    let rest = line.strip_prefix(&format!("# {what} ")).unwrap_or_else(|| panic!("missing {what}: {line}"));
    rest.split_once(' ').unwrap_or_else(|| panic!("{line}"))
}

/// `{name="value",…}` with escapes, with nothing after it.
fn check_labels(labels: &str) {
    let mut rest = labels.strip_prefix('{').unwrap_or_else(|| panic!("{labels}"));
    loop {
        let (name, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("{labels}"));
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()), "{labels}");
        let mut is_escaped = false;
        let end = behind.find(|c| {
            let ends = c == '"' && !is_escaped;
            assert!(!is_escaped || matches!(c, '"' | '\\' | 'n'), "{labels}");
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        rest = &behind[end.unwrap_or_else(|| panic!("{labels}")) + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    assert_eq!(rest, "}", "{labels}");
}
