//! The reader compared with `serde_json`, on chosen, generated and damaged texts.
//!
//! If the two disagreed, a caller or a provider could make us read one thing and pass on another. What must hold: both
//! accept and refuse the same texts, and read the same values.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Reads a text that is one value.
fn read(text: &str) -> Option<Json<'_>> {
    let mut reader = Reader::new(text);
    reader.value().filter(|_| reader.is_at_end())
}

/// Builds a value by descending into everything.
fn build(json: Json<'_>) -> Value {
    let mut fields = serde_json::Map::new();
    let object = Reader::new(json.get()).object(|reader, name| {
        fields.insert(name.decode()?.into_owned(), build(reader.value()?));
        Some(())
    });
    if object.is_some() {
        return Value::Object(fields);
    }
    match json.items() {
        Some(items) => Value::Array(items.into_iter().map(build).collect()),
        None => json.read().unwrap(),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[test]
fn valid_json_is_read_and_invalid_json_is_refused() {
    for text in [
        "{}",
        " [ ] ",
        "[[],{}]",
        "0",
        "-0",
        "-0.50e+07",
        "1E5",
        "1e-400",
        "12",
        "true",
        "false",
        "null",
        r#""""#,
        r#"{"a":{"b":[1,{"c":null}]} , "d" : "e"}"#,
        r#""\"\\\/\b\f\n\r\t\u00e4\ud83d""#,
        "\"ä😀\u{7f}\"",
        "\"0123456\\\"\"",
    ] {
        assert!(is_json(text), "{text}");
        assert_eq!(read(text).map(Json::get), Some(text.trim()), "{text}");
    }
    for text in [
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1]",
        "[1}",
        "{a:1}",
        "{1:1}",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "tru",
        "nul",
        "True",
        "truefalse",
        "1 1",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "\"0123456789abcdef\u{1f}\"",
        "'a'",
        "[1]]",
        "\u{b}1",
        "\u{feff}1",
        "\"\\u",
        "[\"\\u00e\"]",
        "{\"a\" 1}",
        "[true:1]",
        "NaN",
    ] {
        assert!(!is_json(text), "{text}");
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn values_are_nested_as_deeply_as_allowed() {
    for depth in [1, 63, 64, 65, 120, 121, 128, 129, 100_000] {
        let nested: String =
            (0..depth).map(|position| if position % 3 == 0 { "{\"a\":" } else { "[" }).collect();
        let ends: String =
            (0..depth).rev().map(|position| if position % 3 == 0 { '}' } else { ']' }).collect();
        assert_eq!(read(&format!("{nested}1{ends}")).is_some(), depth <= check::MAX_DEPTH, "{depth}");
        assert_eq!(read(&format!("{nested}1{ends}]")), None);
        assert_eq!(read(&nested), None);
        let wrong = ends.replacen('}', "]", 1);
        assert_eq!(read(&format!("{nested}1{wrong}")), None, "{depth}");
    }
}

#[test]
fn special_bytes_are_found_at_any_position() {
    for length in 0..100 {
        for special in ["\"", "\\", "\n", "\u{1f}", "\u{0}"] {
            let plain = "ä~ \u{7f}!#[]".repeat(12);
            let plain = &plain.as_bytes()[..length];
            let text =
                [plain, special.as_bytes(), b"\"\n\\ and more that is not looked at any more, however long"]
                    .concat();
            assert_eq!(scan::find_special(&text), length, "{text:?}");
            assert_eq!(scan::find_special(plain), length);
        }
    }
}

#[test]
fn values_know_their_type() {
    let json =
        read(r#"{"a":"b\u00e4","\u0062":null,"c":[1, "x]" ,{}],"d":{"d":"\\"}, "e":"\ud83d"}"#).unwrap();
    let [text, null, array, object, half] = json.fields(["a", "b", "c", "d", "e"]).unwrap();
    assert_eq!(text.unwrap().string().as_deref(), Some("bä"));
    assert_eq!(null, None, "a null is nothing");
    let items: Vec<_> = array.unwrap().items().unwrap().into_iter().map(Json::get).collect();
    assert_eq!(items, ["1", "\"x]\"", "{}"]);
    assert!(
        object.unwrap().is_object()
            && object.unwrap().items().is_none()
            && object.unwrap().string().is_none()
    );
    assert!(half.unwrap().is_string() && half.unwrap().string().is_none(), "half a character");
    for wrong in [r#"{"a":1,"\u0061":2}"#, r#"{"a":1,"\ud83d":2}"#, r#"["a"]"#, "7", r#"{"a":1"#] {
        assert_eq!(Json(wrong).fields(["a"]), None, "{wrong}");
    }
    assert_eq!(Json(r#"{"b":1,"b":2}"#).fields(["a"]), Some([None]), "nobody asks for it");
}

#[test]
fn a_value_that_cannot_be_read_is_skipped() {
    let mut reader = Reader::new(r#"[{"a":1},[2],3]"#);
    let mut found = Vec::new();
    reader.array(|reader| {
        found.push(reader.try_read(|reader| reader.fields(["a"]))?.map(|[a]| a.unwrap().get()));
        Some(())
    });
    assert!(reader.is_at_end());
    assert_eq!(found, [Some("1"), None, None]);
}

#[test]
fn a_list_that_is_too_long_is_refused() {
    let read = |text: &str| Reader::new(text).list(2, |reader| reader.value()?.read::<u8>());
    assert_eq!(read("[]"), Some(vec![]));
    assert_eq!(read("[1,2]"), Some(vec![1, 2]));
    assert_eq!(read("[1,2,3]"), None);
    assert_eq!(read("[1,\"2\"]"), None);
    assert_eq!(read("{}"), None);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,20}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_was_written_is_read_back(value in value(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert_eq!(read(&text).map(build), Some(value));
    }

    #[test]
    fn random_texts_are_accepted_and_refused_as_by_serde_json(
        text in r#"([\[\]{},:"\\ \n]|"a"|"b":|\\u00e4|[0-9.eE+-]|true|null|[a-z]|é){0,24}"#
    ) {
        // Lone surrogates are only refused on decoding, and these texts never nest deeper than `serde_json` goes.
        prop_assert_eq!(read(&text).is_some(), is_json(&text));
    }

    #[test]
    fn damaged_texts_are_accepted_and_refused_as_by_serde_json(value in value(), position in any::<prop::sample::Index>(), byte in r#"[\[\]{},:"\\0a\n]"#) {
        let mut text = value.to_string();
        let position = position.index(text.len());
        if text.is_char_boundary(position) {
            text.insert_str(position, &byte);
        }
        prop_assert_eq!(read(&text).is_some(), is_json(&text), "{}", text);
    }
}
