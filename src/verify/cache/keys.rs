//! What entries depend on, as keys.
//!
//! In each key are the app; the version of this program and the hash of its prompts; domain, format, day, context,
//! `totalModels` and `explain`; and all settings that a result depends on, models with the place that they are called
//! at. Not in it are limits of time, as only what is whole is kept, and `minRequired`, as votes are recounted.

use super::CacheKey;
use crate::api::verify::Format;
use crate::cache_entry::KeyParts;
use crate::verify::model_calls::calls::ModelClient;
use crate::verify::voting::ballot::Roster;
use crate::verify::{Job, PanelSettings, prompts};

/// Changed when the entries change, or what their keys mean.
const FORM: &str = "mk verdicts 1";

/// The keys of one verification's entries.
pub(super) struct Keys {
    /// All that they share.
    shared: KeyParts,
}

impl Keys {
    pub(super) fn new(
        client: &dyn ModelClient,
        settings: &PanelSettings,
        roster: &Roster<'_>,
        job: &Job,
        app_id: &str,
    ) -> Self {
        Self::of([env!("CARGO_PKG_VERSION"), prompts::hash()], client, settings, roster, job, app_id)
    }

    /// The keys of a program of this version, with prompts of this hash.
    fn of(
        program: [&str; 2],
        client: &dyn ModelClient,
        settings: &PanelSettings,
        roster: &Roster<'_>,
        job: &Job,
        app_id: &str,
    ) -> Self {
        // Destructured, so that a new setting cannot be forgotten here.
        let PanelSettings {
            extractor: _,
            extractor_fallbacks: _,
            auditor,
            panel: _,
            standby: _,
            max_fact_chars: _,
            max_claims,
            effort,
            model_timeout: _,
            deadline: _,
            cache: _,
        } = settings;
        let mut shared = KeyParts::of(FORM);
        let [version, prompts] = program;
        shared.text(version).text(prompts).text(app_id);
        shared.text(job.domain.as_str());
        shared.text(match job.format {
            Format::Text => "text",
            Format::Markdown => "markdown",
        });
        shared.text(job.as_of.utc_date());
        shared.optional(job.context.as_deref());
        shared.number(u64::from(job.explain));
        shared.number(roster.panel_size() as u64);
        let mut models = |models: Vec<&str>| {
            shared.number(models.len() as u64);
            for model in models {
                shared.text(model).optional(client.place(model).as_deref());
            }
        };
        models(settings.extractors().collect());
        models(auditor.as_deref().into_iter().collect());
        // The judge of what extractor and auditor differ about may be any of the panel.
        models(settings.panel.iter().map(String::as_str).collect());
        models(roster.models().collect());
        shared.number(*max_claims as u64).text(effort.as_str());
        Self { shared }
    }

    /// The key of what a text says.
    pub(super) fn text(&self, text: &str) -> CacheKey {
        self.key("text", &[text])
    }

    /// The key of how the panel votes on a claim. Its rivals are not in it: they are compared by what they mean.
    pub(super) fn claim(&self, claim: &str, question: &str, claimed: &str) -> CacheKey {
        self.key("claim", &[claim, question, claimed])
    }

    fn key(&self, kind: &str, parts: &[&str]) -> CacheKey {
        let mut all = self.shared.clone();
        all.text(kind);
        for part in parts {
            all.text(part);
        }
        all.key()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use futures_util::future::BoxFuture;
    use tokio::time::Instant;

    use super::*;
    use crate::api::verify::Domain;
    use crate::clock::Time;
    use crate::inference::{Answer, Chat, Effort, Failure, Prompt};
    use crate::money::NanoUsd;
    use crate::usage::{Meter, Purpose};

    /// Models at this address.
    struct At(&'static str);

    impl ModelClient for At {
        fn ask<'a>(
            &'a self,
            _: &'a str,
            _: &'a Prompt<'a>,
            _: Purpose,
            _: &'a Meter,
            _: Instant,
        ) -> BoxFuture<'a, Result<Answer, Failure>> {
            Box::pin(std::future::pending())
        }

        fn max_cost(&self, _: &str, _: &Chat) -> Option<NanoUsd> {
            None
        }

        fn is_sandbox(&self, _: &str) -> bool {
            false
        }

        fn max_concurrent_calls(&self, _: &str) -> Option<usize> {
            None
        }

        fn place(&self, model: &str) -> Option<String> {
            Some(format!("{} {model}", self.0))
        }
    }

