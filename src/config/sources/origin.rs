//! Where a value comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::paths::PROJECT_FILE;
use super::reader::Located;

/// The layer that set a value. By precedence: flag, variable, project file, user file, default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    #[default]
    Default,
    /// Determined at start: providers by their variables or port, and the panel chosen from them.
    Chosen,
    /// A flag, with its dashes.
    Flag(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// A file, project or user or server.
    File {
        /// The path under which it was opened.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
    },
}

impl Origin {
    /// Whether a person set the value, rather than `mk` itself.
    pub const fn is_set(&self) -> bool {
        !matches!(self, Self::Default | Self::Chosen)
    }

    /// Whether the file of a project set the value.
    pub fn is_of_project(&self) -> bool {
        matches!(self, Self::File { path, .. } if path.file_name().is_some_and(|name| name == PROJECT_FILE))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Chosen => f.write_str("chosen at start"),
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
        }
    }
}

/// The origins of a configuration's values, by key. Anything else is built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::config) struct Origins(BTreeMap<String, Origin>);

impl Origins {
    pub(in crate::config) fn set(&mut self, key: impl Into<String>, origin: Origin) {
        self.0.insert(key.into(), origin);
    }

    /// Records the origin of a value in a file, if the file has it.
    pub(in crate::config) fn record<T>(&mut self, key: impl Into<String>, found: Option<&Located<T>>) {
        if let Some(found) = found {
            self.set(key, found.place.origin());
        }
    }

    /// Returns the file's value if there is one, and records its origin; otherwise the default.
    pub(in crate::config) fn value_or<T: Clone>(
        &mut self,
        key: impl Into<String>,
        found: Option<&Located<T>>,
        default: T,
    ) -> T {
        self.record(key, found);
        found.map_or(default, |found| found.value.clone())
    }

    pub(in crate::config) fn get(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or_default()
    }
}
