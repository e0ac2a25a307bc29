//! Bodies and queries of the console, and bodies of verifications: refusals have messages that are safe to show, and
//! what is accepted is stored and read back unchanged.

use std::cell::RefCell;

use crate::input::{is_harmless, is_object};
use mk::api::error::ErrorBody;
use mk::clock::Time;
use mk::keys::{self, ManageError, apps};
use mk::money::NanoUsd;
use mk::providers::{Chat, Effort, Kind, Message, Model, Prompt, Question, Role, dialect};
use mk::server::fuzz_entry;
use mk::storage::Store;
use mk::verify::{PanelSettings, Settings};

const NOW: Time = Time::from_unix_ms(1_795_176_000_000);
/// After this many writes the store is replaced, so that it does not grow with the run.
const MOST_WRITES: u32 = 500;

/// A store with one app.
struct Desk {
    store: Store,
    app: String,
    writes: u32,
}

impl Desk {
    fn new() -> Self {
        let store = Store::in_memory(NOW).expect("a store in memory");
        let app = apps::create(&store, "one", None, NOW).expect("an app").id;
        Self { store, app, writes: 0 }
    }
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::new(Desk::new());
}

fn accepted<T>(read: Result<T, Box<ErrorBody>>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(refusal) => {
            let ErrorBody { message, param, code, .. } = *refusal;
            assert!(is_harmless(&message) && (1..2_000).contains(&message.len()), "{message:?}");
            assert!(param.is_none_or(|param| is_harmless(&param) && param.len() < 500));
            assert!(!code.is_empty());
            None
        }
    }
}

fn managed<T>(made: Result<T, ManageError>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(ManageError::Invalid(field, message)) => {
            assert!(is_harmless(&field) && is_harmless(&message), "{field:?} {message:?}");
            None
        }
        Err(_) => None,
    }
}

fn keys(desk: &mut Desk, body: &[u8]) {
    let Desk { store, app, writes } = desk;
    let change = accepted(fuzz_entry::key_change(body));
    let Some(new) = accepted(fuzz_entry::new_key(body, app)) else { return };
    let Some((key, row)) = managed(keys::create(store, &new, NOW)) else { return };
    *writes += 1;
    assert_eq!(keys::service_of(mk::secret::ExposeSecret::expose_secret(&key)), Some(new.service));
    let record = keys::record(&store.key(&row.id).expect("it was stored"), NanoUsd::default(), NOW);
    assert_eq!((record.limits.per_minute, record.limits.per_day), (new.per_minute, new.per_day));
    assert_eq!((record.models.len(), record.addresses.len()), (new.models.len(), new.addresses.len()));
    assert_eq!(record.budget_usd.map(f64::to_bits), new.budget.map(|budget| budget.usd().to_bits()));
    assert_eq!(record.expires_at.as_deref().map(Time::parse), new.expires_at.map(Some));
    assert!(record.name.as_deref().is_none_or(is_harmless), "{:?}", record.name);
    let texts = record.models.iter().chain(&record.addresses);
    assert!(texts.clone().all(|text| is_harmless(text)), "{:?}", texts.collect::<Vec<_>>());
    let Some(change) = change else { return };
    if let Some(changed) = managed(keys::update(store, &row.id, &change, NOW)) {
        assert_eq!(changed, store.key(&row.id).expect("it was stored"));
    }
}

fn apps(desk: &mut Desk, body: &[u8]) {
    if let Some(change) = accepted(fuzz_entry::app_change(body))
        && let Some(app) = managed(apps::update(&desk.store, &desk.app, &change, NOW))
    {
        desk.writes += 1;
        assert!(is_harmless(&app.name) && !app.name.is_empty(), "{:?}", app.name);
        change.budget.iter().for_each(|budget| assert_eq!(*budget, app.budget));
    }
    if let Some((name, budget)) = accepted(fuzz_entry::new_app(body))
        && let Some(app) = managed(apps::create(&desk.store, &name, budget, NOW))
    {
        desk.writes += 1;
        assert_eq!((app.name.as_str(), app.budget), (name.trim(), budget));
    }
}

fn verification(body: &[u8]) {
    let panel = ["a/b", "c/d", "e/f"].map(str::to_owned).to_vec();
    let settings = PanelSettings { panel, max_fact_chars: 50, ..PanelSettings::default() };
    let settings = Settings { general: settings.clone(), legal: settings, max_concurrent: 1 };
    let Some(job) = accepted(fuzz_entry::verification(body, &settings, NOW)) else { return };
    assert!(!job.fact.trim().is_empty() && job.fact.chars().count() <= 50);
    assert!((2..=3).contains(&job.min_required) && (job.min_required..=3).contains(&job.total_models));
    let message = Message { role: Role::User, content: job.fact.into() };
    let prompt = Prompt::from(Chat {
        messages: vec![message],
        temperature: None,
        max_tokens: None,
        schema: None,
        effort: Effort::Lowest,
    });
    for kind in Kind::OF_APIS {
        let spoken = dialect(kind).expect("these are spoken over HTTP");
        let request =
            prompt.encode(&*spoken, &Model::known("a", kind, "b")).expect("all of it can be expressed");
        assert!(is_object(&request.body), "{kind:?}");
    }
}

fn queries(text: &str) {
    if let Some((span, ..)) = accepted(fuzz_entry::key_list(text)) {
        assert!((1..=200).contains(&span.limit) && is_harmless(&span.after));
    }
    if let Some(report) = accepted(fuzz_entry::usage_report(text, NOW)) {
        assert!(report.days.first <= report.days.last && !report.by.is_empty());
    }
}

pub(super) fn run(bytes: &[u8]) {
    verification(bytes);
    queries(&String::from_utf8_lossy(bytes));
    if let Some(seconds) = accepted(fuzz_entry::rotation(bytes)) {
        assert!(seconds <= 366 * 86_400);
    }
    DESK.with_borrow_mut(|desk| {
        keys(desk, bytes);
        apps(desk, bytes);
        if desk.writes > MOST_WRITES {
            *desk = Desk::new();
        }
    });
}
