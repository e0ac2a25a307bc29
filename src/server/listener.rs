//! The socket that connections come in by.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that the system keeps until they are accepted; its own bound (on Linux `net.core.somaxconn`) holds beside
/// this one. Of more, it drops the first packet, and their callers try again a second later, then two, then four: what
/// libraries ask for by themselves, 128, is full when callers come in a storm and this process is not on a core for
/// some milliseconds.
const BACKLOG: u32 = 4096;

/// Listens at `address`, also where a server has only just ended. To be called within a runtime.
///
/// # Errors
/// If the address is taken, or not this machine's, or may not be listened at.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Elsewhere it would let others take over the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
