//! Units, and which amounts of different ones are the same.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::number::Number;
use crate::verify::values::lexicon::rows;

/// A unit, by its row in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unit(u8);

struct Row {
    name: &'static str,
    dimension: &'static str,
    factor: Option<Number>,
    words: Vec<&'static str>,
}

struct Table {
    rows: Vec<Row>,
    /// Symbols are told by case.
    symbols: HashMap<&'static str, Unit, FixedState>,
    /// The lengths of the symbols that begin with a byte, as bits.
    lengths: [u32; 256],
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { rows: Vec::new(), symbols: HashMap::default(), lengths: [0; 256] };
    for row in rows(include_str!("../data/units.tsv")) {
        let [name, dimension, factor, symbols, words @ ..] = row.as_slice() else { continue };
        let unit = Unit(u8::try_from(table.rows.len()).unwrap_or(u8::MAX));
        for symbol in symbols.split('|') {
            let Some(first) = symbol.bytes().next() else { continue };
            table.symbols.insert(symbol, unit);
            table.lengths[usize::from(first)] |= 1 << symbol.len();
        }
        table.rows.push(Row { name, dimension, factor: Number::parse(factor), words: words.to_vec() });
    }
    table
});

/// All units with the fields of their words.
pub(in crate::verify::values) fn words() -> impl Iterator<Item = (Unit, Vec<&'static str>)> {
    (0_u8..).zip(&TABLE.rows).map(|(at, row)| (Unit(at), row.words.clone()))
}

/// The unit of the longest symbol with which a text begins, and the symbol's length.
pub(in crate::verify::values) fn symbol(text: &str) -> Option<(Unit, usize)> {
    let mut lengths = TABLE.lengths[usize::from(*text.as_bytes().first()?)];
    let mut longest_first = std::iter::from_fn(|| {
        let length = lengths.checked_ilog2()?;
        lengths ^= 1 << length;
        Some(length as usize)
    });
    longest_first.find_map(|length| Some((*TABLE.symbols.get(text.get(..length)?)?, length)))
}

/// The unit of which a text is a symbol.
pub(in crate::verify::values) fn whole_symbol(text: &str) -> Option<Unit> {
    let lengths = TABLE.lengths[usize::from(*text.as_bytes().first()?)];
    let may_be = u32::try_from(text.len()).is_ok_and(|length| lengths.unbounded_shr(length) & 1 == 1);
    may_be.then(|| TABLE.symbols.get(text).copied())?
}

impl Unit {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// Of what it is a unit.
    pub fn dimension(self) -> &'static str {
        self.row().map_or("", |row| row.dimension)
    }

    /// How it is written short.
    pub fn symbols(self) -> impl Iterator<Item = &'static str> {
        TABLE.symbols.iter().filter(move |(_, unit)| **unit == self).map(|(symbol, _)| *symbol)
    }

    /// The unit of that name.
    pub fn named(name: &str) -> Option<Self> {
        (0_u8..).zip(&TABLE.rows).find(|(_, row)| row.name == name).map(|(at, _)| Self(at))
    }

    /// The same amount in the base unit of its dimension; `None` where no other unit may count as the same.
    pub fn in_base(self, number: Number) -> Option<Number> {
        number.times(self.row()?.factor?)
    }

    /// Whether one may be written for the other: `$` for US dollars, `t` for tonnes or tons.
    pub fn may_be(self, other: Self) -> bool {
        const WIDER: [(&str, &str); 6] = [
            ("dollar", "usd"),
            ("ton", "metricton"),
            ("pound", "pounds"),
            ("sterling", "pounds"),
            ("degree", "celsius"),
            ("degree", "fahrenheit"),
        ];
        let (one, two) = (self.name(), other.name());
        self == other || WIDER.contains(&(one, two)) || WIDER.contains(&(two, one))
    }

    fn row(self) -> Option<&'static Row> {
        TABLE.rows.get(usize::from(self.0))
    }
}
