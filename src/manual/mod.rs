//! The topics of the manual: written once, as Markdown in `man/`, and read in four places: the repository, `man`,
//! `mk help TOPIC`, and `/docs` of a running server.
//!
//! A topic's file is called as its manual page, with `.md` behind it (`man/mk-gateway.7.md` becomes `man/mk-gateway.7`),
//! so that source and page stand side by side. Topics use what [`document`] knows of Markdown, and a test holds them to
//! it, so that nothing is lost in any rendering. Tables that the code knows stand between markers ([`filled`]); the
//! room that has them all, `cli`, fills them in, and a test compares.

pub mod document;
pub mod html;
pub mod roff;

use document::{Block, Inline};

/// A topic.
#[derive(Debug)]
pub struct Topic {
    /// Its name, as in `mk help NAME`.
    pub name: &'static str,
    /// The section of the manual: 5 for files, 7 for everything else that is no command.
    pub section: u8,
    /// Its Markdown.
    pub source: &'static str,
}

macro_rules! topics {
    ($($name:literal $section:literal)*) => {
        [$(Topic {
            name: $name,
            section: $section,
            source: include_str!(concat!("../../man/mk-", $name, ".", $section, ".md")),
        }),*]
    };
}

/// All topics, in the order in which they are listed.
pub static TOPICS: [Topic; 8] = topics! {
    "verification" 7
    "gateway" 7
    "keys" 7
    "operation" 7
    "clustering" 7
    "security" 7
    "server" 5
    "config" 5
};

/// What a marker of a table begins with; its name follows.
const TABLE: &str = "<!-- table: ";
/// What ends a marker.
const MARKER_END: &str = " -->\n";
/// What stands behind a table.
const TABLE_END: &str = "<!-- end of table -->\n";

/// The topic of this name.
pub fn find(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

impl Topic {
    /// The name of its manual page, without the section.
    pub fn page(&self) -> String {
        format!("mk-{}", self.name)
    }

    /// The name of the manual page's file.
    pub fn file(&self) -> String {
        format!("mk-{}.{}", self.name, self.section)
    }

    /// What it is about, in a few words: what stands behind the colon of its heading.
    pub fn summary(&self) -> &'static str {
        let heading = self.source.lines().next().unwrap_or_default();
        heading.split_once(": ").map_or(heading, |(_, summary)| summary)
    }

    /// What stands below its heading.
    pub fn blocks(&self) -> Vec<Block> {
        document::parse(self.source).into_iter().skip(1).collect()
    }
}

/// The topic that a link in a topic leads to, with the section of the page behind `#`, if there is one.
pub fn linked(to: &str) -> Option<(&'static Topic, Option<&str>)> {
    let (file, place) = to.split_once('#').map_or((to, None), |(file, place)| (file, Some(place)));
    let topic = TOPICS.iter().find(|topic| file.strip_suffix(".md") == Some(&*topic.file()))?;
    Some((topic, place))
}

/// The Markdown with its tables filled in: what stands between a marker and its end is replaced by what `table` knows
/// under the marker's name, and is left as it is if `table` does not know it.
pub fn filled(source: &str, table: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::new();
    let mut rest = source;
    while let Some((before, behind)) = rest.split_once(TABLE) {
        let parts = behind.split_once(MARKER_END).and_then(|(name, behind)| {
            let (old, behind) = behind.split_once(TABLE_END)?;
            Some((name, old, behind))
        });
        let Some((name, old, behind)) = parts else { break };
        let rows = table(name).map_or_else(|| old.to_owned(), |table| format!("\n{}\n\n", table.trim_end()));
        filled.push_str(&[before, TABLE, name, MARKER_END, &rows, TABLE_END].concat());
        rest = behind;
    }
    filled + rest
}

/// The text of inlines without any markup.
pub fn plain(inlines: &[Inline]) -> String {
    inlines.iter().map(Inline::plain).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_topic_can_be_rendered_and_says_where_to_look_further() {
        for topic in &TOPICS {
            let all = document::parse(topic.source);
            assert!(!all.contains(&Block::Unknown), "{} uses what is not rendered", topic.name);
            let Some(Block::Heading { level: 1, text }) = all.first() else { panic!("{}", topic.name) };
            assert_eq!(plain(text), format!("{}({}): {}", topic.page(), topic.section, topic.summary()));
            let sections: Vec<String> = topic.blocks().iter().filter_map(section).collect();
            let end: Vec<&str> = sections.iter().rev().take(2).rev().map(String::as_str).collect();
            assert_eq!(end, ["Files", "See also"], "{}", topic.name);
        }
    }

    fn section(block: &Block) -> Option<String> {
        let Block::Heading { level, text } = block else { return None };
        assert!((2..=3).contains(level), "{}", plain(text));
        (*level == 2).then(|| plain(text))
    }

    #[test]
    fn every_link_leads_somewhere() {
        let places = |topic: &Topic| -> BTreeSet<String> {
            let headings = topic.blocks().into_iter().filter_map(|block| match block {
                Block::Heading { text, .. } => Some(html::slug(&plain(&text))),
                _ => None,
            });
            headings.collect()
        };
        let mut followed = 0;
        for topic in &TOPICS {
            for to in document::links(&topic.blocks()) {
                followed += 1;
                if to.starts_with("https://") {
                    continue;
                }
                let (target, place) = match to.strip_prefix('#') {
                    Some(place) => (topic, Some(place)),
                    None => linked(&to).unwrap_or_else(|| panic!("{} links to {to}", topic.name)),
                };
                let is_there = place.is_none_or(|place| places(target).contains(place));
                assert!(is_there, "{} links to {to}", topic.name);
            }
        }
        assert!(followed > 20, "{followed}");
    }

    #[test]
    fn a_marked_table_is_filled_in_and_others_stay() {
        let source = "a\n<!-- table: one -->\nold\n<!-- end of table -->\nb\n<!-- table: two -->\nold\n<!-- end of table -->\nc\n";
        let filled = filled(source, |name| (name == "one").then(|| "new".to_owned()));
        assert_eq!(
            filled,
            "a\n<!-- table: one -->\n\nnew\n\n<!-- end of table -->\nb\n<!-- table: two -->\nold\n<!-- end of table -->\nc\n"
        );
    }
}
