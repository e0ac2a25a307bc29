//! Detection of peers that vanish: a machine that lost power, a network that drops packets. Nothing ever arrives from
//! them, not even a reset.
//!
//! Only the operating system can tell, by asking: it probes an idle connection and gives up one whose peer acknowledges
//! nothing. Without this, a verification would go on for a caller who lost their network, and what is written to them
//! would stay in the system's buffers, where none of our timers sees it, for a quarter of an hour.

use std::time::Duration;

use tokio::net::TcpStream;

/// Time without traffic before the first probe.
const IDLE: Duration = Duration::from_secs(15);
/// Time between unanswered probes.
const INTERVAL: Duration = Duration::from_secs(5);
/// Unanswered probes after which the connection is given up.
const PROBES: u32 = 6;
/// Time after which a silent peer is given up.
const TOTAL: Duration = IDLE.saturating_add(INTERVAL.saturating_mul(PROBES));

/// Makes the system end a connection whose peer answers no probes within 45 s, or acknowledges nothing of what was sent
/// for that long, or for twice `write_timeout` if that is shorter. On Linux, the latter limit also applies to probes.
/// Where the system cannot do so, a vanished peer only takes longer to notice.
#[cfg(unix)]
pub(crate) fn configure(stream: &TcpStream, write_timeout: Duration) {
    use rustix::net::sockopt;
    let _ = sockopt::set_tcp_keepidle(stream, IDLE);
    let _ = sockopt::set_tcp_keepintvl(stream, INTERVAL);
    let _ = sockopt::set_tcp_keepcnt(stream, PROBES);
    let _ = sockopt::set_socket_keepalive(stream, true);
    #[cfg(target_os = "linux")]
    if let Ok(limit) = u32::try_from(write_timeout.saturating_mul(2).min(TOTAL).as_millis()) {
        let _ = sockopt::set_tcp_user_timeout(stream, limit);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = write_timeout;
}

/// Leaves the system's own timeouts in place.
#[cfg(not(unix))]
pub(crate) fn configure(_: &TcpStream, _: Duration) {
    let _ = TOTAL;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn keepalive_and_user_timeout_are_set_on_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        assert!(!sockopt::socket_keepalive(&stream).unwrap());
        configure(&stream, Duration::from_secs(30));
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), PROBES);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 45_000);
        configure(&stream, Duration::from_secs(2));
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 4_000);
    }
}
