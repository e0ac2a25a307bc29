//! `/docs`, the topics of the manual as pages, and `/llms.txt`, which tells programs that read for models where they
//! are. Like the dashboard, they are open, embedded, and always those of this version.
//!
//! What must hold: the pages load nothing but their style, and link with relative addresses only, so that they also
//! work below a path prefix.

use std::collections::HashMap;
use std::sync::LazyLock;

use warp::reply::Response;

use super::dashboard::{self, File};
use crate::manual::html::{escape, render, slug};
use crate::manual::{self, TOPICS, Topic, document::Block};
use crate::server::reply;
use crate::server::request::incoming::Incoming;
use crate::server::{ServerState, gate};

const STYLE: &str = include_str!("docs.css");
const TEMPLATE: &str = include_str!("page.html");

/// What the list of topics says first, and `/llms.txt` too.
const SUMMARY: &str =
    "mk checks the claims in a text with several AI models, and is a gateway for chat completions.";

/// All files, by path.
static FILES: LazyLock<HashMap<String, File>> = LazyLock::new(|| {
    let mut files = HashMap::new();
    let mut add = |path: String, name: &str, text: String| files.insert(path, File::new(name, text.into()));
    add("/llms.txt".to_owned(), "llms.txt", llms());
    add("/docs/docs.css".to_owned(), "docs.css", STYLE.to_owned());
    for (path, below) in [("/docs", "docs/"), ("/docs/", "")] {
        add(path.to_owned(), "index.html", index(below));
    }
    for topic in &TOPICS {
        add(format!("/docs/{}", topic.name), "topic.html", page(topic));
        add(format!("/docs/{}.md", topic.name), "topic.md", markdown(topic));
    }
    files
});

/// Whether there is a page at this path.
pub(crate) fn has(path: &str) -> bool {
    FILES.contains_key(path)
}

/// Answers a request for a page.
pub(crate) async fn show(context: &ServerState, incoming: &Incoming, path: &str) -> Response {
    let found = FILES.get(path).map(|file| (file, false));
    let outcome = gate::open_page(&context.app, incoming).await;
    let outcome = outcome.and_then(|rate| reply::within(rate, dashboard::answer(found, &incoming.headers)));
    let response = outcome.unwrap_or_else(|error| error.into_response(incoming));
    dashboard::with_security_headers(response)
}

/// The list of topics; `below` leads to them from its address.
fn index(below: &str) -> String {
    let topics = TOPICS.iter().map(|topic| {
        let (name, summary) = (topic.name, escape(topic.summary()));
        format!("<dt><a href=\"{below}{name}\">{}</a></dt><dd>{summary}</dd>\n", title(topic))
    });
    let topics: String = topics.collect();
    let body = format!("<h1>Documentation</h1>\n<p>{SUMMARY}</p>\n<dl>\n{topics}</dl>\n");
    let up = if below.is_empty() { "../" } else { "" };
    fill("Documentation", None, &body, below, up)
}

fn page(topic: &Topic) -> String {
    let blocks = topic.blocks();
    let body = format!(
        "<h1>{}</h1>\n<p class=\"lead\">{}</p>\n{}",
        title(topic),
        escape(topic.summary()),
        render(&blocks)
    );
    fill(&title(topic), Some((topic, &blocks)), &body, "", "../")
}

/// A topic's Markdown, in which links lead to the Markdown of other topics beside it.
fn markdown(topic: &Topic) -> String {
    TOPICS.iter().fold(topic.source.to_owned(), |text, linked| {
        text.replace(&format!("]({}.md", linked.file()), &format!("]({}.md", linked.name))
    })
}

/// The page around `body`: `below` leads to the topics from its address, and `up` to the dashboard.
fn fill(title: &str, shown: Option<(&Topic, &[Block])>, body: &str, below: &str, up: &str) -> String {
    let entry = |topic: &Topic| {
        let shown = shown.filter(|(shown, _)| shown.name == topic.name);
        let current = if shown.is_some() { " aria-current=\"page\"" } else { "" };
        let sections = shown.map(|(_, blocks)| sections(blocks)).unwrap_or_default();
        format!("<li><a href=\"{below}{}\"{current}>{}</a>{sections}</li>\n", topic.name, self::title(topic))
    };
    let source = shown.map(|(topic, _)| format!("<a href=\"{}.md\">This page as Markdown</a>\n", topic.name));
    TEMPLATE
        .replace("{{title}}", title)
        .replace("{{topics}}", &TOPICS.iter().map(entry).collect::<String>())
        .replace("{{source}}", &source.unwrap_or_default())
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{below}}", below)
        .replace("{{up}}", up)
        .replace("{{body}}", body)
}

/// Links to the sections of a page.
fn sections(blocks: &[Block]) -> String {
    let sections = blocks.iter().filter_map(|block| match block {
        Block::Heading { level: 2, text } => Some(manual::plain(text)),
        _ => None,
    });
    let links = sections.map(|text| format!("<li><a href=\"#{}\">{}</a></li>", slug(&text), escape(&text)));
    format!("<ul>{}</ul>", links.collect::<String>())
}

/// A topic's name as a title.
fn title(topic: &Topic) -> String {
    let (first, rest) = topic.name.split_at(1);
    match topic.section {
        5 if topic.name == "server" => "server.toml".to_owned(),
        5 => format!("{}.toml", topic.name),
        _ => format!("{}{rest}", first.to_uppercase()),
    }
}

/// The list for programs, in the form of llmstxt.org.
fn llms() -> String {
    let topics = TOPICS
        .iter()
        .map(|topic| format!("- [{}](docs/{}.md): {}\n", title(topic), topic.name, topic.summary()));
    format!(
        "# mk\n\n> {SUMMARY}\n\n## Documentation\n\n{}\n## API\n\n- [OpenAPI 3.1](openapi.json): every endpoint of this server, with its errors\n",
        topics.collect::<String>()
    )
}
