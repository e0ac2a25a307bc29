//! Reports and statements as CSV (RFC 4180), for spreadsheets.
//!
//! A header row, then one row per line; lines end with CRLF. There is no row of totals, so that a column can be summed.
//! Money is in US dollars with a decimal point, exact to the nano-dollar up to four million dollars; an empty cell is
//! an unknown amount, never zero. A text that a spreadsheet would take for a formula gets a leading apostrophe.

use super::{Dimension, Statement, UsageReport, UsageRow, UsageSums};

/// The media type that an `Accept` header asks for.
pub const MEDIA_TYPE: &str = "text/csv";

const SUMS: [&str; 11] = [
    "requests",
    "attempts",
    "errors",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cost_usd",
    "unpriced_attempts",
    "cached_tokens",
    "cache_write_tokens",
    "estimated_attempts",
];

/// A report: the dimensions it is summed by, in the requested order (apps and keys by id and name), and the sums.
pub fn report(report: &UsageReport) -> String {
    let headings = report.by.iter().flat_map(|dimension| columns(*dimension)).copied();
    let mut csv = row(headings.chain(SUMS));
    for line in &report.data {
        let by = report.by.iter().flat_map(|dimension| texts(line, *dimension)).map(text);
        csv.push_str(&row(by.chain(figures(&line.sums))));
    }
    csv
}

/// A statement: app, month, service, key and model of each line, and the sums.
pub fn statement(statement: &Statement) -> String {
    let headings = ["app_id", "app", "month", "service", "key_id", "key", "model"];
    let mut csv = row(headings.into_iter().chain(SUMS));
    for line in &statement.lines {
        let of_app = [&statement.app_id, &statement.app, &statement.month];
        let of_line = [&line.service, &line.key_id, &line.key, &line.model];
        let texts = of_app.into_iter().chain(of_line).map(|value| text(value));
        csv.push_str(&row(texts.chain(figures(&line.sums))));
    }
    csv
}

const fn columns(dimension: Dimension) -> &'static [&'static str] {
    match dimension {
        Dimension::Day => &["day"],
        Dimension::App => &["app_id", "app"],
        Dimension::Key => &["key_id", "key"],
        Dimension::Model => &["model"],
        Dimension::Service => &["service"],
        Dimension::User => &["user"],
        Dimension::Tag => &["tag"],
    }
}

/// The cells under [`columns`].
fn texts(row: &UsageRow, dimension: Dimension) -> Vec<&str> {
    let cells = match dimension {
        Dimension::Day => vec![&row.day],
        Dimension::App => vec![&row.app_id, &row.app],
        Dimension::Key => vec![&row.key_id, &row.key],
        Dimension::Model => vec![&row.model],
        Dimension::Service => vec![&row.service],
        Dimension::User => vec![&row.user],
        Dimension::Tag => vec![&row.tag],
    };
    cells.into_iter().map(|cell| cell.as_deref().unwrap_or_default()).collect()
}

/// The cells under [`SUMS`].
fn figures(sums: &UsageSums) -> [String; 11] {
    [
        sums.requests.to_string(),
        sums.attempts.to_string(),
        sums.errors.to_string(),
        sums.prompt_tokens.to_string(),
        sums.completion_tokens.to_string(),
        sums.total_tokens.to_string(),
        sums.cost_usd.map(decimal).unwrap_or_default(),
        sums.unpriced_attempts.to_string(),
        sums.cached_tokens.to_string(),
        sums.cache_write_tokens.to_string(),
        sums.estimated_attempts.to_string(),
    ]
}

/// An amount in dollars without the currency sign: `12.50`, `0.0000375`.
pub fn decimal(dollars: f64) -> String {
    let exact = format!("{dollars:.9}");
    let (whole, fraction) = exact.split_once('.').unwrap_or((&exact, ""));
    format!("{whole}.{:0<2}", fraction.trim_end_matches('0'))
}

