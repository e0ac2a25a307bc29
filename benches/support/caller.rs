//! A caller: one raw keep-alive connection with one request at a time.
//!
//! It does as little as possible, because it shares the machine with what is measured: the request is built once,
//! `wire` parses the response, and the runtime does the rest. Every response is checked; one that is not as expected is
//! an error, so that what fails quickly does not look fast.

use std::net::SocketAddr;

use anyhow::{bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wire::Answer;

const READ_BYTES: usize = 32 << 10;
/// How much of a wrong response is shown.
const SHOWN: usize = 400;

/// What a correct response is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Its status.
    pub(crate) status: u16,
    /// A text that its body contains.
    pub(crate) text: &'static str,
    /// The number of events in its body, including the final `[DONE]`; zero if the response is not a stream.
    pub(crate) events: usize,
}

/// One connection.
pub(crate) struct Caller {
    stream: TcpStream,
    answer: Answer,
    buffer: Box<[u8]>,
}

impl Caller {
    /// Connects.
    pub(crate) async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: Answer::default(), buffer: vec![0; READ_BYTES].into() })
    }

    /// Sends a complete HTTP/1.1 request and waits for the whole response; calls `seen` with it as it grows.
    ///
    /// # Errors
    /// If the response is not as expected, or incomplete.
    pub(crate) async fn ask(
        &mut self,
        request: &[u8],
        expected: &Expected,
        mut seen: impl FnMut(&Answer),
    ) -> anyhow::Result<()> {
        self.answer.clear();
        self.stream.write_all(request).await?;
        loop {
            let count = self.stream.read(&mut self.buffer).await?;
            ensure!(count > 0, "the connection was closed in the midst of an answer: {}", self.shown());
            let has_ended = self.answer.read(&self.buffer[..count])?;
            seen(&self.answer);
            if has_ended {
                break;
            }
        }
        if !expected.is_met(&self.answer) {
            bail!("a wrong answer: {}", self.shown());
        }
        Ok(())
    }

    fn shown(&self) -> String {
        let body = &self.answer.body;
        let (start, tail) = body.split_at(body.len().min(SHOWN));
        let tail = &tail[tail.len().saturating_sub(SHOWN)..];
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        format!("status {}, {} bytes: {} … {}", self.answer.status, body.len(), text(start), text(tail))
    }
}

impl Expected {
    fn is_met(&self, answer: &Answer) -> bool {
        let is_stream = self.events > 0;
        answer.status == self.status
            && std::str::from_utf8(&answer.body).is_ok_and(|body| body.contains(self.text))
            && (!is_stream || answer.body.ends_with(b"\n\ndata: [DONE]\n\n"))
            && (!is_stream || events(&answer.body) == self.events)
    }
}

/// Events end with an empty line.
fn events(body: &[u8]) -> usize {
    body.windows(2).filter(|pair| pair == b"\n\n").count()
}
