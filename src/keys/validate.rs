//! Validation of the fields of keys and apps. Errors name the field and say what would be valid.

use super::{ManageError, NewKey, addresses};
use crate::api::Service;
use crate::api::console::{KeyChange, KeySettings};
use crate::clock::Time;
use crate::model_id;
use crate::money::NanoUsd;
use crate::unsafe_chars::{breaks_line, is_invisible, overrides_direction};

/// The maximum length of a key's name.
pub const MAX_KEY_NAME_CHARS: usize = 100;
/// The maximum length of an app's name.
pub const MAX_APP_NAME_CHARS: usize = 64;
/// The maximum number of model patterns, and of networks, of a key.
pub const MAX_LIST_ENTRIES: usize = 100;
/// Long enough to name any model that can be requested.
pub const MAX_PATTERN_CHARS: usize = model_id::MAX_PROVIDER_CHARS + 1 + model_id::MAX_NAME_BYTES;
/// How much of an invalid text is quoted: enough to recognise it.
const MAX_QUOTED_CHARS: usize = 60;

/// The name of an app in its stored form.
pub(super) fn app_name(name: &str) -> Result<String, ManageError> {
    one_line("name", name, MAX_APP_NAME_CHARS)
}

/// The settings of a new key, with their texts in their stored form.
pub(super) fn new_key(new: &NewKey, now: Time) -> Result<KeySettings, ManageError> {
    let change = checked(&new.settings.clone().into(), new.service, now, "leave it out")?;
    Ok(change.applied_to(&KeySettings::default()))
}

/// `change` to a key for `service`, with its texts in their stored form.
pub(super) fn key_change(change: &KeyChange, service: Service, now: Time) -> Result<KeyChange, ManageError> {
    checked(change, service, now, "set it to null")
}

/// `no_expiry` says how to leave a key without expiry.
fn checked(
    change: &KeyChange,
    service: Service,
    now: Time,
    no_expiry: &str,
) -> Result<KeyChange, ManageError> {
    check_expiry(change.expires_at.flatten(), now, no_expiry)?;
    let models = change.models.as_deref().unwrap_or_default();
    check_model_fields(service, models, change.budget.flatten())?;
    check_answer_fields(service, change)?;
    let name = |name: &Option<String>| name.as_deref().map(key_name).transpose();
    Ok(KeyChange {
        name: change.name.as_ref().map(name).transpose()?,
        models: change.models.as_ref().map(|models| list("models", models, model_pattern)).transpose()?,
        addresses: change.addresses.as_ref().map(|nets| list("addresses", nets, network)).transpose()?,
        ..change.clone()
    })
}

fn key_name(name: &str) -> Result<String, ManageError> {
    one_line("name", name, MAX_KEY_NAME_CHARS)
}

/// `instead` says how to leave a key without expiry.
fn check_expiry(expires_at: Option<Time>, now: Time, instead: &str) -> Result<(), ManageError> {
    if expires_at.is_some_and(|at| at <= now) {
        let message = format!(" must be in the future; {instead} for a key that does not expire");
        return Err(ManageError::Invalid("expires_at".into(), message));
    }
    Ok(())
}

fn check_model_fields(
    service: Service,
    models: &[String],
    budget: Option<NanoUsd>,
) -> Result<(), ManageError> {
    if service != Service::Console {
        return Ok(());
    }
    let refused = |field: &'static str, what: &str| {
        let message = format!(": {what} is for keys that call models; a console key calls none");
        Err(ManageError::Invalid(field.into(), message))
    };
    if !models.is_empty() {
        return refused("models", "a list of models");
    }
    if budget.is_some() {
        return refused("budget_usd", "a budget");
    }
    Ok(())
}

/// What is for requests to models and their answers.
fn check_answer_fields(service: Service, change: &KeyChange) -> Result<(), ManageError> {
    let set = [
        ("cache", change.cache.flatten().is_some(), "answers are kept"),
        ("verify", change.verify.flatten().is_some(), "answers are verified"),
        ("end_users", change.end_users.flatten().is_some(), "such limits are"),
    ];
    match set.into_iter().find(|(_, is_set, _)| *is_set && service != Service::Inference) {
        None => Ok(()),
        Some((field, _, what)) => {
            let message = format!(": {what} for keys of the service inference");
            Err(ManageError::Invalid(field.into(), message))
        }
    }
}

fn one_line(field: &'static str, text: &str, max_chars: usize) -> Result<String, ManageError> {
    let text = text.trim();
    let fits = (1..=max_chars).contains(&text.chars().count());
    let message = if text.contains(overrides_direction) {
        " must not contain characters that change the direction of text".to_owned()
    } else if !fits || text.contains(breaks_line) || text.chars().all(is_invisible) {
        format!(" must be 1 to {max_chars} visible characters, on one line")
    } else {
        return Ok(text.to_owned());
    };
    Err(ManageError::Invalid(field.into(), message))
}

