//! A choice as a flag value: a fixed list that shells can complete and error messages show.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A value parser for one of these, by its name.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    choices: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(choices.map(name)).try_map(move |given| {
        let chosen = choices.into_iter().find(|choice| name(*choice) == given);
        chosen.ok_or("it is none of the choices")
    })
}
