//! One data directory, and the servers that live on it one after the other.

use std::process::Stdio;
use std::time::{Duration, Instant};

use mk::clock::{Clock, Time};
use reqwest::Client;
use serde_json::json;

use super::load::{self, Callers};
use super::told::Told;
use crate::support::database::copy;
use crate::support::dice::Dice;
use crate::support::mk::{Mk, operator};
use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

/// A second of counts and usage may be lost.
pub(super) const MAY_BE_LOST: Duration = Duration::from_secs(1);
/// Of the key whose day is never used up.
const PLENTY: usize = 1_000_000;
/// Of the key whose day is soon used up, for all lives together.
const SCARCE: usize = 60;

/// What a lane asks its servers with.
pub(super) struct Keys {
    pub(super) http: Client,
    pub(super) console: String,
    pub(super) verify: String,
    pub(super) chat: String,
    /// With [`SCARCE`] requests a day.
    pub(super) scarce: String,
    pub(super) app: String,
}

async fn key(server: &Mk, service: &str, per_day: usize) -> String {
    let per_day = per_day.to_string();
    let arguments =
        ["keys", "create", "--service", service, "--per-minute", "0", "--per-day", &per_day, "--json"];
    let made = operator(&data_dir(server.home()), &arguments).run_beside().await;
    assert_eq!(made.code(), 0, "{made:?}");
    made.json()["key"].as_str().unwrap().to_owned()
}

async fn keys(server: &Mk) -> Keys {
    let console = key(server, "console", 0).await;
    let apps =
        operator(&data_dir(server.home()), &["apps", "list", "--json"]).run_beside().await.json().to_string();
    let at = apps.find("app_").unwrap();
    Keys {
        http: client(),
        console,
        verify: key(server, "verify", PLENTY).await,
        chat: key(server, "inference", 0).await,
        scarce: key(server, "verify", SCARCE).await,
        app: apps[at..].split('"').next().unwrap().to_owned(),
    }
}

/// How a life ends.
enum End {
    /// Killed before it serves, while it opens its files.
    Unborn(Duration),
    /// Killed so long after it began to serve.
    After(Duration),
}

/// Most lives are too short for anything to be safe, some long enough for counts and usage to be on the disk.
fn next_end(dice: &mut Dice) -> End {
    match dice.below(20) {
        0 | 1 => End::Unborn(Duration::from_millis(dice.below(120))),
        2..=4 => End::After(Duration::from_millis(1200 + dice.below(900))),
        _ => End::After(Duration::from_millis(dice.below(450))),
    }
}

/// Lets servers live and die, so many times, and holds what they have told against what is left.
pub(super) async fn live_and_die(provider: String, mut dice: Dice, rounds: u64) {
    let call = serve::call(&provider, "");
    load::configure(&call);
    let data = data_dir(call.home());
    let begun = Clock::system().now();
    let keys = keys(&call).await;
    let (mut told, mut callers) = (Told::default(), Callers::default());
    for _ in 0..rounds {
        match next_end(&mut dice) {
            End::Unborn(life) => kill_unborn(&call, life).await,
            End::After(life) => live(&call, &keys, life, &mut dice, &mut told, &mut callers).await,
        }
        let copy = copy(&data);
        told.must_be_in(copy.path());
    }
    judge(&call, &keys, begun, &told, &callers).await;
}

async fn kill_unborn(call: &Mk, life: Duration) {
    let mut child =
        call.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    tokio::time::sleep(life).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

async fn live(
    call: &Mk,
    keys: &Keys,
    life: Duration,
    dice: &mut Dice,
    told: &mut Told,
    callers: &mut Callers,
) {
    let server = Serve::start_beside(call).await;
    let base = server.base.clone();
    let end = async {
        tokio::time::sleep(life).await;
        let crash = Instant::now();
        server.kill();
        crash
    };
    let writer_life = Duration::from_millis(dice.below(150));
    let ((), (), (), crash) = tokio::join!(
        load::administrate(&base, keys, told),
        load::kill_writer(call, writer_life),
        callers.go_on(&base, keys),
        end,
    );
    callers.crashes.push(crash);
}

/// What a last server, which ends in order, says and leaves.
async fn judge(call: &Mk, keys: &Keys, begun: Time, told: &Told, callers: &Callers) {
    let server = Serve::start_beside(call).await;
    told.must_be_known(&keys.http, &server.base).await;

    let after = load::verify(&keys.http, &server.base, &keys.verify, &json!({})).await.unwrap();
    let remaining: usize = after.headers()["x-ratelimit-remaining"].to_str().unwrap().parse().unwrap();
    // At midnight counting begins anew, and nothing can be told.
    if Clock::system().now().utc_day() == begun.utc_day() {
        let used = PLENTY - remaining - 1;
        let least = callers.plenty.safe(&callers.crashes);
        let most = callers.plenty.sent;
        assert!((least..=most).contains(&used), "{used} requests are counted of {least} to {most}");
        callers.scarce_was_kept_to(SCARCE);
    }
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    callers.must_be_booked(&data_dir(call.home()));
}
