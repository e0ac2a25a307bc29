//! The listening socket.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that the system queues until they are accepted, up to its own limit (on Linux `net.core.somaxconn`).
/// Beyond that it drops the first packet, and callers retry a second later, then two, then four: the default of
/// libraries, 128, is full when many callers connect at once while this process is off the CPU for some milliseconds.
const BACKLOG: u32 = 4096;

/// Listens on `address`, even if another server there has only just ended. Must be called within a runtime.
///
/// # Errors
/// If the address is taken, does not belong to this machine, or requires more rights.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On other systems it would let other processes take over the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
