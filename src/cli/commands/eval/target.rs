//! `--target-precision`: which rule over the votes is precise enough, as settings, or how many statements are missing.
//!
//! A rule reaches the target if the lower ends of both its precisions do: that of TRUE and that of FALSE. Of several,
//! the one that decides the most statements is taken. As it is the best of several on the same statements, it is worth
//! trying on others.

use serde_json::{Value, json};

use super::figures::Figures;
use super::reports::text::shown;
use super::score::{Recount, best_for};
use crate::cli::terminal::humanize::counted;

/// What is to be said about a target.
pub(super) struct PrecisionTarget<'a> {
    figures: &'a Figures,
    percent: f64,
    /// The rule that reaches it, or else the one that comes closest; `None` without any rule.
    rule: Option<&'a Recount>,
    is_reached: bool,
}

impl<'a> PrecisionTarget<'a> {
    /// Looks for a rule that reaches `percent`.
    pub(super) fn new(figures: &'a Figures, percent: f64) -> Self {
        let recounts = &figures.recounts;
        let reached = best_for(recounts, percent);
        let nearest = || {
            let needing =
                recounts.iter().filter_map(|recount| Some((recount.still_needed(percent)?, recount)));
            let fewest = needing.min_by_key(|(needed, _)| *needed).map(|(_, recount)| recount);
            let by_bound = |one: &&Recount, other: &&Recount| {
                one.weaker().1.lower().total_cmp(&other.weaker().1.lower())
            };
            fewest.or_else(|| recounts.iter().max_by(by_bound))
        };
        Self { figures, percent, rule: reached.or_else(nearest), is_reached: reached.is_some() }
    }

    /// Sentences for people, and then lines of configuration that are not to be wrapped.
    pub(super) fn lines(&self) -> (Vec<String>, Vec<String>) {
        let percent = self.percent;
        let Some(recount) = self.rule else {
            return (
                vec![format!("precision of {percent} %: there are too few votes for any rule")],
                Vec::new(),
            );
        };
        let name = self.figures.rule(recount.rule);
        let (label, weaker) = recount.weaker();
        let decided = recount.matrix.decided();
        if self.is_reached {
            let text = format!(
                "precision of {percent} %: reached by {name}, which decides {}; its weaker verdict is {label}, \
                 right in {}",
                shown(decided),
                shown(weaker),
            );
            let blocks = self.settings(recount).into_iter().flat_map(|(file, lines)| {
                let indented = lines.into_iter().map(|line| format!("  {line}"));
                [format!("{file}:")].into_iter().chain(indented)
            });
            return (vec![text], blocks.collect());
        }
        let text = format!(
            "precision of {percent} %: not proved for any rule; closest is {name}, whose {label} is right in {}",
            shown(weaker)
        );
        let then = match recount.still_needed(percent) {
            Some(needed) => format!(
                "about {} would prove it, if the shares stay the same",
                counted(needed, "more statement")
            ),
            None => format!(
                "more statements will not help: its share of right verdicts is not above {percent} %, or one of \
                 its verdicts never occurred"
            ),
        };
        (vec![text, then], Vec::new())
    }

    /// The settings that make a server use the rule, and its clients, by the file that they belong to.
    fn settings(&self, recount: &Recount) -> [(String, Vec<String>); 2] {
        let rule = recount.rule;
        let models = self.figures.panel.iter().filter(|model| Some(model.number) != rule.left_out);
        let names: Vec<String> =
            models.map(|model| toml::Value::String(model.name.clone()).to_string()).collect();
        let section = match self.figures.only_domain.as_deref() {
            Some(domain) if domain != "general" => format!("[verify.domains.{domain}]"),
            _ => "[verify]".to_owned(),
        };
        let of_client = format!(
            "config.toml or .mk.toml (as --min-required {} --total-models {})",
            rule.min_required, rule.of
        );
        [
            ("server.toml".to_owned(), vec![section, format!("panel = [{}]", names.join(", "))]),
            (
                of_client,
                vec![
                    "[verify]".to_owned(),
                    format!("min_required = {}", rule.min_required),
                    format!("total_models = {}", rule.of),
                ],
            ),
        ]
    }

    /// Its entry in JSON.
    pub(super) fn document(&self) -> Value {
        let reached = self.rule.filter(|_| self.is_reached);
        let needed = self.rule.filter(|_| !self.is_reached).and_then(|rule| rule.still_needed(self.percent));
        json!({
            "precision": self.percent,
            "reached": self.is_reached,
            "rule": self.rule.map(|recount| self.figures.rule(recount.rule)),
            "settings": reached.map(|recount| {
                let blocks = self.settings(recount);
                blocks.map(|(file, lines)| format!("# {file}\n{}", lines.join("\n"))).join("\n\n")
            }),
            "more_statements": needed,
        })
    }
}
