//! Carries out a decided turn on the connection.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::answer;
use super::asked::Asked;
use super::turn::{Decided, Turn};

const MALFORMED: &str = "data: {\"id\": \"chatcmpl-soak\", \"choices\": [{\"index\": 0, \"del\n\n";
const GARBAGE: &str = "<html><body><h1>Welcome</h1></body></html>";
const GARBAGE_STREAM: &str = "data: <html><body><h1>Welcome</h1></body></html>\n\n";

/// Carries out a turn; returns whether the connection can be used for another call.
///
/// # Errors
/// If the server has disconnected.
pub(super) async fn play(stream: &mut TcpStream, asked: &Asked, decided: &Decided) -> io::Result<bool> {
    sleep(decided.wait).await;
    match decided.turn {
        Turn::RateLimited(wait) => {
            let header = wait.map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
            refuse(stream, "429 Too Many Requests", &header, "Too many requests.").await
        }
        Turn::Broken => refuse(stream, "500 Internal Server Error", "", "It broke.").await,
        Turn::Reset => stream.set_zero_linger().map(|()| false),
        Turn::Closed => Ok(false),
        Turn::Silent => until_closed(stream).await,
        _ if asked.is_stream => play_stream(stream, asked, decided).await,
        Turn::Garbage => whole(stream, "200 OK", "", GARBAGE).await,
        Turn::Cut => half(stream, asked, decided).await,
        Turn::Stalled => {
            half(stream, asked, decided).await?;
            until_closed(stream).await
        }
        _ => whole(stream, "200 OK", "", &answer::whole(asked, decided)).await,
    }
}

async fn play_stream(stream: &mut TcpStream, asked: &Asked, decided: &Decided) -> io::Result<bool> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    if decided.turn == Turn::Garbage {
        chunk(stream, GARBAGE_STREAM).await?;
        return end(stream).await;
    }
    let events = answer::events(asked, decided);
    chunk(stream, &events.head).await?;
    for (number, part) in events.chunks.iter().enumerate() {
        if number > 0 {
            sleep(decided.pace).await;
        }
        if number == decided.middle {
            match decided.turn {
                Turn::Cut => return Ok(false),
                Turn::Stalled => return until_closed(stream).await,
                Turn::Malformed => chunk(stream, MALFORMED).await?,
                _ => {}
            }
        }
        chunk(stream, part).await?;
    }
    chunk(stream, &events.tail).await?;
    if decided.turn != Turn::NoEnd {
        chunk(stream, events.mark).await?;
    }
    end(stream).await
}

async fn refuse(stream: &mut TcpStream, status: &str, header: &str, why: &str) -> io::Result<bool> {
    let body = serde_json::json!({"error": {"message": why, "type": "soak", "code": "soak"}});
    whole(stream, status, header, &body.to_string()).await
}

async fn whole(stream: &mut TcpStream, status: &str, header: &str, body: &str) -> io::Result<bool> {
    stream.write_all((head(status, header, body.len()) + body).as_bytes()).await?;
    Ok(true)
}

/// Sends the head and the first half of a response.
async fn half(stream: &mut TcpStream, asked: &Asked, decided: &Decided) -> io::Result<bool> {
    let body = answer::whole(asked, decided);
    let text = head("200 OK", "", body.len()) + &body[..body.len() / 2];
    stream.write_all(text.as_bytes()).await?;
    Ok(false)
}

fn head(status: &str, header: &str, length: usize) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{header}content-length: {length}\r\n\r\n")
}

/// Sends a chunk of the body; an empty one would be its end.
async fn chunk(stream: &mut TcpStream, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

async fn end(stream: &mut TcpStream) -> io::Result<bool> {
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

/// Waits until the server disconnects.
async fn until_closed(stream: &mut TcpStream) -> io::Result<bool> {
    let mut nothing = [0; 256];
    while stream.read(&mut nothing).await? > 0 {}
    Ok(false)
}
