//! Where a value that a message is about was set: by a flag, or else by a key in a file, with its place there.

use super::args::{How, Subject};
use crate::config::{ClientConfig, Origin};

/// The settings that a flag or a file may set: the flag, and the key in files.
const SETTINGS: [(&str, &str); 3] =
    [(DOMAIN, "verify.domain"), (MIN_REQUIRED, "verify.min_required"), (TOTAL_MODELS, "verify.total_models")];

const DOMAIN: &str = "--domain";
/// The flag for how many models must agree.
pub(crate) const MIN_REQUIRED: &str = "--min-required";
/// The flag for how many models are asked.
pub(crate) const TOTAL_MODELS: &str = "--total-models";

/// The settings of this command that come from files.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueSources(Vec<SetInFile>);

#[derive(Clone, Debug)]
struct SetInFile {
    flag: &'static str,
    key: &'static str,
    place: Origin,
}

impl ValueSources {
    /// Determines what was set where for this command.
    pub(crate) fn new(how: &How, config: &ClientConfig) -> Self {
        let is_flag_given = |flag: &str| match flag {
            MIN_REQUIRED => how.min_required.is_some(),
            TOTAL_MODELS => how.total_models.is_some(),
            _ => how.subject.domain.is_some(),
        };
        Self::read(is_flag_given, config)
    }

    /// The same where nothing is put to a panel.
    pub(crate) fn of_subject(subject: &Subject, config: &ClientConfig) -> Self {
        Self::read(|flag| flag != DOMAIN || subject.domain.is_some(), config)
    }

    fn read(is_flag_given: impl Fn(&str) -> bool, config: &ClientConfig) -> Self {
        let from_file = |(flag, key): (&'static str, &'static str)| {
            let place = config.origin(key);
            let is_decided_there = matches!(place, Origin::File { .. }) && !is_flag_given(flag);
            is_decided_there.then_some(SetInFile { flag, key, place })
        };
        Self(SETTINGS.into_iter().filter_map(from_file).collect())
    }

    /// A setting with its value: `--total-models 2`, or `verify.total_models = 2 (/home/me/.mk.toml:3)`.
    pub(crate) fn with_value(&self, flag: &str, value: u32) -> String {
        match self.in_file(flag) {
            Some(SetInFile { key, place, .. }) => format!("{key} = {value} ({place})"),
            None => format!("{flag} {value}"),
        }
    }

    /// Rewrites a message that begins with a flag to name the place where the value was set.
    pub(crate) fn attribute(&self, message: String) -> String {
        let attribute = |SetInFile { flag, key, place }: &SetInFile| {
            message.strip_prefix(flag).map(|rest| format!("{key} ({place}){rest}"))
        };
        self.0.iter().find_map(attribute).unwrap_or(message)
    }

    /// A hint for changing values of these flags, if any of them comes from a file.
    pub(crate) fn hint(&self, flags: &[&'static str]) -> Option<String> {
        let outranked: Vec<&str> =
            flags.iter().copied().filter(|flag| self.in_file(flag).is_some()).collect();
        (!outranked.is_empty())
            .then(|| format!("change the file, or override it with {}", outranked.join(" or ")))
    }

    fn in_file(&self, flag: &str) -> Option<&SetInFile> {
        self.0.iter().find(|found| found.flag == flag)
    }
}
