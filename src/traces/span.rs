//! A span: something that takes time, from when it is made until it is dropped.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use http::HeaderValue;

use super::context::{self, TraceContext};
use super::tracer::Tracer;

/// What a span is to the others, in the numbers of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Work of this server.
    Internal = 1,
    /// A request that was received.
    Server = 2,
    /// A call to another server.
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text that is always the same, or made for the span.
    Text(Cow<'static, str>),
    /// A text that others have as well.
    Shared(Arc<str>),
    /// A list of texts.
    Texts(Vec<String>),
    /// A whole number.
    Count(u64),
    /// Any other number.
    Amount(f64),
    /// Yes or no.
    Flag(bool),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

macro_rules! value_from {
    ($($T:ty: $variant:ident;)+) => { $(impl From<$T> for Value {
        fn from(value: $T) -> Self {
            Self::$variant(value.into())
        }
    })+ };
}

value_from! {
    String: Text;
    Cow<'static, str>: Text;
    Arc<str>: Shared;
    Vec<String>: Texts;
    u16: Count;
    u32: Count;
    u64: Count;
    f64: Amount;
    bool: Flag;
}

/// What can have children: a span, for as long as anybody needs, or nothing.
#[derive(Clone, Default)]
pub struct Parent(Option<Arc<Place>>);

struct Place {
    tracer: Arc<Tracer>,
    context: TraceContext,
    origin: Origin,
}

/// What the times of this server's part of a trace are relative to, so that they are right to each other even if the
/// clock is set meanwhile.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) unix_nanos: u64,
    pub(super) at: Instant,
}

impl Origin {
    fn unix_nanos(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.at).as_nanos();
        let before = self.at.saturating_duration_since(at).as_nanos();
        let nanos = |nanos: u128| u64::try_from(nanos).unwrap_or(u64::MAX);
        self.unix_nanos.saturating_add(nanos(since)).saturating_sub(nanos(before))
    }
}

/// Shows no more than where it is.
impl fmt::Debug for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parent").field(&self.0.as_ref().map(|place| place.context)).finish()
    }
}

impl Parent {
    /// Nothing.
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Whether there is none.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// A span that begins at `start` inside this one; nothing if this is nothing.
    pub fn child(&self, name: impl Into<Cow<'static, str>>, kind: Kind, start: Instant) -> Span {
        let Some(place) = &self.0 else { return Span::default() };
        let Some(span) = context::new_span() else { return Span::default() };
        let context = TraceContext { span, ..place.context };
        Span::begin(
            place.tracer.clone(),
            context,
            Some(place.context.span),
            (name.into(), kind),
            (place.origin, start),
        )
    }
}

/// A span that has begun and ends when it is dropped; or nothing, which costs nothing.
#[derive(Default)]
pub struct Span(Option<Box<Open>>);

struct Open {
    place: Parent,
    is_recorded: bool,
    parent: Option<u64>,
    name: Cow<'static, str>,
    kind: Kind,
    start: Instant,
    attributes: Vec<(&'static str, Value)>,
    is_error: bool,
}

/// A span that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) context: TraceContext,
    pub(super) parent: Option<u64>,
    pub(super) name: Cow<'static, str>,
    pub(super) kind: Kind,
    /// In nanoseconds since the Unix epoch, as is the next.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) is_error: bool,
}

impl Span {
    pub(super) fn begin(
        tracer: Arc<Tracer>,
        context: TraceContext,
        parent: Option<u64>,
        (name, kind): (Cow<'static, str>, Kind),
        (origin, start): (Origin, Instant),
    ) -> Self {
        let place = Parent(Some(Arc::new(Place { tracer, context, origin })));
        let is_recorded = context.is_sampled;
        let (attributes, is_error) = (Vec::new(), false);
        Self(Some(Box::new(Open { place, is_recorded, parent, name, kind, start, attributes, is_error })))
    }

    /// What its children hang on.
    pub fn as_parent(&self) -> Parent {
        self.0.as_ref().map(|open| open.place.clone()).unwrap_or_default()
    }

    /// Whether there is no span.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it will be sent, so that it is worth telling it something.
    pub fn is_recorded(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.is_recorded)
    }

    /// Whether it may hold what callers and models write.
    pub fn captures(&self) -> bool {
        let settings =
            |open: &Open| open.place.0.as_ref().is_some_and(|place| place.tracer.settings().capture);
        self.0.as_ref().is_some_and(|open| open.is_recorded && settings(open))
    }

    /// Sets an attribute that it does not have yet.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(open) = self.0.as_mut().filter(|open| open.is_recorded) {
            open.attributes.push((key, value.into()));
        }
    }

    /// The same, if there is a value.
    pub fn set_some(&mut self, key: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Names it.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(open) = self.0.as_mut().filter(|open| open.is_recorded) {
            open.name = name.into();
        }
    }

    /// Marks it as failed, for this reason: a code that has few values.
    pub fn fail(&mut self, code: impl Into<Value>) {
        self.set("error.type", code);
        if let Some(open) = &mut self.0 {
            open.is_error = true;
        }
    }

    /// The header that tells a server that is called about it.
    pub fn traceparent(&self) -> Option<HeaderValue> {
        self.0.as_ref()?.place.0.as_ref()?.context.header()
    }

    /// Ends it without sending it.
    pub fn discard(&mut self) {
        if let Some(open) = &mut self.0 {
            open.is_recorded = false;
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(open) = self.0.take().filter(|open| open.is_recorded) else { return };
        let Open { place, parent, name, kind, start, attributes, is_error, .. } = *open;
        let Parent(Some(place)) = place else { return };
        let (start, end) = (place.origin.unix_nanos(start), place.origin.unix_nanos(Instant::now()));
        let end = end.max(start);
        place.tracer.queue(Ended {
            context: place.context,
            parent,
            name,
            kind,
            start,
            end,
            attributes,
            is_error,
        });
    }
}
