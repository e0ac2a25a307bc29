//! Chat completions for callers, from answers of this format.

use super::whole::Whole;
use super::{Google, stream, translate};
use crate::providers::completion::{Completed, Completion, Completions, Decoder, Labels};
use crate::providers::{Failed, Failure, Incoming, Model, Outgoing};

impl Completions for Google {
    fn chat_request(&self, asked: &Completion<'_>, model: &Model) -> Result<Outgoing, Failure> {
        translate::request(asked, model)
    }

    fn chat_answer(
        &self,
        incoming: &Incoming,
        asked: &Completion<'_>,
        labels: &Labels,
    ) -> Result<Completed, Failed> {
        Whole::of(incoming)?.completed(asked, labels)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(stream::Reader::default())
    }
}
