//! What no HTTP client sends: truncated requests and malformed HTTP.

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::requests::{self, CHAT};
use super::{Place, TIMEOUT};
use crate::dice::Dice;
use crate::token;

/// Sends a part of a request and disconnects: within the head, before the body, or within the body.
pub(super) async fn truncate(place: &Place, dice: &mut Dice) {
    let token = place.book.open();
    let body = requests::hello(token, false, dice).to_string();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: soak\r\nx-request-id: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        token::id(token),
        place.keys.inference,
        body.len()
    );
    let part = [head.len() / 2, head.len(), head.len() + body.len() / 2];
    let end = dice.pick(&part.map(|end| (1, end)));
    let request = head + &body;
    let send = async {
        let mut stream = connect(place).await?;
        stream.write_all(&request.as_bytes()[..end]).await?;
        anyhow::Ok(())
    };
    if let Err(cause) = send.await {
        place.book.report_wrong(token, "part of a request cannot be sent", || format!("{cause:#}"));
    }
}

/// Sends malformed HTTP, which must be refused. It is recorded by the id that the response gives it.
pub(super) async fn garbage(place: &Place, dice: &mut Dice) {
    let texts = ["\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST x y z\r\n\r\n"];
    let text = dice.pick(&texts.map(|text| (1, text)));
    let refusal = async {
        let mut stream = connect(place).await?;
        stream.write_all(text.as_bytes()).await?;
        let mut answer = Vec::new();
        timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.context("no answer")??;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let id = answer.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        let status = status.filter(|status| (400..500).contains(status));
        let (Some(status), Some(id)) = (status, id) else { bail!("the answer is {answer}") };
        place.book.refused(id, status);
        Ok(())
    };
    if let Err(cause) = refusal.await {
        place.book.report_wrong(0, "malformed HTTP was not refused", || format!("{text:?}: {cause:#}"));
    }
}

async fn connect(place: &Place) -> anyhow::Result<TcpStream> {
    let address = place.base.strip_prefix("http://").context("the base is no address")?;
    Ok(TcpStream::connect(address).await?)
}
