//! Sentences and sections of statements: in order, apart, of whole characters, and of plain text nothing visible is left
//! out.

use mk::verify::document::{Document, Format};

fn visible(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for format in [Format::Text, Format::Markdown] {
        let document = Document::new(&text, format);
        let sentences = document.sentences();
        assert!(sentences.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start), "out of order");
        let held: String = sentences
            .iter()
            .map(|sentence| text.get(sentence.range.clone()).expect("whole characters"))
            .collect();
        assert!(format == Format::Markdown || visible(&held) == visible(&text), "a sentence is missing");
        assert!(document.hidden().windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(document.hidden().iter().all(|hidden| text.get(hidden.clone()).is_some()));
        let mut next = 0;
        for section in document.sections(200) {
            assert_eq!(section.sentences.start, next, "a section left sentences out");
            assert!(section.sentences.end > next && text.get(section.range.clone()).is_some());
            assert!(section.headings.iter().all(|heading| *heading < section.sentences.start));
            next = section.sentences.end;
        }
        assert_eq!(next, sentences.len());
    }
}
