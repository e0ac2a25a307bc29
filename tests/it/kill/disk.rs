//! Time in which the disk was at work. Nothing reaches a disk that stands still, which that of a busy machine does for
//! seconds. So what a crash may lose is counted in writes that the test makes beside the server, not by the clock.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The counts and usage of this last period before a crash may be lost.
const MAY_BE_LOST: Duration = Duration::from_secs(1);
/// The pause between two writes.
const PAUSE: Duration = Duration::from_millis(50);

/// A disk that is written to as long as this lives.
pub(super) struct Disk {
    /// When each write had reached it.
    written: Arc<Mutex<Vec<Instant>>>,
}

impl Disk {
    /// The disk of this directory.
    pub(super) fn of(data: &Path) -> Self {
        let mut file = File::create(data.join("written")).unwrap();
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::downgrade(&written);
        thread::spawn(move || {
            while let Some(written) = kept.upgrade() {
                file.write_all(b"x").unwrap();
                file.sync_data().unwrap();
                written.lock().unwrap().push(Instant::now());
                drop(written);
                thread::sleep(PAUSE);
            }
        });
        Self { written }
    }

    /// Whether what a server knew at this time must have reached the disk by the time of a crash.
    pub(super) fn must_have(&self, known: Instant, crash: Instant) -> bool {
        let written = self.written.lock().unwrap();
        let between = written.iter().filter(|at| (known..=crash).contains(&**at)).count();
        known + MAY_BE_LOST <= crash && PAUSE * u32::try_from(between).unwrap() >= MAY_BE_LOST
    }
}
