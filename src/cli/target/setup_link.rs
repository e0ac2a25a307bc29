//! The one-time link by which a person makes the first console key in a browser.
//!
//! It is shown on a terminal. Without one it is written to a private file beside the database: a log is read by more
//! people than may administer the server, so the log only says where the file is. The link must never be in a log, and
//! the file must be removed once the link is used, expired or void, or the server ends.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::database::store_failure;
use crate::app::AppState;
use crate::cli::process::exit::{Failure, Kind};
use crate::private;
use crate::secret::{ExposeSecret, SecretString};
use crate::storage::ReadPurpose;

/// The file's name in the data directory.
const FILE: &str = "setup-link";
/// How soon after its use the file of a link is removed.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Removes the file after the first console key was made in this data directory, which voids the link. A running server
/// would do that a moment later, one that was killed never.
pub(crate) fn remove_void(data_dir: &Path) {
    let _ = fs::remove_file(data_dir.join(FILE));
}

/// The setup link of a server without a console key, if it is one.
#[must_use = "its file is removed when this is dropped"]
pub(crate) struct SetupLink {
    /// The link, to be shown on a terminal.
    pub(crate) shown: Option<SecretString>,
    /// The task that removes the file.
    _watch: Option<AbortOnDropHandle<()>>,
    _file: Option<Arc<LinkFile>>,
}

impl SetupLink {
    /// Issues a link to the server at `base` if it has no usable console key. If it cannot be shown, it is written to a
    /// file in `data_dir`.
    pub(crate) fn begin(
        app: &Arc<AppState>,
        base: &str,
        data_dir: &Path,
        can_be_shown: bool,
    ) -> Result<Self, Failure> {
        let path = data_dir.join(FILE);
        let now = app.clock.now();
        if app.store.has_console_key(now).map_err(|cause| store_failure(cause, "key"))? {
            // Left by a server that was killed, or whose link is no longer valid.
            let _ = fs::remove_file(&path);
            return Ok(Self { shown: None, _watch: None, _file: None });
        }
        let token = app.setup.issue(now).map_err(|cause| {
            let message = format!("the operating system could not supply random bytes: {cause}");
            Failure::new(Kind::Other, message).caused_by(cause)
        })?;
        let link = SecretString::from(format!("{base}/#/setup/{}", token.expose_secret()));
        let file = if can_be_shown { None } else { LinkFile::write(path, &link).map(Arc::new) };
        let watch = AbortOnDropHandle::new(tokio::spawn(watch(app.clone(), file.clone())));
        Ok(Self { shown: can_be_shown.then_some(link), _watch: Some(watch), _file: file })
    }
}

/// Waits until the link is used, expired or void, and then removes its file.
async fn watch(app: Arc<AppState>, file: Option<Arc<LinkFile>>) {
    let has_console_key = || {
        let now = app.clock.now();
        app.store.read_async(ReadPurpose::Console, move |store| store.has_console_key(now))
    };
    // A console key that was made elsewhere voids the link.
    while app.setup.is_open(app.clock.now()) && !matches!(has_console_key().await, Ok(true)) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    if let Some(file) = file {
        file.remove();
    }
    if matches!(has_console_key().await, Ok(false)) {
        tracing::warn!(
            "the setup link has expired; restart the server for a new one, or run `mk keys create --service console`"
        );
    }
}

/// A file holding a link; removed when dropped.
struct LinkFile {
    path: PathBuf,
    text: SecretString,
}

impl LinkFile {
    /// Writes the file. Without it the server still serves, as there is another way to get a console key. The directory
    /// may not exist yet, if the database is elsewhere.
    fn write(path: PathBuf, link: &SecretString) -> Option<Self> {
        let text = SecretString::from(format!("{}\n", link.expose_secret()));
        let made = path.parent().map_or(Ok(()), private::create_dir_all);
        // A file by another server is replaced: two links in one file could not be told apart.
        let _ = fs::remove_file(&path);
        let written = made
            .and_then(|()| private::create_new(&path))
            .and_then(|mut file| file.write_all(text.expose_secret().as_bytes()));
        match written {
            Ok(()) => {
                tracing::info!(
                    path = %path.display(),
                    "there is no console key yet; the link in this file creates the first one, once, within 30 minutes"
                );
                Some(Self { path, text })
            }
            Err(cause) => {
                tracing::warn!(
                    %cause,
                    path = %path.display(),
                    "the setup link cannot be written; run `mk keys create --service console` instead"
                );
                None
            }
        }
    }

    /// Removes the file, unless another server has put its own link there.
    fn remove(&self) {
        if fs::read_to_string(&self.path).is_ok_and(|found| found == self.text.expose_secret())
            && let Err(cause) = fs::remove_file(&self.path)
        {
            tracing::warn!(%cause, path = %self.path.display(), "the setup link file cannot be removed");
        }
    }
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::clock::{Clock, Time};
    use crate::config::{Env, ServerArgs, load_server};
    use crate::keys::setup::LIFE;

    const NOW: Time = Time::from_unix_ms(1_795_202_760_000);

    fn app(clock: &Clock) -> Arc<AppState> {
        let arguments = ServerArgs { sandbox: true, ..ServerArgs::default() };
        let config = load_server(&arguments, &Env::bare([("MK_DATA_DIR", "/nowhere")], NOW)).unwrap();
        Arc::new(AppState::in_memory(&config, clock.clone()).unwrap())
    }

    #[tokio::test]
    async fn a_link_that_has_expired_leaves_no_file() {
        let (clock, dir) = (Clock::manual(NOW), tempfile::tempdir().unwrap());
        let link = SetupLink::begin(&app(&clock), "http://127.0.0.1:8080", dir.path(), false).unwrap();
        let file = dir.path().join(FILE);
        assert!(file.exists() && link.shown.is_none());
        clock.advance(LIFE);
        let limit = Instant::now() + Duration::from_secs(10);
        while file.exists() {
            assert!(Instant::now() < limit, "the file stays");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_link_that_is_shown_leaves_the_file_of_another_server() {
        let (clock, dir) = (Clock::manual(NOW), tempfile::tempdir().unwrap());
        let _hidden = SetupLink::begin(&app(&clock), "http://127.0.0.1:1", dir.path(), false).unwrap();
        let shown = SetupLink::begin(&app(&clock), "http://127.0.0.1:2", dir.path(), true).unwrap();
        assert!(shown.shown.is_some() && dir.path().join(FILE).exists());
        drop(shown);
        tokio::task::yield_now().await;
        assert!(dir.path().join(FILE).exists());
    }

    #[tokio::test]
    async fn another_server_s_file_is_left_alone() {
        let (clock, dir) = (Clock::manual(NOW), tempfile::tempdir().unwrap());
        let first = SetupLink::begin(&app(&clock), "http://127.0.0.1:1", dir.path(), false).unwrap();
        let second = SetupLink::begin(&app(&clock), "http://127.0.0.1:2", dir.path(), false).unwrap();
        let file = dir.path().join(FILE);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("http://127.0.0.1:2/#/setup/"), "{text}");
        drop(first);
        tokio::task::yield_now().await;
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        drop(second);
        tokio::task::yield_now().await;
        assert!(!file.exists());
    }
}
