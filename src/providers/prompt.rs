//! What a verification asks a model: written when it is sent, and anew for each further request.
//!
//! Thousands of calls wait for an answer at once, and until it comes nobody needs what was asked.

use std::sync::Mutex;

use super::catalog::estimate;
use super::{
    Answer, Chat, CompletionRequest, Dialect, FailedCall, Failure, Model, ProviderRequest, ProviderResponse,
    Question, ResponseMeta, sandbox,
};
use crate::json::fields::Fields;
use crate::json::reader::Json;
use crate::lock::Lock;

/// A conversation of our own, as a question to a model.
pub struct Prompt<'a> {
    source: Source<'a>,
    /// An estimate of its length.
    tokens: u64,
}

/// Where the conversation comes from.
enum Source<'a> {
    Kept(Box<Chat>),
    Written {
        /// As it was written to be measured; taken by the first request.
        first: Mutex<Option<Box<Chat>>>,
        write: &'a (dyn Fn() -> Chat + Sync),
    },
}

impl<'a> Prompt<'a> {
    /// What `write` writes, which is the same each time.
    pub fn written(write: &'a (dyn Fn() -> Chat + Sync)) -> Self {
        let first = Box::new(write());
        let tokens = estimate::prompt_tokens(&first);
        Self { source: Source::Written { first: Mutex::new(Some(first)), write }, tokens }
    }

    /// The estimated number of its tokens.
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The conversation, to be sent.
    pub fn take(&self) -> Chat {
        match &self.source {
            Source::Kept(chat) => Chat::clone(chat),
            Source::Written { first, write } => first.locked().take().map_or_else(write, |chat| *chat),
        }
    }

    /// Looks at the conversation.
    pub fn read<T>(&self, read: impl FnOnce(&Chat) -> T) -> T {
        match &self.source {
            Source::Kept(chat) => read(chat),
            Source::Written { first, write } => match &*first.locked() {
                Some(chat) => read(chat),
                None => read(&write()),
            },
        }
    }

    /// The same, which needs nobody to write it again.
    pub fn kept(&self) -> Prompt<'static> {
        Prompt { source: Source::Kept(Box::new(self.take())), tokens: self.tokens }
    }

    /// The request for a chat completion with these fields.
    fn request<'f>(&self, fields: Fields<'f>) -> CompletionRequest<'f> {
        CompletionRequest { fields, choices: 1, prompt_tokens: self.tokens, ..CompletionRequest::default() }
    }
}

impl From<Chat> for Prompt<'static> {
    fn from(chat: Chat) -> Self {
        let tokens = estimate::prompt_tokens(&chat);
        Self { source: Source::Kept(Box::new(chat)), tokens }
    }
}

impl Question for Prompt<'_> {
    type Answer = Answer;

    const IN_GROUPS: bool = true;

    fn encode(&self, dialect: &dyn Dialect, model: &Model) -> Result<ProviderRequest, Failure> {
        let fields = self.take().fields(model);
        let fields = fields.iter().map(|(name, value)| (*name, Json::written(value))).collect();
        dialect.request(&self.request(fields), model)
    }

    fn decode(
        &self,
        dialect: &dyn Dialect,
        _model: &Model,
        response: &ProviderResponse,
    ) -> Result<Answer, FailedCall> {
        let request = self.request(Fields::default());
        Answer::of(&dialect.response(response, &request, &ResponseMeta::default())?)
    }

    async fn simulate(&self, model: &str) -> Result<Answer, FailedCall> {
        sandbox::complete(self.take(), model).await
    }

    fn has_own_limit(&self) -> bool {
        self.read(|chat| chat.max_tokens.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::providers::{Effort, Message, Role};

    #[test]
    fn it_is_written_once_to_be_measured_and_sent_and_anew_for_each_further_request() {
        let written = AtomicUsize::new(0);
        let write = || {
            written.fetch_add(1, Ordering::Relaxed);
            let messages = vec![Message { role: Role::User, content: "x".repeat(40).into() }];
            Chat { messages, temperature: None, max_tokens: None, schema: None, effort: Effort::Lowest }
        };
        let prompt = Prompt::written(&write);
        let times = || written.load(Ordering::Relaxed);
        assert_eq!((prompt.tokens(), prompt.read(|chat| chat.messages.len()), times()), (14, 1, 1));
        let first = prompt.take();
        assert_eq!(times(), 1);
        assert_eq!(prompt.take().messages[0].content, first.messages[0].content);
        assert_eq!(times(), 2);
        let kept = prompt.kept();
        assert_eq!(
            (kept.tokens(), kept.take().messages.len(), kept.take().messages.len(), times()),
            (14, 1, 1, 3)
        );
    }
}
