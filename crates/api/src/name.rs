//! Validated names, checked once, at the edge.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?} is not valid: {why}")]
pub struct BadName {
    /// The kind of name.
    pub what: &'static str,
    /// The text, at most 80 characters.
    pub text: String,
    /// The rule that the text breaks.
    pub why: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Checks the text.
            pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
                let text = text.into();
                match ($check)(text.as_str()) {
                    Ok(()) => Ok(Self(text)),
                    Err(why) => Err(BadName {
                        what: $what,
                        text: text.chars().take(80).collect(),
                        why,
                    }),
                }
            }

            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $type {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }
    };
}

name!(
    /// The name of a Node: a DNS subdomain (RFC 1123), at most 253 bytes.
    NodeName, "node name", dns_subdomain
);
name!(
    /// A group of nodes that share a lock and a budget: a DNS label, at most 63 bytes, because it
    /// is part of a Lease's name. Source: specification §2.2.
    GroupName, "group name", dns_label
);
name!(
    /// The kernel's boot id: a UUID as `/proc/sys/kernel/random/boot_id` shows it. Only equality
    /// means anything.
    BootId, "boot id", boot_id
);
name!(
    /// One coordinator process, or one lock request, that relies on a lock.
    RunId, "run id", run_id
);

impl GroupName {
    /// The group of every node that no policy and no role puts elsewhere.
    pub fn default_group() -> Self {
        Self("default".into())
    }

    /// The group of control-plane nodes.
    pub fn control_plane_group() -> Self {
        Self("control-plane".into())
    }
}

/// Whether this can be the name of an object. Other texts never become part of a request's path.
pub fn is_dns_name(text: &str) -> bool {
    dns_subdomain(text).is_ok()
}

fn dns_subdomain(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > 253 {
        return Err("it is longer than 253 bytes");
    }
    if text.split('.').all(has_label_characters) {
        Ok(())
    } else {
        Err(
            "a DNS name has lower-case letters, digits, '-' and '.', and starts and ends with a letter or digit",
        )
    }
}

fn dns_label(text: &str) -> Result<(), &'static str> {
    if text.len() > 63 {
        return Err("it is longer than 63 bytes");
    }
    if has_label_characters(text) {
        Ok(())
    } else {
        Err(
            "a DNS label has lower-case letters, digits and '-', and starts and ends with a letter or digit",
        )
    }
}

fn has_label_characters(label: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !label.is_empty()
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn boot_id(text: &str) -> Result<(), &'static str> {
    let visible = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    match text.len() {
        0 => Err("it is empty"),
        1..=64 if text.bytes().all(visible) => Ok(()),
        1..=64 => Err("a boot id has letters, digits and '-' only"),
        65.. => Err("it is longer than 64 bytes"),
    }
}

fn run_id(text: &str) -> Result<(), &'static str> {
    let visible = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'/' | b'.');
    if text.is_empty() || text.len() > 128 {
        return Err("it must have 1 to 128 bytes");
    }
    if text.bytes().all(visible) {
        Ok(())
    } else {
        Err("a run id has letters, digits, '-', '/' and '.' only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_name_is_a_dns_subdomain() {
        for good in ["n1", "ip-10-0-0-1.eu.internal", "a.b"] {
            assert!(NodeName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "N1", "-a", "a-", "a..b", "a_b", &"a".repeat(254)] {
            assert!(NodeName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_group_fits_in_a_lease_name() {
        assert!(GroupName::new("workers-1").is_ok());
        assert!(GroupName::new("a.b").is_err());
        assert!(GroupName::new("a".repeat(64)).is_err());
    }

    #[test]
    fn a_boot_id_is_one_line_of_uuid() {
        assert!(BootId::new("5c8a24a4-2a4b-4a0c-8a51-8e0d3e2f0d6e").is_ok());
        assert!(BootId::new("").is_err());
        assert!(BootId::new("two\nlines").is_err());
    }
}
