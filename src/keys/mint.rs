//! The text of a key: how it is generated, and how its format and checksum are verified offline.

use sha2::{Digest, Sha256};

use crate::api::Service;
use crate::secret::SecretString;
use crate::storage::KeyHash;

/// All ASCII letters and digits; the format checks rely on that.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARS: usize = 26;
/// 62⁶ is more than 2³²: every CRC-32 fits.
const CHECK_CHARS: usize = 6;
const LAST_CHARS: usize = 4;

/// A newly generated key.
pub struct Minted {
    /// The full text, to be shown once.
    pub key: SecretString,
    /// The hash, which is what gets stored.
    pub hash: KeyHash,
    /// Its last four characters.
    pub last4: String,
}

/// Generates a key.
pub fn mint(service: Service) -> Result<Minted, getrandom::Error> {
    let prefix = format!("mk_{service}_");
    // With a sufficient capacity the text never moves, and leaves no copy of itself in freed memory.
    let mut text = String::with_capacity(prefix.len() + RANDOM_CHARS + CHECK_CHARS);
    text.push_str(&prefix);
    push_random_chars(&mut text, RANDOM_CHARS)?;
    let check = check_chars(&text);
    text.extend(check.map(char::from));
    let last4 = text[text.len() - LAST_CHARS..].to_owned();
    Ok(Minted { hash: hash(&text), last4, key: SecretString::from(text) })
}

/// The service of a well-formed key with correct check digits; `None` for anything else.
pub fn service_of(key: &str) -> Option<Service> {
    let named = key.strip_prefix("mk_")?;
    let (service, secret) = named.split_once('_')?;
    let service: Service = service.parse().ok()?;
    let well_formed =
        secret.len() == RANDOM_CHARS + CHECK_CHARS && secret.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !well_formed {
        return None;
    }
    let (checked, check) = key.split_at(key.len() - CHECK_CHARS);
    (check.as_bytes() == check_chars(checked)).then_some(service)
}

/// Whether a text has what looks like a key anywhere in it, whatever its check digits.
pub fn contains_key(text: &str) -> bool {
    text.match_indices("mk_").any(|(at, prefix)| {
        let Some((service, secret)) = text[at + prefix.len()..].split_once('_') else { return false };
        let length = secret.bytes().take_while(u8::is_ascii_alphanumeric).count();
        service.parse::<Service>().is_ok() && length >= RANDOM_CHARS + CHECK_CHARS
    })
}

/// A random text of this many base62 characters, each worth 5.95 bits.
pub(super) fn random_text(chars: usize) -> Result<SecretString, getrandom::Error> {
    let mut text = String::with_capacity(chars);
    push_random_chars(&mut text, chars)?;
    Ok(SecretString::from(text))
}

