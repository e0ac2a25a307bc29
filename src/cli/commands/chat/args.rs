//! The arguments of `mk chat`.

use clap::Args;

use crate::cli::args::number::within;
use crate::cli::target::backend::BackendArgs;

/// Examples of `mk chat`, first in its help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  mk chat --sandbox \"What is 6 times 7?\"        no server, key or network needed
  mk chat                                       a conversation, on a terminal
  mk chat -m openai/gpt-5.4-mini \"Why is the sky blue?\"
  git diff | mk chat - --system \"Write a commit message for this diff.\"
  mk chat --json \"Name a colour.\" | jq -r .message.content";

/// The text below the options in `mk chat --help`.
pub(crate) const NOTES: &str = "\
The answer goes to standard output as it arrives; model, tokens, time and cost
go to standard error. -q prints the answer only.

In a conversation, lines that begin with a slash are commands: /model switches
the model, /system changes the system prompt, /retry asks the last question
again, /save FILE saves the conversation, /help lists all commands, /exit ends
the conversation. Ctrl-C stops an answer or clears the line. Ctrl-D, or Ctrl-C
on an empty line, ends the conversation. Lines are edited as in a shell; Tab
completes commands and models, Ctrl-R searches. Up recalls earlier questions of
this conversation, which are never stored. Alt-Enter starts a new line, and
pasted lines are one question. Input typed during an answer is kept for the next
prompt.

Exit codes: 0 an answer, even if it was cut off at --max-tokens (a warning says
so); 1 the model declined, or the answer is withheld; 2 usage; 4 no key, or
refused; 5 server or provider failed; 6 cannot reach, or --timeout; 7 refused
for now; 8 the answer broke off (the part that arrived is printed); 9 no such
model.";

/// The arguments of `mk chat`.
#[derive(Args, Debug)]
pub(crate) struct ChatArgs {
    /// What to ask; `-` reads it from standard input. Without it, `mk chat` starts a conversation on a terminal
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// The model to ask, as `mk models` lists it
    /// [default: `MK_MODEL`, then `[chat] model` of config.toml, then the cheapest chat model]
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// System prompt for the model
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,

    /// Sampling temperature, from 0 to 2 [default: the provider's]
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    pub(crate) temperature: Option<f64>,

    /// Maximum number of tokens in an answer [default: the provider's]
    #[arg(long, value_name = "N", value_parser = within(1..=u32::MAX), allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<u32>,

    /// How long an answer may take, such as 90s or 3m [default: 11m]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Print the answer when it is complete, not as it arrives
    #[arg(long)]
    pub(crate) no_stream: bool,

    /// Print one JSON document, at the end
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,
}

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=2.0).contains(number));
    number.ok_or_else(|| "it must be a number from 0 to 2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_out_of_range_and_non_numbers_are_refused_alike() {
        assert_eq!((temperature("0"), temperature("0.7"), temperature("2")), (Ok(0.0), Ok(0.7), Ok(2.0)));
        for wrong in ["-0.1", "2.1", "warm", "", "NaN", "inf"] {
            assert!(temperature(wrong).is_err(), "{wrong}");
        }
    }
}