/// A cell with a text of other people's: quoted if necessary, and never a formula.
pub fn text(value: &str) -> String {
    let looks_like_a_formula =
        value.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    let harmless = if looks_like_a_formula { format!("'{value}") } else { value.to_owned() };
    let needs_quotes = harmless.contains(['"', ',', '\r', '\n']) || harmless.trim() != harmless;
    if needs_quotes { format!("\"{}\"", harmless.replace('"', "\"\"")) } else { harmless }
}

/// A row of cells that are quoted where they must be.
pub fn row(cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut line = String::new();
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            line.push(',');
        }
        line.push_str(cell.as_ref());
    }
    line.push_str("\r\n");
    line
}

#[cfg(test)]
mod tests {
    use super::super::StatementLine;
    use super::*;
    use crate::money::NanoUsd;

    #[test]
    fn a_report_has_the_requested_columns_and_no_totals() {
        let unknown = UsageSums { requests: 1, attempts: 2, unpriced_attempts: 2, ..UsageSums::default() };
        let known = UsageSums { cost_usd: Some(0.000_037_5), total_tokens: 7, ..unknown };
        let row = |app: Option<&str>, sums| UsageRow {
            day: Some("2026-11-20".to_owned()),
            app_id: Some("app_1".to_owned()),
            app: app.map(str::to_owned),
            sums,
            ..UsageRow::default()
        };
        let made = report(&UsageReport {
            from: String::new(),
            to: String::new(),
            by: vec![Dimension::App, Dimension::Day],
            data: vec![row(Some("news, \"daily\""), known), row(None, unknown)],
            totals: known,
            next_cursor: None,
        });
        let expected = "app_id,app,day,requests,attempts,errors,prompt_tokens,completion_tokens,total_tokens,cost_usd,\
                        unpriced_attempts,cached_tokens,cache_write_tokens,estimated_attempts\r\n\
                        app_1,\"news, \"\"daily\"\"\",2026-11-20,1,2,0,0,0,7,0.0000375,2,0,0,0\r\n\
                        app_1,,2026-11-20,1,2,0,0,0,0,,2,0,0,0\r\n";
        assert_eq!(made, expected);
    }

    #[test]
    fn a_statement_names_its_app_and_month_in_each_line() {
        let sums = UsageSums { requests: 3, cost_usd: Some(12.5), ..UsageSums::default() };
        let line = StatementLine {
            service: "verify".to_owned(),
            key_id: "key_1".to_owned(),
            key: "=1+1".to_owned(),
            model: "a/b".to_owned(),
            sums,
        };
        let made = statement(&Statement {
            app_id: "app_1".to_owned(),
            app: "news".to_owned(),
            month: "2026-11".to_owned(),
            is_preliminary: true,
            created_at: String::new(),
            budget_usd: None,
            lines: vec![line],
            totals: sums,
        });
        let (head, line) = made.split_once("\r\n").unwrap();
        assert!(head.starts_with("app_id,app,month,service,key_id,key,model,requests,"), "{head}");
        assert_eq!(line, "app_1,news,2026-11,verify,key_1,'=1+1,a/b,3,0,0,0,0,0,12.50,0,0,0,0\r\n");
    }

    #[test]
    fn no_text_becomes_a_formula_or_breaks_its_row() {
        for (value, cell) in [
            ("plain name", "plain name"),
            ("=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("a\r\nb", "\"a\r\nb\""),
            (" a", "\" a\""),
            ("verify …wXyZ", "verify …wXyZ"),
        ] {
            assert_eq!(text(value), cell, "{value:?}");
        }
    }

    #[test]
    fn money_is_exact() {
        for (nano, expected) in [
            (0, "0.00"),
            (1, "0.000000001"),
            (12_500_000_000, "12.50"),
            (4_499_999_999_999_999, "4499999.999999999"),
        ] {
            assert_eq!(decimal(NanoUsd(nano).usd()), expected);
        }
    }
}
