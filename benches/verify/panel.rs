//! The models of a verification, in their own process and on one thread: each call is answered after [`MODEL_TIME`],
//! with bytes that were built once.
//!
//! It is the bench's own binary, started with [`ROLE`]: it prints its address and serves until its standard input
//! closes, so that it cannot outlive the bench. It shares the machine with the server and represents many machines, so
//! it does as little as possible: it looks for the end of a request, and what it asks for.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::formats::Format;
use crate::long;
use crate::process::{self, Process};
use crate::provider::claim;

/// The argument that makes this binary the models.
pub(crate) const ROLE: &str = "panel";
/// How long each call takes.
pub(crate) const MODEL_TIME: Duration = Duration::from_millis(200);
/// How many claims the extractor finds.
pub(crate) const CLAIMS: usize = 10;
/// A text that only calls of the extractor contain.
pub(crate) const FOR_CLAIMS: &str = r#""name":"claims""#;
/// A text that only calls of the auditor contain.
const FOR_AUDIT: &str = r#""name":"audit""#;
/// Larger than any call.
const MAX_REQUEST: usize = 64 << 10;

/// The running models, as the bench sees them.
pub(crate) struct Panel {
    /// Where they listen.
    pub(crate) address: SocketAddr,
    _process: Process,
}

impl Panel {
    /// Starts them and waits for their address.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut command = process::program(&std::env::current_exe()?);
        command.arg(ROLE).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::start(&mut command)?;
        let stdout = child.stdout.take().context("the models have no standard output")?;
        let process = Process::of(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the models do not start: {line}"))?;
        Ok(Self { address, _process: process })
    }
}

/// Runs the models until standard input closes.
pub(crate) fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
        tokio::task::spawn_local(accept(listener));
        let mut rest = tokio::io::stdin();
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        Ok(())
    })
}

fn name(n: usize) -> char {
    ('A'..='Z').nth(n).unwrap_or('Z')
}

/// What a statement says in its sentence `n`, and a claim.
pub(crate) fn sentence(n: usize) -> String {
    format!("House {} at the end of the street is painted blue.", name(n))
}

/// The possible responses.
struct Answers {
    claims: Vec<u8>,
    /// The claims of each section of the long text.
    sections: Vec<Vec<u8>>,
    audit: Vec<u8>,
    answer: Vec<u8>,
}

impl Answers {
    fn new() -> Self {
        let claims: Vec<Value> = (0..CLAIMS)
            .map(|n| {
                let question = format!("Which colour has house {}?", name(n));
                claim(&sentence(n), &question, "blue", &["red", "green", "white"])
            })
            .collect();
        let whole = |text: Value| {
            let body = Format::Chat.answer("model", &text.to_string());
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            (head + &body).into_bytes()
        };
        Self {
            claims: whole(json!({"claims": claims, "skipped": []})),
            sections: (0..long::SECTIONS).map(|n| whole(long::extraction(n))).collect(),
            audit: whole(json!({"claims": [], "missing": []})),
            answer: whole(json!({"answer": "A"})),
        }
    }

    fn to(&self, request: &str) -> &[u8] {
        if request.contains(FOR_AUDIT) {
            return &self.audit;
        }
        if !request.contains(FOR_CLAIMS) {
            return &self.answer;
        }
        let section = request.split_once("BEGIN SECTION ").map_or("", |(_, section)| section);
        let number = section.split_once(long::MARK).map_or("", |(_, number)| number);
        let number = number.split(' ').next().and_then(|number| number.parse::<usize>().ok());
        number.and_then(|number| self.sections.get(number)).unwrap_or(&self.claims)
    }
}

async fn accept(listener: TcpListener) {
    let answers = Rc::new(Answers::new());
    loop {
        // A connection that was closed before it was accepted does not matter.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let answers = Rc::clone(&answers);
        // Errors of a connection are noticed by its client.
        tokio::task::spawn_local(async move { serve(stream, &answers).await });
    }
}

async fn serve(mut stream: TcpStream, answers: &Answers) -> anyhow::Result<()> {
    let mut request = Vec::with_capacity(8 << 10);
    loop {
        request.clear();
        while !is_whole(&request)? {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        let answer = answers.to(std::str::from_utf8(&request)?);
        tokio::time::sleep(MODEL_TIME).await;
        stream.write_all(answer).await?;
    }
}

/// Whether a request is complete; its head says how long its body is.
fn is_whole(request: &[u8]) -> anyhow::Result<bool> {
    if request.len() > MAX_REQUEST {
        bail!("the request does not end");
    }
    let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(false) };
    let head = std::str::from_utf8(&request[..end])?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("the request says nothing of its length")?.trim().parse()?;
    Ok(request.len() >= end + 4 + length)
}
