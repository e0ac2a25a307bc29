//! The manual's topics as a running server shows them, and `mk help`.

use std::collections::BTreeSet;

use mk::manual::TOPICS;

use crate::support::mk::Mk;
use crate::support::pty;
use crate::support::raw::{exchange, request};
use crate::support::server::{Setup, client, sandbox};

/// The addresses in a page's links, scripts and styles, resolved against the page's own.
fn linked(page: &str, html: &str) -> BTreeSet<String> {
    let attributes = html.split(['<', '>']).flat_map(|tag| {
        ["href=\"", "src=\""].into_iter().filter_map(move |name| tag.split_once(name)?.1.split('"').next())
    });
    let directory = page.rsplit_once('/').unwrap().0;
    let resolve = |address: &str| {
        let address = address.split('#').next().unwrap();
        match address.strip_prefix("../") {
            Some(rest) => format!("/{}", rest.trim_start_matches('.')),
            None if address == "." => format!("{directory}/"),
            None if address.is_empty() => page.to_owned(),
            None => format!("{directory}/{address}"),
        }
    };
    attributes.filter(|address| !address.starts_with("https://")).map(resolve).collect()
}

/// The addresses of a page's links in Markdown, resolved against the page's own.
fn linked_in_markdown(page: &str, text: &str) -> BTreeSet<String> {
    let directory = page.rsplit_once('/').unwrap().0;
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let targets = targets.filter(|target| !target.is_empty() && !target.starts_with("https://"));
    targets.map(|target| format!("{directory}/{target}")).collect()
}

#[tokio::test]
async fn every_page_is_served_strictly_and_leads_to_pages_that_are_there() {
    let server = Setup::new(sandbox()).start().await;
    let mut todo: Vec<String> = vec!["/docs".to_owned(), "/docs/".to_owned(), "/llms.txt".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(path) = todo.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let response = client().get(format!("{}{path}", server.base)).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let headers = response.headers().clone();
        for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id"] {
            assert!(headers.contains_key(name), "{path} has no {name}");
        }
        let kind = headers["content-type"].to_str().unwrap();
        if !path.starts_with("/docs") && path != "/llms.txt" {
            continue;
        }
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let kind = kind.to_owned();
        let text = response.text().await.unwrap();
        if kind.starts_with("text/html") {
            assert!(!text.contains("<style") && !text.contains("style="), "{path}");
            for place in ["title", "topics", "source", "version", "below", "up", "body"] {
                assert!(!text.contains(&format!("{{{{{place}}}}}")), "{path} has an unfilled {place}");
            }
            assert_eq!(text.matches("<h1").count(), 1, "{path}");
            todo.extend(linked(&path, &text));
        } else if path == "/llms.txt" {
            assert!(text.starts_with("# mk\n\n> "), "{text}");
            todo.extend(linked_in_markdown(&path, &text));
        } else if let Some((_, "md")) = path.rsplit_once('.') {
            let targets = linked_in_markdown(&path, &text);
            let is_page = |target: &String| target.rsplit_once('.').is_some_and(|(_, end)| end == "md");
            assert!(targets.iter().any(is_page), "{path}: {targets:?}");
            todo.extend(targets);
        }
    }
    for topic in &TOPICS {
        let name = topic.name;
        assert!(
            seen.contains(&format!("/docs/{name}")) && seen.contains(&format!("/docs/{name}.md")),
            "{name}"
        );
    }
    let page =
        client().get(format!("{}/docs/gateway", server.base)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("aria-current=\"page\">Gateway</a>"), "{page}");
}

#[tokio::test]
async fn no_other_page_is_served() {
    let server = Setup::new(sandbox()).start().await;
    for path in
        ["/docs/nothing", "/docs/gateway/", "/docs//gateway", "/docs/../llms.txt", "/docs/mk-gateway.7.md"]
    {
        let answer = exchange(server.authority(), &request("GET", path, &[], "")).await;
        assert!(
            answer.starts_with("HTTP/1.1 404 ") && answer.contains("x-ratelimit-limit"),
            "{path}: {answer}"
        );
    }
    for path in ["/docs", "/docs/gateway", "/llms.txt"] {
        let answer = exchange(server.authority(), &request("POST", path, &[], "")).await;
        assert!(
            answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nallow: GET, HEAD\r\n"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn pages_are_limited_as_open_pages() {
    let server = Setup::new(sandbox()).config(|config| config.limits.open_pages_per_minute = 2).start().await;
    let mut statuses = Vec::new();
    for path in ["/docs", "/llms.txt", "/docs/gateway"] {
        statuses.push(client().get(format!("{}{path}", server.base)).send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn a_long_topic_on_a_terminal_is_shown_by_the_pager() {
    let help = |pager: &str| Mk::new().args(["help", "gateway"]).env("PAGER", pager);
    let paged = help("cat > paged.txt");
    let shown = pty::run(&paged, 80, 24);
    let page = std::fs::read_to_string(paged.home().join("paged.txt")).unwrap();
    assert!(page.contains("mk-gateway(7):"), "{page}");
    assert!(page.contains("(mk help keys)"), "a link says where it leads: {page}");
    assert!(!shown.raw.contains("mk-gateway(7)"), "{}", shown.raw);
    for nothing in ["no-such-pager", "exit 127"] {
        assert!(pty::run(&help(nothing), 80, 24).raw.contains("mk-gateway(7)"), "{nothing}");
    }
    let high = help("cat > paged.txt");
    assert!(pty::run(&high, 80, 2000).raw.contains("mk-gateway(7)"));
    assert!(!high.home().join("paged.txt").exists(), "it fits the screen");
}

#[test]
fn help_shows_topics_commands_and_what_was_meant() {
    let help = |words: &[&str]| Mk::new().args(["help"]).args(words.iter().copied()).run();
    let all = help(&[]);
    for topic in &TOPICS {
        assert!(all.stdout.contains(&format!("  {:<14}{}", topic.name, topic.summary())), "{all:?}");
        let shown = help(&[topic.name]);
        assert_eq!(shown.code(), 0, "{shown:?}");
        let title = format!("mk-{}({}): {}", topic.name, topic.section, topic.summary());
        assert!(shown.stdout.starts_with(&title), "{shown:?}");
        assert!(shown.stdout.contains("\nFILES\n") && !shown.stdout.contains('\u{1b}'), "{shown:?}");
    }
    for words in [&["keys", "create"][..], &["verify"]] {
        let asked = Mk::new().args(words.iter().copied()).args(["--help"]).run();
        assert_eq!(help(words).stdout, asked.stdout);
    }
    for (word, meant) in [("gatway", "gateway"), ("verfy", "verify"), ("doctr", "doctor")] {
        let ran = help(&[word]);
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("did you mean `mk help {meant}`?")), "{ran:?}");
    }
    assert!(help(&["keys", "crate"]).stderr.contains("create"));
}
