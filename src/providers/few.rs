//! A list of which no more is read than any sensible one has.
//!
//! A few bytes of an event make a value of hundreds: without a bound, a provider could make the server take a hundred
//! times as much memory as it sends.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// At most `MOST` values; a longer list is none.
#[derive(Debug)]
pub(super) struct Few<T, const MOST: usize>(Vec<T>);

impl<T, const MOST: usize> Deref for Few<T, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reader::<T, MOST>(PhantomData)).map(Self)
    }
}

struct Reader<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Reader<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut few = Vec::new();
        while let Some(value) = list.next_element()? {
            if few.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            few.push(value);
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_list_is_none() {
        let read = |text: &str| serde_json::from_str::<Few<u8, 2>>(text).map(|few| few.to_vec()).ok();
        assert_eq!(read("[]"), Some(vec![]));
        assert_eq!(read("[1,2]"), Some(vec![1, 2]));
        assert_eq!(read("[1,2,3]"), None);
        assert_eq!(read("{}"), None);
    }
}