/// Whether a text has the format of [`random_text`].
pub(super) fn is_random_text(text: &str, chars: usize) -> bool {
    text.len() == chars && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The hash of a key, which is what gets stored.
pub(super) fn hash(key: &str) -> KeyHash {
    Sha256::digest(key.as_bytes()).into()
}

/// Uses rejection sampling: of the 256 values of a byte, the last 8 would make the first 8 characters likelier.
fn push_random_chars(text: &mut String, count: usize) -> Result<(), getrandom::Error> {
    const FAIR_VALUES: u8 = 4 * 62;
    let mut wanted = count;
    let mut drawn = [0_u8; 2 * RANDOM_CHARS];
    while wanted > 0 {
        getrandom::fill(&mut drawn)?;
        for byte in drawn.into_iter().filter(|byte| *byte < FAIR_VALUES).take(wanted) {
            text.push(char::from(ALPHABET[usize::from(byte % 62)]));
            wanted -= 1;
        }
    }
    Ok(())
}

/// The CRC-32 of `text` in base62, most significant digit first.
fn check_chars(text: &str) -> [u8; CHECK_CHARS] {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut chars = [b'0'; CHECK_CHARS];
    for char in chars.iter_mut().rev() {
        *char = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    chars
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::ExposeSecret;

    #[test]
    fn keys_have_the_documented_form() {
        for service in Service::ALL {
            let minted = mint(service).unwrap();
            let text = minted.key.expose_secret();
            let secret = text.strip_prefix(&format!("mk_{service}_")).unwrap();
            assert_eq!(secret.len(), 32);
            assert!(secret.chars().all(|char| char.is_ascii_alphanumeric()));
            assert!(text.ends_with(&minted.last4));
            assert_eq!(minted.last4.len(), 4);
            assert_eq!(service_of(text), Some(service));
            assert_eq!(minted.hash, hash(text));
        }
    }

    #[test]
    fn the_check_digits_are_those_of_the_contract() {
        // Computed with another implementation (zlib): CRC-32 (IEEE) of the text, in base62.
        let text = "mk_verify_00000000000000000000000000";
        let check = String::from_utf8(check_chars(text).to_vec()).unwrap();
        assert_eq!(check, "4ANCeP");
        assert_eq!(service_of(&format!("{text}{check}")), Some(Service::Verify));
    }

    #[test]
    fn every_character_is_about_equally_likely() {
        let mut seen = [0_u32; 128];
        for _ in 0..2000 {
            let minted = mint(Service::Verify).unwrap();
            let secret = &minted.key.expose_secret()["mk_verify_".len()..][..RANDOM_CHARS];
            secret.bytes().for_each(|byte| seen[usize::from(byte)] += 1);
        }
        // 52,000 draws: 839 of each expected, with a standard deviation of 29. Without rejection the first eight
        // would come to 1,016.
        for byte in ALPHABET {
            let count = seen[usize::from(*byte)];
            assert!((640..990).contains(&count), "{} came {count} times", char::from(*byte));
        }
    }

    #[test]
    fn invalid_keys_are_refused() {
        let key = mint(Service::Inference).unwrap();
        let text = key.key.expose_secret();
        let for_another = text.replace("inference", "console");
        let wrong =
            ["", "mk_", "mk_verify_", "mk_nothing_x", "sk-abc", &text[..text.len() - 1], &for_another];
        for wrong in wrong {
            assert_eq!(service_of(wrong), None, "{wrong}");
        }
        assert_eq!(service_of(&format!("{text}0")), None);
        assert_eq!(service_of(&format!(" {text}")), None);
        assert_eq!(service_of(&text.to_uppercase()), None);
    }

    #[test]
    fn a_key_is_found_inside_other_text() {
        let minted = mint(Service::Inference).unwrap();
        let key = minted.key.expose_secret();
        for with_key in
            [key.to_owned(), format!("mk_x-{key}.1"), format!("a_mk_verify_mk_{key}"), format!("{key}0")]
        {
            assert!(contains_key(&with_key), "{with_key}");
        }
        for without in
            ["", "mk_", "mk_verify_", "mk_verify_short", "req_mk_other_0123456789012345678901234567890123"]
        {
            assert!(!contains_key(without), "{without}");
        }
        assert!(!contains_key(&key[..key.len() - 1]));
    }

    proptest! {
        #[test]
        fn no_single_typo_and_no_swap_passes(at in 0_usize..42, other in "[0-9A-Za-z]") {
            let minted = mint(Service::Verify).unwrap();
            let text = minted.key.expose_secret();
            let mut typo = text.to_owned();
            typo.replace_range(at..=at, &other);
            prop_assert_eq!(service_of(&typo).is_some(), typo == text);

            let mut swapped = text.as_bytes().to_vec();
            swapped.swap(at, (at + 1) % 42);
            let swapped = String::from_utf8(swapped).unwrap();
            prop_assert_eq!(service_of(&swapped).is_some(), swapped == text);
        }

        #[test]
        fn any_text_is_handled(text in "\\PC*", tail in "\\PC{0,40}") {
            prop_assert_eq!(service_of(&text), None);
            prop_assert_eq!(service_of(&format!("mk_verify_{tail}")), None);
        }
    }
}
