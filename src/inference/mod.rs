//! The gateway: from a model's identifier to an answer, whatever it takes.
//!
//! [`Gateway::ask`] finds the provider, keeps to its concurrency limit, retries what may pass, and books every
//! attempt on the caller's meter. Callers name models `<provider>/<model_name>`; the model name may contain `/`.

mod gateway;
mod retry;

pub use gateway::{Gateway, Target};

pub use crate::providers::{Answer, Chat, Failure, Finish, Message, Role, Schema, SetupError};
