//! The figures as one page that needs nothing else: no script, no address. Every text in it is escaped.

use serde::Deserialize;
use serde_json::Value;

use super::{list, words};
use crate::api::verify::ClaimResult;
use crate::cli::commands::verify::output::votes;
use crate::cli::terminal::sanitize;
use crate::manual::html::escape;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884}\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\
p.note{opacity:.75;margin:.2rem 0;overflow-wrap:anywhere}\
div.wide{overflow-x:auto}@media print{div.wide{overflow:visible}}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}\
th{font-weight:600}td.n{font-variant-numeric:tabular-nums;white-space:nowrap}\
.bar{display:inline-block;position:relative;width:8rem;height:.6rem;background:var(--line);border-radius:.3rem;margin-right:.6rem}\
.bar i{position:absolute;top:0;bottom:0;background:#3b82f6aa;border-radius:.3rem}\
.bar b{position:absolute;top:-.15rem;bottom:-.15rem;width:2px;background:currentColor}\
table.many td.n{white-space:normal}table.many .bar{display:none}code{font-size:.9em}summary{cursor:pointer}";

/// The page.
pub(super) fn page(document: &Value) -> String {
    let mut page = Page(String::new());
    page.push("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push("<meta name=\"viewport\" content=\"width=device-width\"><title>mk eval</title><style>");
    page.push(STYLE);
    page.push("</style></head><body><h1>How often the panel is right</h1>");
    page.about(document);
    page.verdicts(document);
    page.rates("Each model by itself", &document["models"], &["model"], &MODEL);
    page.open(&document["open"]);
    page.together(document);
    page.rates("Other rules over the same votes", &document["rules"], &["rule"], &RULE);
    page.rates("Parts of the dataset", &document["groups"], &["kind", "name", "statements"], &GROUP);
    page.flips(document);
    page.statements(document);
    page.push("</body></html>\n");
    page.0
}

/// The shares of verdicts, by their field and in words.
const VERDICTS: [(&str, &str); 8] = [
    ("accuracy", "right"),
    ("true_precision", "said TRUE, right"),
    ("false_precision", "said FALSE, right"),
    ("false_passed_as_true", "FALSE passed as TRUE"),
    ("false_found", "FALSE found"),
    ("true_called_false", "TRUE called FALSE"),
    ("decided", "decided"),
    ("accuracy_when_decided", "right when decided"),
];

const RULE: [(&str, &str); 5] =
    [VERDICTS[1], VERDICTS[2], ("true_found", "TRUE found"), VERDICTS[4], VERDICTS[6]];

const MODEL: [(&str, &str); 2] =
    [("accuracy", "by verdict: TRUE from FALSE"), ("option_accuracy", "by option: the right answer")];
const GROUP: [(&str, &str); 3] = [VERDICTS[0], VERDICTS[6], VERDICTS[3]];

/// The most columns of a table that shows shares as bars.
const MOST_WITH_BARS: usize = 4;

struct Page(String);

impl Page {
    fn push(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn about(&mut self, document: &Value) {
        let counts = ["statements", "verified", "failed", "not_asked"]
            .map(|name| format!("{} {}", words(&document[name]), name.replace('_', " ")));
        let made = format!("mk {} on {}", words(&document["version"]), words(&document["date"]));
        let cost = document["cost_usd"].as_f64().map(|cost| format!("; ${cost:.4}")).unwrap_or_default();
        self.note(&format!("{made}: {}{cost}", counts.join(", ")));
        if document["mode"] == "sandbox" {
            self.note("The models are simulated: these figures say nothing about real models.");
        }
        let settings = document["settings"].as_object().into_iter().flatten();
        let settings = settings.filter(|(_, value)| !value.is_null());
        let settings: Vec<String> =
            settings.map(|(name, value)| format!("{name} {}", words(value))).collect();
        let prompts = words(&document["prompts"]);
        self.note(&format!("Settings: {}; prompts {prompts}", settings.join(", ")));
        self.note(
            "Each share is followed by its 95 % confidence interval. Agreement between models is evidence, not \
             proof: they share training data.",
        );
    }

    fn note(&mut self, text: &str) {
        self.push(&format!("<p class=\"note\">{}</p>", safe(text)));
    }

    fn verdicts(&mut self, document: &Value) {
        let rows = VERDICTS.iter().filter(|(field, _)| has_share(&document[*field]));
        let rows = rows.map(|(field, name)| vec![text(name), share(&document[*field])]).collect();
        self.table("Verdicts", &["share", "of the statements"], rows);
        let gates = list(&document["gates"]).iter().map(|gate| {
            let met = if gate["met"] == true { "met" } else { "missed" };
            vec![
                text(&words(&gate["gate"])),
                text(&words(&gate["limit"])),
                text(&words(&gate["held"])),
                text(met),
            ]
        });
        self.table("Gates", &["gate", "limit, %", "held against it, %", ""], gates.collect());
        if !document["target"].is_null() {
            let target = &document["target"];
            let (percent, rule) = (words(&target["precision"]), words(&target["rule"]));
            let text = if target["reached"] == true {
                format!("Precision of {percent} % is reached by {rule}:")
            } else {
                let more = target["more_statements"].as_u64();
                let more = more.map_or_else(|| "no number of".to_owned(), |more| more.to_string());
                format!(
                    "Precision of {percent} % is not proved for any rule; closest is {rule}, after {more} more statements."
                )
            };
            self.push(&format!("<p>{}</p>", safe(&text)));
            if let Some(settings) = target["settings"].as_str() {
                let lines: Vec<String> = settings.lines().map(safe).collect();
                self.push(&format!("<pre><code>{}</code></pre>", lines.join("\n")));
            }
        }
    }

    fn open(&mut self, open: &Value) {
        let row = |model: &Value| {
            let fields = ["only_with", "only_without"].map(|field| text(&words(&model[field])));
            let mapped = ["mapped_by_code", "mapped_by_judge", "not_mapped", "unknown", "failed"];
            let p = model["p"].as_f64().map(|p| format!("{p:.3}")).unwrap_or_default();
            [text(&words(&model["model"])), share(&model["with_options"]), share(&model["without_options"])]
                .into_iter()
                .chain(fields)
                .chain([text(&p)])
                .chain(mapped.map(|field| text(&words(&model[field]))))
                .collect()
        };
        self.table(
            "The same questions without options",
            &[
                "model",
                "right with options",
                "right without",
                "only with",
                "only without",
                "p",
                "mapped by code",
                "by the judge",
                "other",
                "unknown",
                "failed",
            ],
            list(&open["models"]).iter().map(row).collect(),
        );
    }

    fn together(&mut self, document: &Value) {
        let errors = &document["errors"];
        let mut rows = Vec::new();
        let best = &document["panel_against_best"];
        for (field, name) in [("right", "right"), ("wrong", "said the opposite")] {
            let side = &best[field];
            if !side.is_null() {
                let figures = format!(
                    "panel {}, {} {} of {}; only the panel {}, only the model {} (p = {:.3})",
                    words(&side["panel"]),
                    words(&best["model"]),
                    words(&side["model"]),
                    words(&best["statements"]),
                    words(&side["only_panel"]),
                    words(&side["only_model"]),
                    side["p"].as_f64().unwrap_or(1.0),
                );
                rows.push(vec![text(name), text(&figures)]);
            }
        }
        for pair in list(&errors["pairs"]) {
            let interval = (pair["interval_95"][0].as_f64(), pair["interval_95"][1].as_f64());
            let correlation = match (pair["correlation"].as_f64(), interval) {
                (Some(correlation), (Some(low), Some(high))) => {
                    format!("correlation {correlation:.2} ({low:.2} to {high:.2})")
                }
                (Some(correlation), _) => format!("correlation {correlation:.2}"),
                (None, _) => "too few errors for a correlation,".to_owned(),
            };
            let figures = format!("{correlation} on {} statements", words(&pair["statements"]));
            rows.push(vec![text(&format!("errors of {}", words(&pair["models"]))), text(&figures)]);
        }
        if let Some(votes) = errors["effective_votes"].as_f64() {
            rows.push(vec![text("votes are worth"), text(&format!("{votes:.1}"))]);
        }
        for (field, name) in [("all_wrong", "all wrong at once"), ("same_wrong_answer", "same wrong answer")]
        {
            if has_share(&errors[field]) {
                rows.push(vec![text(name), share(&errors[field])]);
            }
        }
        self.table("The models together", &["", ""], rows);
    }

    /// A table of shares.
    fn rates(&mut self, heading: &str, entries: &Value, names: &[&str], shares: &[(&str, &str)]) {
        let headings: Vec<&str> = names.iter().copied().chain(shares.iter().map(|(_, name)| *name)).collect();
        let row = |entry: &Value| {
            let names = names.iter().map(|name| text(&words(&entry[*name])));
            names.chain(shares.iter().map(|(field, _)| share(&entry[*field]))).collect()
        };
        self.table(heading, &headings, list(entries).iter().map(row).collect());
    }

    /// What changed from run to run, if there were several.
    fn flips(&mut self, document: &Value) {
        let row = |name: &str, rate: &Value| has_share(rate).then(|| vec![text(name), share(rate)]);
        let models = list(&document["model_flips"]);
        let models = models.iter().filter_map(|model| row(&words(&model["model"]), &model["flips"]));
        let rows = row("the verdict", &document["flips"]).into_iter().chain(models).collect();
        self.table("Changed from run to run", &["", "of the statements"], rows);
    }

    fn statements(&mut self, document: &Value) {
        let row = |entry: &Value| {
            let error = &entry["error"];
            let said = if error.is_null() { words(&entry["said"]) } else { words(&error["message"]) };
            vec![
                text(&words(&entry["line"])),
                text(&words(&entry["id"])),
                text(&words(&entry["expected"])),
                text(&said),
                text(&words(&entry["fact"])),
                votes_of(entry),
            ]
        };
        let headings = ["line", "id", "expected", "said", "statement", "what the models say"];
        // A later run is no further statement; what it changes is among the flips.
        let first_runs =
            list(&document["results"]).iter().filter(|entry| entry["run"].as_u64().unwrap_or(1) == 1);
        let (right, wrong): (Vec<&Value>, Vec<&Value>) = first_runs.partition(|entry| entry["right"] == true);
        self.table("Wrong, or not verified", &headings, wrong.into_iter().map(row).collect());
        if !right.is_empty() {
            self.push(&format!("<details><summary>{} right ones</summary>", right.len()));
            self.table("", &headings, right.into_iter().map(row).collect());
            self.push("</details>");
        }
    }

    /// A table of cells that are HTML, if there are any rows.
    fn table(&mut self, heading: &str, headings: &[&str], rows: Vec<Vec<String>>) {
        if rows.is_empty() {
            return;
        }
        if !heading.is_empty() {
            self.push(&format!("<h2>{}</h2>", safe(heading)));
        }
        // Many shares side by side fit without their bars alone.
        let class = if headings.len() > MOST_WITH_BARS { " class=\"many\"" } else { "" };
        self.push(&format!("<div class=\"wide\"><table{class}><tr>"));
        for heading in headings {
            self.push(&format!("<th>{}</th>", safe(heading)));
        }
        self.push("</tr>");
        for row in rows {
            self.push("<tr>");
            for cell in &row {
                self.push(cell);
            }
            self.push("</tr>");
        }
        self.push("</table></div>");
    }
}

/// What each model answers to the questions of a statement.
fn votes_of(entry: &Value) -> String {
    let claims = list(&entry["claims"]).iter().filter_map(|claim| ClaimResult::deserialize(claim).ok());
    let groups = claims.flat_map(|claim| votes::groups(&claim));
    let said: Vec<String> =
        groups.map(|group| safe(&format!("{}: {}", group.says, group.models.join(", ")))).collect();
    format!("<td>{}</td>", said.join("<br>"))
}

/// A text that can do no harm in a page.
fn safe(text: &str) -> String {
    escape(&sanitize::line(text))
}

fn text(text: &str) -> String {
    format!("<td>{}</td>", safe(text))
}

fn has_share(rate: &Value) -> bool {
    rate["of"].as_u64().is_some_and(|total| total > 0)
}

/// A share with its interval, in figures and as a bar.
fn share(rate: &Value) -> String {
    let interval = (rate["interval_95"][0].as_f64(), rate["interval_95"][1].as_f64());
    let (Some(percent), (Some(low), Some(high))) = (rate["percent"].as_f64(), interval) else {
        return "<td></td>".to_owned();
    };
    let count = format!("{} of {}", words(&rate["count"]), words(&rate["of"]));
    format!(
        "<td class=\"n\"><span class=\"bar\"><i style=\"left:{low:.1}%;width:{:.1}%\"></i>\
         <b style=\"left:{percent:.1}%\"></b></span>{}, {percent:.1} % ({low:.1} to {high:.1})</td>",
        high - low,
        safe(&count),
    )
}
