//! Parses one HTTP/1.1 response, with no more work than it takes to be sure that it is complete.
//!
//! Does no I/O: bytes are passed in as they arrive, in chunks of any size. What must hold: [`Answer::read`] is true
//! only when the framing says that the response has ended, and bytes after its end are an error.

use anyhow::{Context, bail};

/// Larger than any requested response.
const MAX_BODY: usize = 1 << 20;
/// Longer than any line of the head.
const MAX_LINE: usize = 8 << 10;

/// A response that is being read. Reused for the next one, so that its memory is as well.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The status, once its line has arrived.
    pub(crate) status: u16,
    /// What has arrived of the body, without its framing.
    pub(crate) body: Vec<u8>,
    line: Vec<u8>,
    length: Option<usize>,
    is_chunked: bool,
    next: Part,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default)]
enum Part {
    #[default]
    Status,
    Header,
    /// The body, or a chunk of it, of which this many bytes are left.
    Body(usize),
    ChunkSize,
    ChunkEnd,
    Trailer,
    Nothing,
}

impl Answer {
    /// Clears the previous response.
    pub(crate) fn clear(&mut self) {
        self.status = 0;
        self.body.clear();
        self.line.clear();
        self.length = None;
        self.is_chunked = false;
        self.next = Part::Status;
    }

    /// Parses the next bytes; returns whether the response has ended.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> anyhow::Result<bool> {
        while !bytes.is_empty() {
            bytes = match self.next {
                Part::Nothing => bail!("bytes follow the answer"),
                Part::Body(left) => self.take_body(left, bytes)?,
                _ => self.take_line(bytes)?,
            };
        }
        Ok(matches!(self.next, Part::Nothing))
    }

    fn take_body<'a>(&mut self, left: usize, bytes: &'a [u8]) -> anyhow::Result<&'a [u8]> {
        let (body, rest) = bytes.split_at(left.min(bytes.len()));
        self.body.extend_from_slice(body);
        if self.body.len() > MAX_BODY {
            bail!("the answer does not end");
        }
        self.next = match left - body.len() {
            0 if self.is_chunked => Part::ChunkEnd,
            0 => Part::Nothing,
            left => Part::Body(left),
        };
        Ok(rest)
    }

    fn take_line<'a>(&mut self, bytes: &'a [u8]) -> anyhow::Result<&'a [u8]> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        self.line.extend_from_slice(piece);
        if self.line.len() > MAX_LINE {
            bail!("a line does not end");
        }
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            let text = std::str::from_utf8(&line).context("a line is not text")?;
            self.next = self.follow(text.trim_end())?;
            self.line = line;
            self.line.clear();
        }
        Ok(rest)
    }

    /// Parses a line; returns what follows it.
    fn follow(&mut self, line: &str) -> anyhow::Result<Part> {
        Ok(match self.next {
            Part::Status => {
                let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
                self.status = status.context("no HTTP/1.1")?.parse()?;
                Part::Header
            }
            Part::Header if line.is_empty() => match (self.is_chunked, self.length) {
                (true, _) => Part::ChunkSize,
                (false, Some(0)) => Part::Nothing,
                (false, Some(length)) => Part::Body(length),
                (false, None) => bail!("the answer says nothing of its length"),
            },
            Part::Header => {
                let (name, value) = line.split_once(':').context("a header without a colon")?;
                if name.eq_ignore_ascii_case("content-length") {
                    self.length = Some(value.trim().parse()?);
                } else if name.eq_ignore_ascii_case("transfer-encoding") {
                    self.is_chunked = value.trim().eq_ignore_ascii_case("chunked");
                }
                Part::Header
            }
            Part::ChunkSize => match usize::from_str_radix(line, 16).context("the size of a chunk")? {
                0 => Part::Trailer,
                size => Part::Body(size),
            },
            Part::ChunkEnd if line.is_empty() => Part::ChunkSize,
            Part::ChunkEnd => bail!("a chunk is longer than it says"),
            Part::Trailer if line.is_empty() => Part::Nothing,
            Part::Trailer => Part::Trailer,
            Part::Body(_) | Part::Nothing => bail!("a line where there is none"),
        })
    }
}