fn list(
    field: &'static str,
    entries: &[String],
    read: fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, ManageError> {
    if entries.len() > MAX_LIST_ENTRIES {
        let message = format!(" may have at most {MAX_LIST_ENTRIES} entries, not {}", entries.len());
        return Err(ManageError::Invalid(field.into(), message));
    }
    let read = |(at, entry): (usize, &String)| {
        read(entry).map_err(|what| ManageError::Invalid(format!("{field}[{at}]").into(), format!(": {what}")))
    };
    entries.iter().enumerate().map(read).collect()
}

/// A caller's text for use in a message: shortened, and free of anything that plays tricks on a terminal or a log.
fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

fn network(text: &str) -> Result<String, String> {
    let network = addresses::parse(text).ok_or_else(|| {
        let text = quoted(text);
        format!("{text} is neither an address nor a network; write 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32")
    })?;
    Ok(network.to_string())
}

/// `*`, `provider/*`, `provider/model` or the name of a pool; a model's name may contain `/`, as some providers' do.
fn model_pattern(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_one_or_all = |(_, model): (&str, &str)| model == "*" || !model.contains('*');
    if text == "*" || model_id::parse(text).is_some_and(is_one_or_all) || model_id::is_pool_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "{} is not a model pattern; write openai/gpt-5.4-mini for a model, openai/* for a provider's, the name of a pool, or *",
        quoted(text)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn fault(change: impl FnOnce(&mut NewKey)) -> String {
        let mut new = NewKey::new(Service::Verify, "default");
        change(&mut new);
        match new_key(&new, NOW) {
            Err(ManageError::Invalid(field, message)) => {
                assert!((1..1000).contains(&message.len()));
                field.into_owned()
            }
            _ => String::new(),
        }
    }

    #[test]
    fn wrong_fields_are_named() {
        assert_eq!(fault(|_| {}), "");
        assert_eq!(fault(|new| new.expires_at = Some(NOW)), "expires_at");
        assert_eq!(fault(|new| new.name = Some("  ".to_owned())), "name");
        assert_eq!(fault(|new| new.name = Some("a\u{1b}[31m".to_owned())), "name");
        assert_eq!(fault(|new| new.name = Some("é".repeat(101))), "name");
        assert_eq!(fault(|new| new.name = Some("é".repeat(100))), "");
        assert_eq!(fault(|new| new.addresses = vec!["localhost".to_owned()]), "addresses[0]");
        let one_is_wrong = ["*".to_owned(), "a/*".to_owned(), "\u{1b}".repeat(100_000)];
        assert_eq!(fault(|new| new.models = one_is_wrong.to_vec()), "models[2]");
        assert_eq!(fault(|new| new.addresses = vec!["10.0.0.1".to_owned(); 101]), "addresses");
        assert_eq!(fault(|new| new.models = vec!["*".to_owned(); 101]), "models");
    }

    #[test]
    fn a_console_key_has_neither_models_nor_a_budget() {
        let console = |new: &mut NewKey| new.service = Service::Console;
        assert_eq!(fault(console), "");
        let with_models =
            |new: &mut NewKey| (new.service, new.models) = (Service::Console, vec!["a/*".to_owned()]);
        assert_eq!(fault(with_models), "models");
        let with_budget = |new: &mut NewKey| {
            (new.service, new.budget) = (Service::Console, NanoUsd::from_usd(5.0));
        };
        assert_eq!(fault(with_budget), "budget_usd");
    }

    #[test]
    fn model_patterns_are_validated() {
        for good in [
            "*",
            "fast",
            "openai/*",
            "openai/gpt-5.4-mini",
            "together/meta/llama-4:free",
            "my-own_1/x",
            "a/größer",
        ] {
            assert_eq!(model_pattern(good).as_deref(), Ok(good));
        }
        for wrong in
            ["", "/", "openai/", "/gpt", "openai/gpt-*", "*/gpt", "open ai/x", "OpenAI/x", "a/b c", "a/\n"]
        {
            assert!(model_pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_are_stored_trimmed_and_networks_in_one_form() {
        let mut new = NewKey::new(Service::Verify, "default");
        new.name = Some(" build server ".to_owned());
        new.addresses = vec!["10.1.2.3/8".to_owned(), " ::1 ".to_owned()];
        let stored = new_key(&new, NOW).unwrap();
        assert_eq!(stored.name.as_deref(), Some("build server"));
        assert_eq!(stored.addresses, ["10.0.0.0/8", "::1/128"]);
    }

    #[test]
    fn names_of_apps_are_validated() {
        assert_eq!(app_name(" news ").unwrap(), "news");
        assert_eq!(app_name("שלום 👩\u{200d}🔬").unwrap(), "שלום 👩\u{200d}🔬");
        for wrong in ["", "a\nb", &"x".repeat(65)] {
            assert!(matches!(app_name(wrong), Err(ManageError::Invalid(..))), "{wrong}");
        }
        // Line breaks, direction overrides, and invisible names.
        for wrong in ["a\u{2028}b", "a\u{202e}b", "a\u{2066}b", "\u{200b}", "\u{feff}\u{ad}", "\u{2060}"] {
            assert!(matches!(app_name(wrong), Err(ManageError::Invalid(..))), "{wrong:?}");
        }
    }
}
