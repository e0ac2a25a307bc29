//! A table of settings: each row says what a setting is called, what it does, how it is read and what it sets.
//!
//! One row is all that the configuration knows of a setting. Reading a file, filling in the [`Table::Settings`] of the
//! room that the setting belongs to, `mk config list` and the example of `server.toml` (which the manual repeats) are
//! made from it. The default is not in the row: it is what the settings have before a file is read. Only what no table
//! can say, such as which models make a panel, is code beside it.

use super::origin::Origins;
use super::reader::Section;
use crate::config::ConfigError;

/// What [`settings_table`] makes of its rows.
pub(in crate::config) trait Table: Clone + Default {
    /// What the rows set; its fields hold the defaults until then.
    type Settings;

    /// Reads the keys of the table from a file.
    fn read(section: &mut Section<'_>) -> Result<Self, ConfigError>;

    /// This table, completed by the values of `base`.
    fn completed_by(&self, base: &Self) -> Self;

    /// Sets what the file has, and records where. `name` is the dotted name of the table, empty for the file itself.
    fn apply(&self, name: &str, settings: &mut Self::Settings, origins: &mut Origins);

    /// The dotted key and the value of each row, in the file's notation; empty if not set.
    fn list(name: &str, settings: &Self::Settings) -> Vec<(String, String)>;

    /// The rows as a file would show them.
    fn rows(settings: &Self::Settings) -> Vec<Row>;
}

/// A setting as the example shows it.
pub(in crate::config) struct Row {
    /// Its key.
    pub(in crate::config) key: &'static str,
    /// What it does, in the lines of its row.
    pub(in crate::config) help: &'static [&'static str],
    /// Its value, in the file's notation; empty if nothing is set by default.
    pub(in crate::config) value: String,
    /// What it could be where nothing is set by default, or what is usually chosen for it at start.
    pub(in crate::config) example: Option<&'static str>,
}

/// Declares a [`Table`]: `key (at field): type = how a Section reads it`, and where they are needed the function that
/// writes an optional field (`written …`) and a value to show for it (`such as …`).
macro_rules! settings_table {
    (
        $(#[$meta:meta])*
        struct $Table:ident for $Settings:ty {
            $(
                $(#[doc = $help:literal])*
                $key:ident $(at $($path:ident).+)?: $T:ty = $method:ident($($argument:expr),*)
                $(, written $write:expr)? $(, such as $example:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Default)]
        pub(in crate::config) struct $Table {
            $(pub(in crate::config) $key: Option<$crate::config::sources::reader::Located<$T>>,)*
        }

        impl $crate::config::sources::table::Table for $Table {
            type Settings = $Settings;

            fn read(
                section: &mut $crate::config::sources::reader::Section<'_>,
            ) -> Result<Self, $crate::config::ConfigError> {
                Ok(Self { $($key: section.$method(stringify!($key) $(, $argument)*)?,)* })
            }

            fn completed_by(&self, base: &Self) -> Self {
                Self { $($key: self.$key.clone().or_else(|| base.$key.clone()),)* }
            }

            fn apply(
                &self,
                name: &str,
                settings: &mut $Settings,
                origins: &mut $crate::config::sources::origin::Origins,
            ) {
                $(if let Some(found) = &self.$key {
                    let key = $crate::config::sources::table::dotted(name, stringify!($key));
                    origins.set(key, found.place.origin());
                    settings_table!(@field settings, $key $(, $($path).+)?) = found.value.clone().into();
                })*
            }

            fn list(name: &str, settings: &$Settings) -> Vec<(String, String)> {
                vec![$((
                    $crate::config::sources::table::dotted(name, stringify!($key)),
                    settings_table!(@written settings_table!(@field settings, $key $(, $($path).+)?) $(, $write)?),
                ),)*]
            }

            fn rows(settings: &$Settings) -> Vec<$crate::config::sources::table::Row> {
                vec![$($crate::config::sources::table::Row {
                    key: stringify!($key),
                    help: &[$($help),*],
                    value: settings_table!(@written settings_table!(@field settings, $key $(, $($path).+)?) $(, $write)?),
                    example: None $(.or(Some($example)))?,
                },)*]
            }
        }
    };
    (@field $settings:ident, $key:ident) => { $settings.$key };
    (@field $settings:ident, $key:ident, $($path:ident).+) => { $settings $(.$path)+ };
    (@written $field:expr, $write:expr) => { $write($field.as_ref()) };
    (@written $field:expr) => { $crate::config::sources::values::Written::written(&$field) };
}
pub(in crate::config) use settings_table;

/// The dotted name of a key in a table.
pub(in crate::config) fn dotted(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// The table that a section of a file is as a whole; empty if the file does not have it.
pub(in crate::config) fn whole_table<T: Table>(section: Option<Section<'_>>) -> Result<T, ConfigError> {
    let Some(mut section) = section else { return Ok(T::default()) };
    let table = T::read(&mut section)?;
    section.finish()?;
    Ok(table)
}

/// Columns of a file for people.
const WIDTH: usize = 80;
/// Where what a setting does begins, if it stands behind it.
const HELP_COLUMN: usize = 36;

/// Rows as a file shows them that changes nothing: `#` before each setting, and what it does behind it, or above it if
/// that is too long. What nothing is set for by default is an example, further in.
pub(in crate::config) fn commented_out(rows: &[Row]) -> String {
    lines(rows, |row| if row.value.is_empty() { "#   " } else { "#" })
}

/// Rows as a file shows them that sets each to something.
pub(in crate::config) fn sample(rows: &[Row]) -> String {
    lines(rows, |_| "")
}

fn lines(rows: &[Row], start: impl Fn(&Row) -> &'static str) -> String {
    let line = |row: &Row| {
        let help = row.help.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let setting = format!("{}{} = {}", start(row), row.key, row.example.unwrap_or(&row.value));
        let line = format!("{setting:HELP_COLUMN$} # {help}");
        let fits = setting.len() <= HELP_COLUMN && line.chars().count() <= WIDTH;
        if fits { line + "\n" } else { wrapped(&help) + &setting + "\n" }
    };
    rows.iter().map(line).collect()
}

/// A comment of as many lines as it takes.
fn wrapped(help: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in help.split(' ') {
        let last = lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= WIDTH);
        match last {
            Some(line) => line.extend([" ", word]),
            None => lines.push(format!("# {word}")),
        }
    }
    lines.join("\n") + "\n"
}
