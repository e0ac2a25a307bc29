//! `POST /openai/v1/responses`: a model's answer as the Responses API gives it, whole or as typed events. Nothing is
//! stored: each request brings its whole conversation.

mod content;
mod echo;
mod events;
mod frame;
mod items;
mod output;
mod raw;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod tools;

pub(in crate::server) trait Transcoder: Send + Sync {
    fn chunks(&mut self, sse: &[u8], out: &mut Vec<u8>);
    fn fail(&mut self, error: crate::server::reply::ApiError, out: &mut Vec<u8>);
}
