//! Peers that vanish: a machine without power, a network that drops what it carried. No word of theirs ever comes.
//!
//! The system alone can tell, by asking: it probes a connection on which nothing happens, and gives up one whose peer
//! acknowledges nothing. Without this a verification would go on for whoever lost their network, and what is written
//! to them would lie in the system's buffers, where no timer of ours sees it, for a quarter of an hour.

use std::time::Duration;

use tokio::net::TcpStream;

/// Without traffic, the first probe is sent after this.
const QUIET: Duration = Duration::from_secs(15);
/// Between probes that are not answered.
const BETWEEN: Duration = Duration::from_secs(5);
/// So many are not.
const PROBES: u32 = 6;
/// All that together.
const GONE: Duration = QUIET.saturating_add(BETWEEN.saturating_mul(PROBES));

/// Has the system end a connection whose peer is silent to it: one that answers no probes within 45 s, and one that
/// acknowledges nothing of what was sent for that long, or for twice `patience` if that is shorter. Where Linux has the
/// one limit, it goes by it for the other as well. A system that cannot do so costs patience alone.
#[cfg(unix)]
pub(super) fn give_up_on(stream: &TcpStream, patience: Duration) {
    use rustix::net::sockopt;
    let _ = sockopt::set_tcp_keepidle(stream, QUIET);
    let _ = sockopt::set_tcp_keepintvl(stream, BETWEEN);
    let _ = sockopt::set_tcp_keepcnt(stream, PROBES);
    let _ = sockopt::set_socket_keepalive(stream, true);
    #[cfg(target_os = "linux")]
    if let Ok(limit) = u32::try_from(patience.saturating_mul(2).min(GONE).as_millis()) {
        let _ = sockopt::set_tcp_user_timeout(stream, limit);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = patience;
}

/// Left to the system's own patience.
#[cfg(not(unix))]
pub(super) fn give_up_on(_: &TcpStream, _: Duration) {
    let _ = GONE;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_system_is_told_when_to_give_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        assert!(!sockopt::socket_keepalive(&stream).unwrap());
        give_up_on(&stream, Duration::from_secs(30));
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), QUIET);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), BETWEEN);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), PROBES);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 45_000);
        give_up_on(&stream, Duration::from_secs(2));
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 4_000);
    }
}
