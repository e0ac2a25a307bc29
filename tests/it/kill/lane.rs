//! One data directory, and the servers that run on it one after another.

use std::process::Stdio;
use std::time::{Duration, Instant};

use mk::clock::{Clock, Time};
use reqwest::Client;
use serde_json::json;

use super::acknowledged::Acknowledged;
use super::disk::Disk;
use super::load::{self, Callers};
use crate::support::database::copy;
use crate::support::dice::Dice;
use crate::support::mk::{Mk, operator};
use crate::support::serve::{self, Serve, data_dir};
use crate::support::server::client;

/// The daily limit of the key that never reaches it.
const PLENTY: usize = 1_000_000;
/// The daily limit of the key that reaches it soon, over all servers of a lane.
const SCARCE: usize = 60;

/// The keys that a lane's requests use, and the client that sends them.
pub(super) struct Keys {
    pub(super) http: Client,
    pub(super) console: String,
    pub(super) verify: String,
    pub(super) chat: String,
    /// May send [`SCARCE`] requests a day.
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

/// When a server is killed.
enum Kill {
    /// This long after it was started, usually while it still opens its files.
    WhileStarting(Duration),
    /// This long after it began to serve.
    WhileServing(Duration),
}

/// Most servers are killed before any usage is safe, some run long enough for counts and usage to reach the disk.
fn next_kill(dice: &mut Dice) -> Kill {
    match dice.below(20) {
        0 | 1 => Kill::WhileStarting(Duration::from_millis(dice.below(120))),
        2..=4 => Kill::WhileServing(Duration::from_millis(1200 + dice.below(900))),
        _ => Kill::WhileServing(Duration::from_millis(dice.below(450))),
    }
}

/// Runs and kills `rounds` servers, and checks after each that everything acknowledged is still there.
pub(super) async fn run(provider: String, mut dice: Dice, rounds: u64) {
    let call = serve::call(&provider, "");
    load::configure(&call);
    let data = data_dir(call.home());
    let started = Clock::system().now();
    let keys = keys(&call).await;
    let (mut acknowledged, mut callers) = (Acknowledged::default(), Callers::new(Disk::of(&data)));
    for _ in 0..rounds {
        match next_kill(&mut dice) {
            Kill::WhileStarting(life) => kill_while_starting(&call, life).await,
            Kill::WhileServing(life) => {
                kill_while_serving(&call, &keys, life, &mut dice, &mut acknowledged, &mut callers).await;
            }
        }
        let copy = copy(&data);
        acknowledged.assert_stored_in(copy.path());
    }
    check_final_state(&call, &keys, started, &acknowledged, &callers).await;
}

async fn kill_while_starting(call: &Mk, life: Duration) {
    let mut child =
        call.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    tokio::time::sleep(life).await;
    child.kill().unwrap();
    child.wait().unwrap();
}

async fn kill_while_serving(
    call: &Mk,
    keys: &Keys,
    life: Duration,
    dice: &mut Dice,
    acknowledged: &mut Acknowledged,
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
        load::administrate(&base, keys, acknowledged),
        load::kill_writer(call, writer_life),
        callers.send_requests(&base, keys),
        end,
    );
    callers.crashes.push(crash);
}

/// Starts a last server and shuts it down regularly; checks what it reports and what it leaves in the databases.
async fn check_final_state(
    call: &Mk,
    keys: &Keys,
    started: Time,
    acknowledged: &Acknowledged,
    callers: &Callers,
) {
    let server = Serve::start_beside(call).await;
    acknowledged.assert_known_to(&keys.http, &server.base).await;

    let after = load::verify(&keys.http, &server.base, &keys.verify, &json!({})).await.unwrap();
    let remaining: usize = after.headers()["x-ratelimit-remaining"].to_str().unwrap().parse().unwrap();
    // At midnight the counts start over, so that nothing can be checked.
    if Clock::system().now().utc_day() == started.utc_day() {
        let used = PLENTY - remaining - 1;
        let least = callers.safe(&callers.plenty);
        let most = callers.plenty.sent;
        assert!((least..=most).contains(&used), "{used} requests are counted, expected {least} to {most}");
        callers.assert_scarce_limit(SCARCE);
    }
    server.signal("TERM");
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    callers.assert_recorded(&data_dir(call.home()));
}
