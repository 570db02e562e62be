//! Compares resourceVersions of one object, the same in all of Dogwatch.
//!
//! Versions of one object are decimal numbers that grow (KEP-5504; promised since Kubernetes 1.35,
//! and always kept). If one of two versions is not a number, they cannot be ordered. An unreadable
//! version is then neither older nor kept out: what arrived last is used.

use std::cmp::Ordering;

/// Whether `version` is certainly older than `than`. Of versions that cannot be ordered, none is.
pub fn is_older_version(version: &str, than: &str) -> bool {
    order_versions(version, than) == Some(Ordering::Less)
}

/// Whether `version` shows something that `than` does not: it is newer, or it is another version
/// and the two cannot be ordered.
pub fn is_newer_version(version: &str, than: &str) -> bool {
    match order_versions(version, than) {
        Some(order) => order == Ordering::Greater,
        None => version != than,
    }
}

/// `None`: one of them is not a number.
fn order_versions(version: &str, than: &str) -> Option<Ordering> {
    let number = |version: &str| version.parse::<u128>().ok();
    Some(number(version)?.cmp(&number(than)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_an_unreadable_one_is_used() {
        for (version, than, older, newer) in [
            ("9", "10", true, false),
            ("10", "9", false, true),
            ("10", "10", false, false),
            ("18446744073709551616", "18446744073709551617", true, false),
            ("x", "10", false, true),
            ("10", "x", false, true),
            ("", "10", false, true),
            ("x", "x", false, false),
        ] {
            assert_eq!(is_older_version(version, than), older, "{version} {than}");
            assert_eq!(is_newer_version(version, than), newer, "{version} {than}");
        }
    }
}
