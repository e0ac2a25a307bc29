//! What a store's silence is taken for, against a store that admits every request.

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::*;

/// Noon of some day, in microseconds.
const NOON: i64 = (20_000 * 86_400 + 43_200) * 1_000_000;

async fn store() -> LimitsStore {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("redis://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (from, mut to) = connection.into_split();
                let mut from = BufReader::new(from);
                while let Some(command) = command(&mut from).await {
                    let admitted = format!("*5\r\n:1\r\n:{NOON}\r\n:1\r\n:{NOON}\r\n:1\r\n");
                    let answer = if command == "EVALSHA" { &admitted } else { "+OK\r\n" };
                    to.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    LimitsStore::parse(&address).unwrap()
}

/// Reads the next command; returns its name.
async fn command(from: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut words = Vec::new();
    for _ in 0..number(from).await? {
        let mut word = vec![0; number(from).await? + "\r\n".len()];
        from.read_exact(&mut word).await.ok()?;
        words.push(word);
    }
    Some(String::from_utf8_lossy(words.first()?).trim().to_owned())
}

/// The number in a line, after the byte that marks its type.
async fn number(from: &mut (impl AsyncBufRead + Unpin)) -> Option<usize> {
    let mut line = String::new();
    from.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

#[tokio::test]
async fn a_store_that_floods_its_replies_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = StoreAddress::parse(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    let flooding = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let _ = connection.write_all(b"$2000000000\r\n").await;
        let (chunk, mut written) = (vec![b'x'; 64 * 1024], 0);
        while connection.write_all(&chunk).await.is_ok() {
            written += chunk.len();
        }
        written
    });
    let refused = connect(&address).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("too long"), "{refused}");
    // Beyond what is read at most, there are the buffers of both sockets.
    assert!(flooding.await.unwrap() < 32 * 1024 * 1024);
}

#[tokio::test]
async fn a_query_without_time_left_is_no_fault_of_the_store() {
    let LimitsStore::Shared(address) = store().await else { panic!("it is one") };
    let shared = SharedStore::new(address);
    let subject = Subject::Key("key_1".into());
    let quota = Quota { per_minute: 60, per_day: 1000 };
    let query = Query { subject: &subject, quota, is_counted: true, known: (0, 0), is_day_verified: true };
    // On a busy machine, connecting may take longer than a query may.
    while shared.connection(shared.channels.here(), deadline()).await.is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(shared.query(&query).await.is_some());
    let too_late = shared.try_query(shared.channels.here(), &query, Instant::now() - QUERY_TIMEOUT).await;
    assert!(too_late.is_none(), "it was asked");
    assert!(shared.is_up(), "it is not blamed");
    assert!(shared.query(&query).await.is_some());
}
