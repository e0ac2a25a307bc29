//! Decimal numbers, exact.

use std::cmp::Ordering;

/// The most digits that are read: any more are an identifier, not an amount.
const MAX_DIGITS: usize = 30;

/// `mantissa · 10^exponent`, in the one form whose mantissa does not end in 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    mantissa: i128,
    exponent: i32,
}

impl Number {
    /// A number of that many powers of ten. Beyond a thousand of them, as large or small as such.
    pub fn new(mantissa: i128, exponent: i32) -> Self {
        if mantissa == 0 {
            return Self { mantissa: 0, exponent: 0 };
        }
        let (mut mantissa, mut exponent) = (mantissa, exponent.clamp(-1000, 1000));
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        Self { mantissa, exponent }
    }

    /// The number that a row of ASCII digits with at most one point writes; `None` if it is none or too long.
    pub fn parse(digits: &str) -> Option<Self> {
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let length = whole.len() + fraction.len();
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if length == 0 || length > MAX_DIGITS || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let mantissa =
            whole.bytes().chain(fraction.bytes()).fold(0, |sum, byte| sum * 10 + i128::from(byte - b'0'));
        Some(Self::new(mantissa, -i32::try_from(fraction.len()).ok()?))
    }

    /// The whole number, if it is one that is not too large.
    pub fn whole(self) -> Option<i64> {
        if !(0..=18).contains(&self.exponent) {
            return None;
        }
        let power = 10_i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        i64::try_from(self.mantissa.checked_mul(power)?).ok()
    }

    /// The product, `None` beyond what can be told exactly.
    pub fn times(self, other: Self) -> Option<Self> {
        Some(Self::new(
            self.mantissa.checked_mul(other.mantissa)?,
            self.exponent.checked_add(other.exponent)?,
        ))
    }

    /// The sum, `None` beyond what can be told exactly.
    pub fn plus(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let (one, two) = (self.scaled(exponent)?, other.scaled(exponent)?);
        Some(Self::new(one.checked_add(two)?, exponent))
    }

    /// With the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { mantissa: -self.mantissa, ..self }
    }

    /// The number as a floating one, for what needs no exactness.
    #[expect(clippy::cast_precision_loss, reason = "said")]
    pub fn approximate(self) -> f64 {
        self.mantissa as f64 * 10_f64.powi(self.exponent)
    }

    /// The mantissa at a lower exponent.
    fn scaled(self, exponent: i32) -> Option<i128> {
        let by = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.mantissa.checked_mul(10_i128.checked_pow(by)?)
    }
}

impl From<i64> for Number {
    fn from(whole: i64) -> Self {
        Self::new(i128::from(whole), 0)
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let exponent = self.exponent.min(other.exponent);
        match (self.scaled(exponent), other.scaled(exponent)) {
            (Some(one), Some(two)) => one.cmp(&two),
            // So far apart that no rounding can turn them around.
            _ => self.approximate().total_cmp(&other.approximate()),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_exact() {
        let number = |digits: &str| Number::parse(digits).unwrap();
        assert_eq!(number("1.50"), number("1.5"));
        assert_eq!(number("1500"), number("1.5").times(Number::new(1, 3)).unwrap());
        assert_eq!(number("0.1").plus(number("0.2")).unwrap(), number("0.3"));
        assert!(number("9.9") < number("10") && number("2.1").negated() < number("0.1"));
        assert_eq!(number("8849").whole(), Some(8849));
        assert_eq!(number("8.5").whole(), None);
        for none in ["", ".", "1.2.3", "x", "1234567890123456789012345678901"] {
            assert_eq!(Number::parse(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn numbers_have_an_order(one in (any::<i64>(), -40..40_i32), two in (any::<i64>(), -40..40_i32)) {
            let number = |(mantissa, exponent): (i64, i32)| Number::new(i128::from(mantissa), exponent);
            let (one, two) = (number(one), number(two));
            prop_assert_eq!(one.cmp(&two), two.cmp(&one).reverse());
            prop_assert_eq!(one == two, one.cmp(&two) == Ordering::Equal);
        }
    }
}
