//! Connections to the limits store that read no more than replies can be.
//!
//! The library reads a reply of any size into memory, and a store that is hostile, or no store at all, can send
//! gigabytes before a query times out. So the connection is made here, and bytes are counted below the library: replies
//! are shorter than the queries they answer, apart from a few at the beginning and an operator's questions.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use redis::ConnectionAddr;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How many more bytes may be read than were written.
const MAX_CREDIT: usize = 256 * 1024;

/// What a connection is read from and written to.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// A connection whose reading fails once the peer has sent too much.
pub(super) struct Bounded<T> {
    transport: T,
    /// How many bytes may still be read.
    credit: usize,
}

/// Connects to a store.
///
/// # Errors
/// If it cannot be reached, or is not who it should be.
pub(super) async fn connect(address: &ConnectionAddr) -> io::Result<Bounded<Box<dyn Transport>>> {
    let transport: Box<dyn Transport> = match address {
        ConnectionAddr::Tcp(host, port) => Box::new(tcp(host, *port).await?),
        ConnectionAddr::TcpTls { host, port, .. } => {
            let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
            let stream = tcp(host, *port).await?;
            Box::new(TlsConnector::from(tls().await?).connect(name, stream).await?)
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Box::new(tokio::net::UnixStream::connect(path).await?),
        // No address of these kinds is accepted.
        _ => return Err(io::Error::from(io::ErrorKind::Unsupported)),
    };
    Ok(Bounded::new(transport))
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The settings of TLS, with the system's certificates; those that cannot be read are left out.
async fn tls() -> io::Result<Arc<ClientConfig>> {
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

impl<T> Bounded<T> {
    const fn new(transport: T) -> Self {
        Self { transport, credit: MAX_CREDIT }
    }
}

impl<T: Transport> AsyncRead for Bounded<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.credit == 0 {
            return Poll::Ready(Err(io::Error::other("its reply is too long")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.transport).poll_read(context, buffer))?;
        self.credit = self.credit.saturating_sub(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<T: Transport> AsyncWrite for Bounded<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.transport).poll_write(context, bytes))?;
        self.credit = self.credit.saturating_add(written).min(MAX_CREDIT);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn replies_as_long_as_their_queries_never_end_a_connection_and_others_do() {
        let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
        let mut ours = Bounded::new(ours);
        let (query, mut reply) = ([0; 1024], [0; 1024]);
        for _ in 0..2 * MAX_CREDIT / query.len() {
            ours.write_all(&query).await.unwrap();
            theirs.write_all(&query).await.unwrap();
            theirs.read_exact(&mut reply).await.unwrap();
            ours.read_exact(&mut reply).await.unwrap();
        }
        let flood = tokio::spawn(async move { while theirs.write_all(&query).await.is_ok() {} });
        let mut read = 0;
        let ended = loop {
            match ours.read(&mut reply).await {
                Ok(count) => read += count,
                Err(ended) => break ended,
            }
        };
        assert!(ended.to_string().contains("too long"), "{ended}");
        assert!(read <= MAX_CREDIT, "{read}");
        drop(ours);
        flood.await.unwrap();
    }
}
