//! What the parts of a translated request are called in the request that it was made of, so that whoever is told of one
//! that is at fault finds it.

/// The names of both requests.
#[derive(Debug, Default)]
pub(in crate::server::endpoints::messages) struct Names {
    /// For each message, the path of what it was made of.
    pub(super) origins: Vec<String>,
    /// For each tool, its place in the caller's list.
    pub(super) tools: Vec<usize>,
    /// The parameter that the effort of thinking comes from.
    pub(super) effort: &'static str,
}

impl Names {
    /// The caller's name for a parameter of the translated request.
    pub(in crate::server::endpoints::messages) fn of(&self, param: &str) -> String {
        let (head, rest) = param.split_at(param.find(['.', '[']).unwrap_or(param.len()));
        let known = match head {
            "messages" => numbered(rest).and_then(|(at, _)| self.origins.get(at).cloned()),
            "tools" => numbered(rest).and_then(|(at, rest)| {
                let rest = rest.replace(".function.parameters", ".input_schema").replace(".function", "");
                self.tools.get(at).map(|place| format!("tools[{place}]{rest}"))
            }),
            "stop" => Some("stop_sequences".to_owned()),
            "user" => Some("metadata.user_id".to_owned()),
            "max_completion_tokens" => Some("max_tokens".to_owned()),
            "parallel_tool_calls" => Some("tool_choice.disable_parallel_tool_use".to_owned()),
            "reasoning_effort" => Some(self.effort.to_owned()),
            "response_format" => Some("output_config.format".to_owned()),
            "stream_options" => Some("stream".to_owned()),
            _ => None,
        };
        known.unwrap_or_else(|| param.to_owned())
    }
}

/// The number in brackets that a path begins with, and what follows it.
fn numbered(path: &str) -> Option<(usize, &str)> {
    let (number, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_caller() {
        let origins = ["system", "messages[0].content[1]", "messages[0]"].map(str::to_owned).to_vec();
        let names = Names { origins, tools: vec![0, 2], effort: "thinking" };
        for (param, expected) in [
            ("messages[1].content", "messages[0].content[1]"),
            ("messages[0].content[0].text", "system"),
            ("messages", "messages"),
            ("messages[9]", "messages[9]"),
            ("tools[1].function.parameters.x", "tools[2].input_schema.x"),
            ("tools[0].function.name", "tools[0].name"),
            ("reasoning_effort", "thinking"),
            ("response_format.json_schema.schema", "output_config.format"),
            ("stop", "stop_sequences"),
            ("top_k", "top_k"),
            ("messages[", "messages["),
        ] {
            assert_eq!(names.of(param), expected);
        }
    }
}
