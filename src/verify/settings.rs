//! The operator's settings for verification.

use std::time::Duration;

use crate::api::verify::Domain;
use crate::inference::Effort;

/// Settings for both domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// For `general` statements.
    pub general: PanelSettings,
    /// For `legal` statements.
    pub legal: PanelSettings,
    /// The most concurrent model calls of all verifications together.
    pub max_concurrent: usize,
}

impl Settings {
    /// Every model that may be called in some domain.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.general.models().chain(self.legal.models())
    }

    /// The domains for which statements are refused, as models are missing.
    pub fn lacking(&self) -> Vec<Domain> {
        let domains = [(Domain::General, &self.general), (Domain::Legal, &self.legal)];
        domains.into_iter().filter(|(_, settings)| !settings.is_usable()).map(|(domain, _)| domain).collect()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { general: PanelSettings::default(), legal: PanelSettings::default(), max_concurrent: 64 }
    }
}

/// The models and limits of one domain. Models are given by their full identifiers, `<provider>/<model_name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelSettings {
    /// The model that splits a statement into claims; empty if none is configured.
    pub extractor: String,
    /// Called in order when the extractor fails.
    pub extractor_fallbacks: Vec<String>,
    /// The model that is to compare claims with the statement; `None` for no audit. Which one does: see
    /// [`Self::acting_auditor`].
    pub auditor: Option<String>,
    /// The models that answer, best first.
    pub panel: Vec<String>,
    /// The models that replace panel models that fail.
    pub standby: Vec<String>,
    /// The longest statement, in characters.
    pub max_fact_chars: usize,
    /// The most claims per statement; further ones are skipped with `over_limit`. 0: one per 40 characters, at most
    /// 5,000.
    pub max_claims: usize,
    /// How long models that reason may think.
    pub effort: Effort,
    /// The timeout of a single model call; an extraction may take up to three times as long.
    pub model_timeout: Duration,
    /// The time limit of a whole verification of one section; each further one adds 5 s.
    pub deadline: Duration,
    /// How long what was found is kept for the same text and the same claims; `None` for no cache.
    pub cache: Option<Duration>,
}

/// The fewest models that can agree.
pub(super) const MIN_PANEL: usize = 2;
/// The most models that are asked for their word before a part counts as undecided.
const MAX_JUDGES: usize = 2;
/// What each section but the first adds to the deadline.
pub(super) const SECTION_TIME: Duration = Duration::from_secs(5);
/// One claim is allowed for so many characters of a statement, where no limit is set.
const CHARS_PER_CLAIM: usize = 40;
/// The most claims of a statement, where no limit is set.
const MAX_CLAIMS: usize = 5_000;
/// The fewest, where no limit is set: a short statement may hold more than its length suggests.
const MIN_CLAIMS: usize = 16;

impl PanelSettings {
    /// Whether there are models enough to verify anything.
    pub fn is_usable(&self) -> bool {
        self.extractors().next().is_some() && self.panel.len() >= MIN_PANEL
    }

    /// The models that may extract, in order.
    pub(super) fn extractors(&self) -> impl Iterator<Item = &str> {
        let models = std::iter::once(&self.extractor).chain(&self.extractor_fallbacks).map(String::as_str);
        models.filter(|model| !model.is_empty())
    }

    /// Every model that may be called.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let auditor = self.auditor.iter();
        self.extractors().chain(auditor.chain(&self.panel).chain(&self.standby).map(String::as_str))
    }

    /// Every model that an extraction may call.
    pub(super) fn extraction_models(&self) -> impl Iterator<Item = &str> {
        let of = |extractor| self.auditor_of(extractor).into_iter().chain(self.judges(extractor));
        self.extractors().chain(self.extractors().flat_map(of))
    }

    /// The model that really audits, unless a fallback extracts; `None` for no audit. It is another one than `auditor`
    /// where that is the extractor itself.
    pub fn acting_auditor(&self) -> Option<&str> {
        self.auditor_of(self.extractors().next()?)
    }

    /// The model that audits what an extractor made: the auditor, in whose place another one of the panel stands if it is
    /// the extractor itself. None if there is no auditor, or no second model.
    pub(super) fn auditor_of(&self, extractor: &str) -> Option<&str> {
        let auditor = self.auditor.as_deref()?;
        let panel = self.panel.iter().map(String::as_str);
        std::iter::once(auditor).chain(panel).find(|model| *model != extractor)
    }

    /// The models whose word decides what extractor and auditor differ about, in order: others of the panel.
    pub(super) fn judges<'a>(&'a self, extractor: &'a str) -> impl Iterator<Item = &'a str> {
        let auditor = self.auditor_of(extractor);
        let panel = self.panel.iter().map(String::as_str);
        panel.filter(move |model| *model != extractor && Some(*model) != auditor).take(MAX_JUDGES)
    }

    /// The most claims of a statement of this many characters.
    pub(super) fn max_claims(&self, chars: usize) -> usize {
        match self.max_claims {
            0 => (chars / CHARS_PER_CLAIM).clamp(MIN_CLAIMS, MAX_CLAIMS),
            set => set,
        }
    }
}

impl Default for PanelSettings {
    fn default() -> Self {
        Self {
            extractor: String::new(),
            extractor_fallbacks: Vec::new(),
            auditor: None,
            panel: Vec::new(),
            standby: Vec::new(),
            max_fact_chars: 200_000,
            max_claims: 0,
            effort: Effort::Lowest,
            model_timeout: Duration::from_secs(30),
            deadline: Duration::from_mins(2),
            cache: None,
        }
    }
}
