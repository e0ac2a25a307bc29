//! Reads the bodies of requests: within a size, a time, and a bound on the memory of all bodies together.
//!
//! Bodies are read by us, counted while they arrive: warp's own filters either have no limit or reject bodies without a
//! length. A large body holds its share of the memory until the request has no more use for it: otherwise a few keys
//! without limits could end the process, as an allocation that fails aborts it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use futures_util::{FutureExt, Stream, StreamExt};
use http::{HeaderMap, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::server::reply::{ApiError, ErrorCode};

/// How many bodies of the usual largest size may be in memory at once.
const LARGEST_BODIES: usize = 128;
/// The shares that a body of that size takes.
const SHARES: usize = 1024;
/// Bodies up to this size take no share: connections are bounded as well.
const SMALL_BODY: usize = 32 * 1024;

/// The memory that is left for large bodies, in shares of the usual largest body, whatever size that has now.
pub(crate) struct BodyMemory(Arc<Semaphore>);

/// How large a body may be, and how long it may take to arrive. Slow senders are disconnected.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimits<'a> {
    /// Maximum size.
    pub(crate) bytes: usize,
    /// Maximum size of bodies elsewhere, by which the memory is shared out.
    pub(crate) usual_bytes: usize,
    /// Timeout between two chunks.
    pub(crate) idle: Duration,
    /// Timeout of the whole body.
    pub(crate) total: Duration,
    /// What large bodies take their share of.
    pub(crate) memory: &'a BodyMemory,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGEST_BODIES * SHARES)))
    }
}

impl BodyMemory {
    /// The shares of a body of so many bytes, where `usual` is the maximum elsewhere, beyond those that it `held` so far.
    ///
    /// # Errors
    /// 503 if others have taken them.
    fn reserve(&self, bytes: usize, usual: usize, held: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let shares = bytes.saturating_mul(SHARES).div_ceil(usual.max(1)).clamp(1, LARGEST_BODIES * SHARES);
        let more = u32::try_from(shares.saturating_sub(held)).unwrap_or(u32::MAX);
        self.0.clone().try_acquire_many_owned(more).map_err(|_| ApiError::from(ErrorCode::ServerOverloaded))
    }
}

/// Reads a JSON body: checks its declared size and type, then counts the bytes while they arrive.
pub(crate) async fn json_body<B: Buf, E>(
    headers: &HeaderMap,
    body: impl Stream<Item = Result<B, E>>,
    limits: BodyLimits<'_>,
) -> Result<Bytes, ApiError> {
    let declared = declared_size(headers, limits)?;
    check_type(headers)?;
    collect(body, declared, limits).await
}

/// Reads a JSON body that may be omitted, in which case it needs no content type. Only reading tells whether there is
/// one, as HTTP/2 does not announce it.
pub(crate) async fn optional_json_body<B: Buf>(
    headers: &HeaderMap,
    body: impl Stream<Item = Result<B, warp::Error>>,
    limits: BodyLimits<'_>,
) -> Result<Bytes, ApiError> {
    let declared = declared_size(headers, limits)?;
    let body = collect(body, declared, limits).await?;
    if !body.is_empty() {
        check_type(headers)?;
    }
    Ok(body)
}

/// The size that the headers declare, if any, which is within the limit.
fn declared_size(headers: &HeaderMap, limits: BodyLimits<'_>) -> Result<Option<usize>, ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let Some(length) = length.and_then(|value| value.parse::<u64>().ok()) else { return Ok(None) };
    match usize::try_from(length) {
        Ok(length) if length <= limits.bytes => Ok(Some(length)),
        _ => Err(ApiError::body_too_large(limits.bytes)),
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = || kind.split(';').next().unwrap_or_default().trim();
    if kind != "application/json" && !essence().eq_ignore_ascii_case("application/json") {
        return Err(ErrorCode::UnsupportedMediaType.into());
    }
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "compressed request bodies are not accepted",
        ));
    }
    Ok(())
}

async fn collect<B: Buf, E>(
    body: impl Stream<Item = Result<B, E>>,
    declared: Option<usize>,
    limits: BodyLimits<'_>,
) -> Result<Bytes, ApiError> {
    let mut body = std::pin::pin!(body);
    let mut collected = Collected { bytes: Vec::new(), share: None, reserved: 0 };
    // What arrived with the head, nearly always all of it, needs no timer.
    while let Some(chunk) = body.next().now_or_never() {
        let Some(chunk) = chunk else { return Ok(collected.into()) };
        collected.append(chunk, declared, limits)?;
    }
    let rest = async {
        while let Some(chunk) = timeout(limits.idle, body.next()).await? {
            if let Err(error) = collected.append(chunk, declared, limits) {
                return Ok(Err(error));
            }
        }
        Ok::<_, Elapsed>(Ok(()))
    };
    // Boxed, so that bodies that are there already reserve no space for it.
    let rest = Box::pin(timeout(limits.total, rest)).await.flatten();
    rest.unwrap_or_else(|_| Err(ApiError::from(ErrorCode::RequestTimeout)))?;
    Ok(collected.into())
}

/// What has arrived of a body.
struct Collected {
    bytes: Vec<u8>,
    /// The share of a large body.
    share: Option<OwnedSemaphorePermit>,
    /// The bytes that the share is for.
    reserved: usize,
}

