//! Whether a text is Markdown, told by its name or else by what is in it, so that headings, code and link targets are
//! not taken for statements.

use std::ffi::OsStr;
use std::path::Path;

use super::source::Source;
use crate::api::verify::Format;

/// Extensions of Markdown files, in lower case.
const MARKDOWN: [&str; 7] = ["md", "markdown", "mdown", "mkd", "mkdn", "mdx", "qmd"];
/// Extensions of files that are no Markdown, whatever is in them.
const PLAIN: [&str; 6] = ["txt", "text", "log", "csv", "tsv", "srt"];

/// How a statement from this source is written.
pub(crate) fn format_of(source: Option<&Source>, text: &str) -> Format {
    let name = match source {
        Some(Source::File { file }) => Path::new(file),
        _ => Path::new(""),
    };
    let extension = name.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let is_markdown = if MARKDOWN.contains(&extension.as_str()) {
        true
    } else {
        !PLAIN.contains(&extension.as_str()) && has_marks(text)
    };
    if is_markdown { Format::Markdown } else { Format::Text }
}

/// Whether a text has marks that nobody writes in a plain one: front matter, a heading with an empty line around it, or
/// a fence around code.
fn has_marks(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let is_blank = |at: usize| lines.get(at).is_none_or(|line| line.is_empty());
    let has_front_matter = lines.first() == Some(&"---") && lines.iter().skip(1).any(|line| *line == "---");
    let fences = lines.iter().filter(|line| line.starts_with("```") || line.starts_with("~~~")).count();
    let is_heading = |(at, line): (usize, &&str)| {
        let name = line.trim_start_matches('#');
        let level = line.len() - name.len();
        (1..=6).contains(&level) && name.starts_with(' ') && (at == 0 || is_blank(at - 1)) && is_blank(at + 1)
    };
    has_front_matter || fences >= 2 || lines.iter().enumerate().any(is_heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_before_the_content() {
        let of = |name: &str, text: &str| format_of(Some(&Source::File { file: name.to_owned() }), text);
        for name in ["a.md", "A.MD", "notes.markdown", "x/y.mdx"] {
            assert_eq!(of(name, "Plain."), Format::Markdown, "{name}");
        }
        assert_eq!(of("a.txt", "# Title\n\nText."), Format::Text);
        assert_eq!(of("README", "# Title\n\nText."), Format::Markdown);
        assert_eq!(of("README", "Text."), Format::Text);
    }

    #[test]
    fn only_marks_of_structure_make_a_text_markdown() {
        for text in
            ["# Title\n\nText.", "Text.\n\n## More\n\nText.", "---\ntitle: x\n---\nText.", "```\ncode\n```\n"]
        {
            assert_eq!(format_of(None, text), Format::Markdown, "{text:?}");
        }
        for text in
            ["Text.", "#1 in sales.", "# of items: 3\nmore", "He wrote *that*.", "--- a\nb", "5 * 3 is 15."]
        {
            assert_eq!(format_of(None, text), Format::Text, "{text:?}");
        }
    }
}
