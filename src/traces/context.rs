//! Where a span is in its trace, and how that travels: the header `traceparent` of W3C Trace Context.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header.
pub(super) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of a header of version 00; those of later versions may go on after a dash.
const LENGTH: usize = 55;

/// The place of a span in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; not zero.
    pub trace: u128,
    /// The span; not zero.
    pub span: u64,
    /// Whether the spans of this trace are recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// The place of the caller's span, if the headers name one. Of several, none counts.
    pub fn of_caller(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&TRACEPARENT).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        Self::parse(value.as_bytes())
    }

    /// Reads a header, of this version or of a later one, which must begin in the same way.
    fn parse(text: &[u8]) -> Option<Self> {
        let rest = text.get(LENGTH..)?;
        let field = |from: usize, to: usize| hex(text.get(from..to)?);
        let is_dash = |at: usize| text.get(at) == Some(&b'-');
        let version = field(0, 2)?;
        let ends_there = rest.is_empty() || (version > 0 && rest.first() == Some(&b'-'));
        if version == 0xff || !ends_there || ![2, 35, 52].into_iter().all(is_dash) {
            return None;
        }
        let (trace, span, flags) = (field(3, 35)?, u64::try_from(field(36, 52)?).ok()?, field(53, 55)?);
        (trace != 0 && span != 0).then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// The header for a server that is called inside this span.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut text = String::with_capacity(LENGTH);
        let flags = u8::from(self.is_sampled);
        write!(text, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span).ok()?;
        HeaderValue::try_from(text).ok()
    }
}

/// A number in lowercase hexadecimal digits, at most 32.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0_u128, |number, &digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some((number << 4) | u128::from(value))
    })
}

/// A random identifier of a trace; `None` if the system has no randomness.
pub(super) fn new_trace() -> Option<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(u128::from_be_bytes(bytes)).filter(|trace| *trace != 0)
}

/// A random identifier of a span; `None` if the system has no randomness.
pub(super) fn new_span() -> Option<u64> {
    getrandom::u64().ok().filter(|span| *span != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(text: &str) -> Option<TraceContext> {
        TraceContext::parse(text.as_bytes())
    }

    #[test]
    fn a_header_is_read_and_written() {
        let context = parse(VALID).unwrap();
        assert_eq!(
            (context.trace, context.span),
            (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)
        );
        assert!(context.is_sampled);
        assert_eq!(context.header().unwrap(), VALID);
        assert!(!parse(&VALID.replace("-01", "-00")).unwrap().is_sampled);
        assert!(parse(&VALID.replace("-01", "-03")).unwrap().is_sampled);
    }

    #[test]
    fn later_versions_may_say_more() {
        for version in ["01", "cc", "fe"] {
            let later = VALID.replacen("00", version, 1);
            assert!(parse(&later).is_some() && parse(&format!("{later}-what")).is_some());
            assert_eq!(parse(&format!("{later}what")), None);
        }
    }

    #[test]
    fn what_is_malformed_is_none() {
        let zero_trace = format!("00-{:032}-00f067aa0ba902b7-01", 0);
        let zero_span = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{:016}-01", 0);
        for wrong in [
            "",
            "00",
            &VALID[..54],
            &format!("{VALID}-more"),
            &format!("{VALID} "),
            &VALID.to_uppercase(),
            &VALID.replacen("00", "ff", 1),
            &VALID.replace('-', "_"),
            &VALID.replacen('4', "g", 1),
            &zero_trace,
            &zero_span,
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let twice = HeaderMap::from_iter([(TRACEPARENT.clone(), HeaderValue::from_static(VALID)); 1]);
        assert!(TraceContext::of_caller(&twice).is_some());
        let mut twice = twice;
        twice.append(&TRACEPARENT, HeaderValue::from_static(VALID));
        assert_eq!(TraceContext::of_caller(&twice), None);
    }

    proptest! {
        #[test]
        fn no_header_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = TraceContext::parse(&bytes);
        }
    }
}
