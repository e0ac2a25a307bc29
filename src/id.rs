//! Identifiers: a prefix that names the kind of thing and a `UUIDv7`, so that they sort by time of making.

use uuid::Uuid;

/// A new identifier such as `app_0193…` (prefix, underscore, 32 lowercase hexadecimal digits).
pub fn new(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

#[cfg(test)]
mod tests {
    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let ids: Vec<String> = (0..100).map(|_| super::new("req")).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[0].len(), "req_".len() + 32);
    }
}
