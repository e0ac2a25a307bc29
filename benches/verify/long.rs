//! The longest text: 200,000 characters in 100 sections with 200 claims, each call to a model 200 ms, as many at once as
//! there are.
//!
//! With nothing at fault, it takes an extraction and the longer of audit and votes, which begin together: 400 ms. What
//! it takes of memory is told by the most that the server's process ever had, above what it had after a first, small one.

use serde_json::{Value, json};

use crate::panel::{MODEL_TIME, Panel};
use crate::provider::claim;
use crate::server::Server;
use crate::table::{Figure, Table, percentile};
use crate::waves::{Verifier, body};

/// How many sections the text has; its extractor finds two claims in each.
pub(crate) const SECTIONS: usize = 100;
/// How long a section is, in characters, with the blank line behind it.
const SECTION_CHARS: usize = 2_000;
/// What stands before the number of a section.
pub(crate) const MARK: &str = "House ";

/// Measures both figures.
pub(crate) async fn measure(table: &mut Table, is_quick: bool) -> anyhow::Result<()> {
    let panel = Panel::start()?;
    let server = Server::start_audited(&format!("http://{}/v1", panel.address))?;
    Verifier::connect(&server, &body()).await?;
    let before = server.process.resident_kb();
    let text: Vec<String> = (0..SECTIONS).map(section).collect();
    let whole = json!({"fact": text.join("\n\n")}).to_string();
    let mut caller = Verifier::connect(&server, &whole).await?;
    let used = before.zip(server.process.peak_kb()).map(|(before, peak)| peak.saturating_sub(before));
    let mut times = Vec::new();
    for _ in 0..if is_quick { 3 } else { 15 } {
        times.push(caller.verify().await?.1);
    }
    let median = Figure::ms(percentile(&mut times, 50)).beside(MODEL_TIME * 2);
    table.hold("100 sections, 200 claims x 3 models of 200 ms, median", median, 430.0);
    let used_mb = used.map(|kb| f64::from(kb) / 1024.0);
    table.hold("memory of the first such verification", Figure::of(used_mb, "MB"), 8.0);
    Ok(())
}

/// A section: two sentences that state something, and many that only say what somebody likes.
fn section(n: usize) -> String {
    let [first, second] = sentences(n);
    let mut text = format!("{first} {second}");
    while text.len() + LIKED.len() + 1 < SECTION_CHARS - 2 {
        text.push(' ');
        text.push_str(LIKED);
    }
    // To the character, so that each section is one.
    let rest = SECTION_CHARS - 2 - text.len();
    text.insert_str(text.len() - 1, &"ly".repeat(rest)[..rest]);
    text
}

const LIKED: &str = "People who walk along the street every morning say that it looks lovely in the sun.";

fn sentences(n: usize) -> [String; 2] {
    [
        format!("{MARK}{n} at the end of the street is painted blue."),
        format!("The garden behind the same house has {} apple trees.", n + 3),
    ]
}

/// What the extractor answers about a section.
pub(crate) fn extraction(n: usize) -> Value {
    let text = section(n);
    let [first, second] = sentences(n);
    let colour = format!("Which colour has house {n} at the end of the street?");
    let trees = format!("How many apple trees has the garden behind house {n}?");
    let count = |more: usize| (n + more).to_string();
    let rivals: Vec<String> = [0, 1, 2, 4, 5, 6].into_iter().map(count).collect();
    let rivals: Vec<&str> = rivals.iter().map(String::as_str).collect();
    let mut second_claim = claim(&second, &trees, &count(3), &rivals);
    second_claim["claim"] = json!(format!("The garden behind house {n} has {} apple trees.", n + 3));
    let rest = text[first.len() + second.len() + 2..].to_owned();
    json!({
        "claims": [claim(&first, &colour, "blue", &["red", "green", "white"]), second_claim],
        "skipped": [{"quote": rest, "reason": "opinion"}],
    })
}