impl Collected {
    fn append<B: Buf, E>(
        &mut self,
        chunk: Result<B, E>,
        declared: Option<usize>,
        limits: BodyLimits<'_>,
    ) -> Result<(), ApiError> {
        // If the body breaks off, nobody is left to read the response; it only ends the request.
        let mut chunk =
            chunk.map_err(|_| ApiError::new(ErrorCode::InvalidJson, "the request body was cut short"))?;
        let length = self.bytes.len() + chunk.remaining();
        if length > limits.bytes {
            return Err(ApiError::body_too_large(limits.bytes));
        }
        if length > SMALL_BODY.max(self.reserved) {
            self.reserve(length, declared, limits)?;
        }
        if let Some(declared) = declared.filter(|_| self.bytes.is_empty()) {
            self.bytes.reserve_exact(declared.max(length));
        }
        self.bytes.put(&mut chunk);
        Ok(())
    }

    /// Takes the share of a body that has reached this length: once and for all if its size was declared; otherwise
    /// twice as much each time, as few of those that may be very large are. It never waits for others, which may be
    /// half read as well.
    fn reserve(
        &mut self,
        length: usize,
        declared: Option<usize>,
        limits: BodyLimits<'_>,
    ) -> Result<(), ApiError> {
        let grown = || length.saturating_mul(2).max(limits.usual_bytes).min(limits.bytes);
        self.reserved = declared.unwrap_or_else(grown).max(length);
        let held = self.share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = limits.memory.reserve(self.reserved, limits.usual_bytes, held)?;
        match &mut self.share {
            Some(share) => share.merge(more),
            None => self.share = Some(more),
        }
        Ok(())
    }
}

impl From<Collected> for Bytes {
    fn from(collected: Collected) -> Self {
        match collected.share {
            None => collected.bytes.into(),
            Some(_) => Self::from_owner(collected),
        }
    }
}

impl AsRef<[u8]> for Collected {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    const LARGEST: usize = 1 << 20;

    async fn read(memory: &BodyMemory, length: usize, is_declared: bool) -> Result<Bytes, ApiError> {
        read_within(LARGEST, memory, length, is_declared).await
    }

    async fn read_within(
        bytes: usize,
        memory: &BodyMemory,
        length: usize,
        is_declared: bool,
    ) -> Result<Bytes, ApiError> {
        let (idle, total) = (Duration::from_secs(1), Duration::from_secs(1));
        let limits = BodyLimits { bytes, usual_bytes: LARGEST, idle, total, memory };
        let chunks = vec![b' '; length].chunks(16 * 1024).map(Bytes::copy_from_slice).collect::<Vec<_>>();
        let body = stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
        collect(body, is_declared.then_some(length), limits).await
    }

    #[tokio::test]
    async fn large_bodies_share_a_bounded_memory_and_give_it_back() {
        let memory = BodyMemory::default();
        let mut held = Vec::new();
        for number in 0..LARGEST_BODIES {
            held.push(read(&memory, LARGEST - number % 2, number % 3 == 0).await.unwrap());
        }
        let refused = read(&memory, LARGEST, true).await.unwrap_err();
        assert_eq!(refused.code(), "server_overloaded");
        assert_eq!(read(&memory, SMALL_BODY, true).await.unwrap().len(), SMALL_BODY, "small ones pass");
        // A clone keeps the share.
        let kept = held.pop().map(|body| body.slice(1..2));
        assert!(read(&memory, LARGEST, true).await.is_err());
        drop(kept);
        assert_eq!(read(&memory, LARGEST, false).await.unwrap().len(), LARGEST);
        held.clear();
        let shares = LARGEST_BODIES * SHARES;
        assert_eq!(memory.0.available_permits(), shares);
    }

    #[tokio::test]
    async fn a_body_takes_its_share_by_its_size() {
        let memory = BodyMemory::default();
        let body = read(&memory, LARGEST / 4, true).await.unwrap();
        assert_eq!(memory.0.available_permits(), LARGEST_BODIES * SHARES - SHARES / 4);
        drop(body);
        let unknown = read(&memory, LARGEST / 4, false).await.unwrap();
        assert_eq!(memory.0.available_permits(), (LARGEST_BODIES - 1) * SHARES, "it may become the largest");
        drop(unknown);
    }

    #[tokio::test]
    async fn a_body_that_may_be_larger_than_others_takes_more_of_the_same_memory() {
        let memory = BodyMemory::default();
        let body = read_within(4 * LARGEST, &memory, 3 * LARGEST, true).await.unwrap();
        assert_eq!(memory.0.available_permits(), (LARGEST_BODIES - 3) * SHARES);
        drop(body);
        // Doubled by the piece of 16 KiB that goes beyond the usual.
        let doubled = 2 * (SHARES + SHARES * 16 * 1024 / LARGEST);
        let lengths =
            [(SMALL_BODY + 1, SHARES), (LARGEST, SHARES), (2 * LARGEST, doubled), (4 * LARGEST, 4 * SHARES)];
        for (length, taken) in lengths {
            let unknown = read_within(4 * LARGEST, &memory, length, false).await.unwrap();
            assert_eq!(memory.0.available_permits(), LARGEST_BODIES * SHARES - taken, "{length}");
            drop(unknown);
        }
        assert!(read_within(4 * LARGEST, &memory, 4 * LARGEST + 1, false).await.is_err());
        assert_eq!(memory.0.available_permits(), LARGEST_BODIES * SHARES);
    }
}
