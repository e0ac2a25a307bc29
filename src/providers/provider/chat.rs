//! Chat completions for callers, asked of one provider once.

use tokio::time::{Instant, timeout_at};

use super::{Permit, Provider, Wire};
use crate::providers::opened::Opened;
use crate::providers::{
    Completed, Completion, Completions, Failed, Failure, Flow, Labels, Model, openai, sandbox,
};

/// What came of a request.
enum Heard {
    Whole(Completed),
    Stream(Box<Opened>),
}

impl Provider {
    /// Asks `model` once for a complete answer. Parameters that go by another name are renamed as the provider
    /// wants it, within the same attempt; none is left out.
    ///
    /// # Errors
    /// With what kept the model from answering, by `deadline` at the latest.
    pub async fn chat(
        &self,
        _permit: Permit,
        asked: &Completion<'_>,
        model: &str,
        labels: &Labels,
        deadline: Instant,
    ) -> Result<Completed, Failed> {
        if self.is_sandbox() {
            let end = deadline.min(Instant::now() + self.patience(model).total_timeout);
            let simulated = timeout_at(end, sandbox::chat::whole(asked, model));
            let incoming = simulated.await.unwrap_or(Err(Failure::Timeout))?;
            return openai::OpenAi.chat_answer(&incoming, asked, labels);
        }
        match self.hear(asked, model, labels, deadline).await? {
            Heard::Whole(completed) => Ok(completed),
            // Only asked for when the caller streams.
            Heard::Stream(_) => Err(Failure::Malformed.into()),
        }
    }

    /// Asks `model` once for a streamed answer. The permit is given back when the stream is over, at `deadline` at the
    /// latest, or when it is dropped.
    ///
    /// # Errors
    /// As [`Provider::chat`], until the answer has begun; later ones are the stream's.
    pub async fn open(
        &self,
        permit: Permit,
        asked: &Completion<'_>,
        model: &str,
        labels: &Labels,
        deadline: Instant,
    ) -> Result<Flow, Failed> {
        let Wire::Http { dialect, .. } = &self.wire else {
            let script = sandbox::chat::stream(asked, model, self.patience(model).idle_timeout)?;
            let decoder = openai::OpenAi.decoder();
            return Ok(Flow::simulated(script, decoder, asked, labels.clone(), permit));
        };
        let decoder = dialect.completions().decoder();
        match self.hear(asked, model, labels, deadline).await? {
            Heard::Stream(opened) => {
                Ok(Flow::of(*opened, decoder, asked, labels.clone(), permit, self.settings.api_key.clone()))
            }
            // A whole answer where a stream was asked for: nothing that the caller could be given as one.
            Heard::Whole(completed) => {
                Err(Failed { failure: Failure::Malformed, usage: Some(completed.usage) })
            }
        }
    }

    async fn hear(
        &self,
        asked: &Completion<'_>,
        model: &str,
        labels: &Labels,
        deadline: Instant,
    ) -> Result<Heard, Failed> {
        let Wire::Http { dialect, transport } = &self.wire else {
            return Err(Failure::UnknownModel.into());
        };
        let speaker = dialect.completions();
        let patience = self.patience(model);
        let mut target = self.model(model);
        let mut outgoing = speaker.chat_request(asked, &target)?;
        let mut is_reduced = false;
        loop {
            let opened = transport.open(&outgoing, &patience, deadline).await?;
            if asked.stream && opened.is_stream() {
                if is_reduced {
                    self.learn(model, target);
                }
                return Ok(Heard::Stream(Box::new(opened)));
            }
            let incoming = opened.whole().await?.with(self.clock.clone());
            let failed = match speaker.chat_answer(&incoming, asked, labels) {
                Ok(completed) => {
                    if is_reduced {
                        self.learn(model, target);
                    }
                    return Ok(Heard::Whole(completed));
                }
                Err(failed) => failed,
            };
            let request = |model: &Model| speaker.chat_request(asked, model);
            target = self.without_refused(&target, failed, |model| Ok(request(model)?.body))?;
            outgoing = request(&target)?;
            is_reduced = true;
        }
    }
}

#[cfg(test)]
mod tests;
