//! The usage of one streamed answer: what its provider has reported, and what is estimated in its place.

use serde_json::{Value, json};

use super::ChunkWriter;
use crate::money::Tokens;
use crate::providers::catalog::estimate;

/// What the last report of usage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Report {
    /// The provider's, of what was used until then.
    #[default]
    SoFar,
    /// The provider's, of all that was used, although the answer may be incomplete.
    Final,
    /// Estimated since the provider's last one.
    Estimate,
}

impl ChunkWriter {
    /// Records the usage so far as the provider reports it, and its own usage object (on one line). The last report
    /// counts.
    pub fn record_usage(&mut self, usage: Tokens, text: Option<&str>) {
        self.usage = Some(usage);
        self.usage_text = text.filter(|_| self.include_usage).map(str::to_owned);
        self.reported = Report::SoFar;
    }

    /// As [`ChunkWriter::record_usage`], for what is estimated since the provider's last report.
    pub fn record_estimate(&mut self, usage: Tokens, text: Option<&str>) {
        self.record_usage(usage, text);
        self.reported = Report::Estimate;
    }

    /// Notes that the last report is of all that was used: it came with the news that the answer failed.
    pub fn finish_usage(&mut self) {
        self.reported = Report::Final;
    }

    /// The token usage so far, estimated if the provider has not reported it. For an incomplete answer, a report may
    /// date from before most of it arrived, so the estimate is the minimum.
    pub fn usage(&self) -> Tokens {
        let estimated = Tokens::new(self.prompt_tokens, estimate::length_tokens(self.length));
        match self.usage {
            None => estimated,
            Some(reported) if self.reported == Report::Final || self.is_complete() => reported,
            Some(reported) => {
                Tokens { completion: reported.completion.max(estimated.completion), ..reported }
            }
        }
    }

    /// The usage of the whole answer, as the provider has reported it; `None` as long as it has not.
    pub fn final_usage(&self) -> Option<Tokens> {
        let is_final = match self.reported {
            Report::Final => true,
            Report::SoFar => self.is_complete(),
            Report::Estimate => false,
        };
        self.usage.filter(|_| is_final)
    }

    /// The token usage that the provider has reported so far.
    pub const fn reported_usage(&self) -> Option<Tokens> {
        self.usage
    }
}

/// The documented usage object.
pub(in crate::providers) fn usage_json(usage: Tokens, is_estimated: bool) -> Value {
    let mut value = json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total(),
    });
    if is_estimated {
        value["estimated"] = json!(true);
    }
    value
}
