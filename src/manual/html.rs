//! Topics as HTML: elements and classes only, so that a page needs no script and no style of its own.

use super::document::{Block, Inline};
use super::{linked, plain};

/// The HTML of these blocks.
pub fn render(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading { level, text } => {
            format!("<h{level} id=\"{}\">{}</h{level}>\n", slug(&plain(text)), inlines(text))
        }
        Block::Paragraph(text) => format!("<p>{}</p>\n", inlines(text)),
        Block::List { is_numbered, items } => {
            let tag = if *is_numbered { "ol" } else { "ul" };
            let items: Vec<String> =
                items.iter().map(|blocks| format!("<li>{}</li>\n", item(blocks))).collect();
            format!("<{tag}>\n{}</{tag}>\n", items.concat())
        }
        // Whoever goes by the keyboard scrolls what can have the focus.
        Block::Code(code) => {
            format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(code))
        }
        Block::Table { head, rows } => {
            let cells = |tag: &str, cells: &[Vec<Inline>]| {
                let cells: Vec<String> =
                    cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", inlines(cell))).collect();
                cells.concat()
            };
            let rows: Vec<String> =
                rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
            let rows = rows.concat();
            let head = cells("th", head);
            format!(
                "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
            )
        }
        Block::Unknown => String::new(),
    }
}

/// An item of a list; a single paragraph needs no element of its own.
fn item(blocks: &[Block]) -> String {
    match blocks {
        [Block::Paragraph(text), rest @ ..] => format!("{}{}", inlines(text), render(rest)),
        blocks => render(blocks),
    }
}

fn inlines(all: &[Inline]) -> String {
    all.iter().map(inline).collect()
}

fn inline(inline: &Inline) -> String {
    match inline {
        Inline::Text(text) => escape(text),
        Inline::Code(code) => format!("<code>{}</code>", escape(code)),
        Inline::Strong(text) => format!("<strong>{}</strong>", inlines(text)),
        Inline::Link { text, to } => format!("<a href=\"{}\">{}</a>", escape(&address(to)), inlines(text)),
    }
}

/// Where a link leads from the page of a topic, which stands beside those of the others.
fn address(to: &str) -> String {
    match linked(to) {
        Some((topic, Some(place))) => format!("{}#{place}", topic.name),
        Some((topic, None)) => topic.name.to_owned(),
        None => to.to_owned(),
    }
}

/// The name of a heading in addresses, the same as in the repository's web view.
pub fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text as it stands in elements and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::document::parse;
    use super::*;

    #[test]
    fn every_part_has_its_element() {
        let page = "## When a model, `x`, fails\n\n- a **b** <c@d.example>\n  - [e](mk-server.5.md#f)\n\n| `g` |\n|---|\n| h |\n\n```\ni < \"j\"\n```\n";
        let html = render(&parse(page));
        for part in [
            "<h2 id=\"when-a-model-x-fails\">When a model, <code>x</code>, fails</h2>",
            "<ul>\n<li>a <strong>b</strong> ",
            "<a href=\"server#f\">e</a>",
            "<th><code>g</code></th>",
            "<td>h</td>",
            "<code>i &lt; &quot;j&quot;\n</code>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