    fn job() -> Job {
        Job { total_models: 2, as_of: Time::from_unix_ms(1_795_176_000_000), ..Job::blank() }
    }

    fn settings(panel: &[&str], standby: &[&str]) -> PanelSettings {
        let list = |models: &[&str]| models.iter().map(|&model| model.to_owned()).collect();
        PanelSettings {
            extractor: "p/x".to_owned(),
            panel: list(panel),
            standby: list(standby),
            ..PanelSettings::default()
        }
    }

    fn keys(
        program: [&str; 2],
        place: &'static str,
        set: &PanelSettings,
        job: &Job,
        app: &str,
    ) -> [CacheKey; 2] {
        let total = usize::try_from(job.total_models).unwrap();
        let roster = Roster::new(&set.panel, &set.standby, total);
        let keys = Keys::of(program, &At(place), set, &roster, job, app);
        [keys.text(&job.fact), keys.claim("c", "q", "a")]
    }

    #[test]
    fn every_part_changes_both_keys_and_nothing_else_does() {
        const PROGRAM: [&str; 2] = ["1.0.0", "abc"];
        let set = || settings(&["p/1", "p/2", "p/3"], &["p/4"]);
        let usual = keys(PROGRAM, "here", &set(), &job(), "app_1");
        let others = [
            keys(["1.0.1", "abc"], "here", &set(), &job(), "app_1"),
            keys(["1.0.0", "abd"], "here", &set(), &job(), "app_1"),
            keys(["1.0.0a", "bc"], "here", &set(), &job(), "app_1"),
            keys(PROGRAM, "there", &set(), &job(), "app_1"),
            keys(PROGRAM, "here", &set(), &job(), "app_2"),
            keys(PROGRAM, "here", &settings(&["p/1", "p/2"], &["p/3", "p/4"]), &job(), "app_1"),
            keys(PROGRAM, "here", &settings(&["p/1", "p/2", "p/3", "p/4"], &[]), &job(), "app_1"),
            keys(PROGRAM, "here", &settings(&["p/2", "p/1", "p/3"], &["p/4"]), &job(), "app_1"),
            keys(
                PROGRAM,
                "here",
                &PanelSettings { auditor: Some("p/5".to_owned()), ..set() },
                &job(),
                "app_1",
            ),
            keys(PROGRAM, "here", &PanelSettings { extractor: "p/y".to_owned(), ..set() }, &job(), "app_1"),
            keys(PROGRAM, "here", &PanelSettings { max_claims: 3, ..set() }, &job(), "app_1"),
            keys(PROGRAM, "here", &PanelSettings { effort: Effort::High, ..set() }, &job(), "app_1"),
            keys(PROGRAM, "here", &set(), &Job { total_models: 3, ..job() }, "app_1"),
            keys(PROGRAM, "here", &set(), &Job { domain: Domain::Legal, ..job() }, "app_1"),
            keys(PROGRAM, "here", &set(), &Job { format: Format::Markdown, ..job() }, "app_1"),
            keys(PROGRAM, "here", &set(), &Job { explain: true, ..job() }, "app_1"),
            keys(PROGRAM, "here", &set(), &Job { context: Some(String::new()), ..job() }, "app_1"),
            keys(PROGRAM, "here", &set(), &Job { as_of: job().as_of.next_utc_midnight(), ..job() }, "app_1"),
        ];
        let all: HashSet<CacheKey> = others.iter().chain([&usual]).flatten().copied().collect();
        assert_eq!(all.len(), 2 * (others.len() + 1));
        let same = Job { id: "ver_2".to_owned(), min_required: 3, model_progress: true, ..job() };
        assert_eq!(keys(PROGRAM, "here", &set(), &same, "app_1"), usual);
        let later = std::time::Duration::from_secs(7);
        let patient = PanelSettings { deadline: later, model_timeout: later, cache: Some(later), ..set() };
        assert_eq!(keys(PROGRAM, "here", &patient, &job(), "app_1"), usual);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let set = settings(&["p/1", "p/2"], &[]);
        let roster = Roster::new(&set.panel, &set.standby, 2);
        let keys = Keys::new(&At(""), &set, &roster, &job(), "app_1");
        assert_ne!(keys.claim("ab", "c", "d"), keys.claim("a", "bc", "d"));
        assert_ne!(keys.claim("", "", ""), keys.text(""));
    }
}
