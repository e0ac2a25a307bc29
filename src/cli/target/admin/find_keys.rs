//! Finds the keys that a person means, in the database and on a server alike.

use super::Admin;
use crate::api::console::Key;
use crate::cli::args::text::read_stdin;
use crate::cli::process::exit::{Failure, Kind};
use crate::cli::terminal::printer::Printer;
use crate::keys::{self, FindError};
use crate::secret::{self, ExposeSecret};

/// How many candidates of an ambiguous name are listed.
const MAX_LISTED: usize = 10;

impl Admin {
    /// The key that an argument means, by its id, its name or its last four characters. `-` reads the key itself from
    /// standard input: as an argument, every process on the machine could read it.
    pub(crate) fn find_key(&self, text: &str, printer: &Printer) -> Result<Key, Failure> {
        must_not_be_a_key(text)?;
        if text == "-" { self.piped_key(printer) } else { self.pick(&self.keys(None, None)?, text) }
    }

    /// The keys that arguments mean, as in [`Admin::find_key`]; all are resolved before anything is done to one.
    pub(crate) fn find_keys(&self, texts: &[String], printer: &Printer) -> Result<Vec<Key>, Failure> {
        texts.iter().try_for_each(|text| must_not_be_a_key(text))?;
        let by_name = texts.iter().any(|text| text != "-");
        let all = if by_name { self.keys(None, None)? } else { Vec::new() };
        let one = |(at, text): (usize, &String)| {
            let found = if text == "-" { self.piped_key(printer) } else { self.pick(&all, text) };
            found.map_err(|failure| match texts.len() {
                1 => failure,
                // Identified by position: the argument may be a key, which must not be repeated.
                count => {
                    let message = format!("KEY {} of {count}: {}", at + 1, failure.message);
                    Failure { message, ..failure }
                }
            })
        };
        texts.iter().enumerate().map(one).collect()
    }

    fn piped_key(&self, printer: &Printer) -> Result<Key, Failure> {
        let text = read_stdin(printer, secret::read)?.map_err(|cause| {
            Failure::usage(format!("standard input holds no key: {cause}")).caused_by(cause)
        })?;
        if keys::service_of(text.expose_secret()).is_none() {
            return self.pick(&self.keys(None, None)?, text.expose_secret());
        }
        self.records().key_by_secret(&text)?.ok_or_else(|| self.no_such_key())
    }

    /// The one of `keys` that `text` means.
    fn pick(&self, keys: &[Key], text: &str) -> Result<Key, Failure> {
        keys::find(keys, text).map_err(|cause| match &cause {
            FindError::NotFound => self.no_such_key(),
            FindError::Ambiguous(candidates) => {
                let failure =
                    Failure::new(Kind::Conflict, cause.to_string()).hint("use the id of one of them");
                candidates.iter().take(MAX_LISTED).map(candidate).fold(failure, Failure::hint)
            }
        })
    }

    /// The failure for a key that does not exist. Does not repeat what it was named by, as that may have been a key.
    fn no_such_key(&self) -> Failure {
        let failure = Failure::new(Kind::NotFound, FindError::NotFound.to_string());
        self.not_found(failure.hint("use its id, its name or its last four characters"))
    }
}

fn must_not_be_a_key(text: &str) -> Result<(), Failure> {
    refuse_key(text, "use its id, its name or its last four characters, or pipe it in and use `-`")
}

/// As [`must_not_be_a_key`], with a hint at what is wanted instead.
pub(super) fn refuse_key(text: &str, hint: &'static str) -> Result<(), Failure> {
    if keys::service_of(text.trim()).is_none() {
        return Ok(());
    }
    Err(Failure::usage("every process on this machine can read a key on the command line").hint(hint))
}

fn candidate(key: &Key) -> String {
    let name = key.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let (made, state) = (&key.created_at, key.state.as_str());
    let used =
        key.last_used_at.as_ref().map_or_else(|| "never used".to_owned(), |at| format!("last used {at}"));
    let end = match (&key.replaced_by, &key.expires_at) {
        (Some(new), Some(end)) => format!(", replaced by {new}, ends at {end}"),
        (None, Some(end)) => format!(", ends at {end}"),
        _ => String::new(),
    };
    format!("{}: {} …{}{name}, made {made}, {used}, {state}{end}", key.id, key.service, key.last4)
}
