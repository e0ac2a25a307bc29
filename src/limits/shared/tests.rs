//! What is concluded from a store's silence, against one that admits whatever it is asked about.

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

/// The name of the next command, which is read to its end.
async fn command(from: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut words = Vec::new();
    for _ in 0..number(from).await? {
        let mut word = vec![0; number(from).await? + "\r\n".len()];
        from.read_exact(&mut word).await.ok()?;
        words.push(word);
    }
    Some(String::from_utf8_lossy(words.first()?).trim().to_owned())
}

/// The number in a line, behind the sign of its kind.
async fn number(from: &mut (impl AsyncBufRead + Unpin)) -> Option<usize> {
    let mut line = String::new();
    from.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

#[tokio::test]
async fn a_question_for_which_no_time_was_left_says_nothing_of_the_store() {
    let LimitsStore::Shared(address) = store().await else { panic!("it is one") };
    let shared = Shared::new(address);
    let subject = Subject::Key("key_1".into());
    let quota = Quota { per_minute: 60, per_day: 1000 };
    let question = Question { subject: &subject, quota, takes: true, known: (0, 0), is_sure: true };
    // On a busy machine, to connect may take longer than a question may.
    while shared.connection(shared.channels.here(), deadline()).await.is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(shared.ask(&question).await.is_some());
    let too_late = shared.asked(shared.channels.here(), &question, Instant::now() - PATIENCE).await;
    assert!(too_late.is_none(), "it was asked");
    assert!(shared.is_up(), "it is not blamed");
    assert!(shared.ask(&question).await.is_some());
}
