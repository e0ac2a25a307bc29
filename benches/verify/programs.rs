//! How long the program takes from its start to its exit.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::serve::MK;
use crate::table::{Figure, Table, percentile};

/// Measures two commands.
pub(crate) fn measure(table: &mut Table, is_quick: bool) -> anyhow::Result<()> {
    let rounds = if is_quick { 5 } else { 25 };
    table.hold("mk --version", Figure::ms(median(&["--version"], rounds)?), 10.0);
    let two = ["verify", "--sandbox", "Gold has the symbol Au. The capital of Australia is Canberra."];
    table.hold("mk verify --sandbox, two claims", Figure::ms(median(&two, rounds)?), 150.0);
    Ok(())
}

fn median(arguments: &[&str], rounds: usize) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let home = tempfile::tempdir()?;
        let mut program = Command::new(MK);
        program.args(arguments).env_clear().env("HOME", home.path());
        let status = program.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        ensure!(status.code().is_some(), "{status}");
        times.push(started.elapsed());
    }
    Ok(percentile(&mut times, 50))
}
