//! Credentials that `Debug` does not show.

use std::fmt;

/// The credentials of one device, from its Secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// `username` of the Secret, without surrounding white space.
    pub username: String,
    /// `password` of the Secret, without surrounding white space.
    pub password: Password,
    /// `ca.crt` of the Secret, PEM: the CA that must have issued the BMC's certificate.
    pub ca: Option<Vec<u8>>,
}

/// A password. `Debug` does not show it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The plain text, only for the code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Replaces a secret in a text that another program wrote. Control characters may stand within it:
/// whoever removes them afterwards must not put the secret together again.
pub(crate) fn redact_secret(text: &str, secret: &str) -> String {
    let secret: Vec<char> = secret.chars().filter(|c| !c.is_control()).collect();
    if secret.is_empty() {
        return text.to_owned();
    }
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = skip_secret(rest, &secret) {
            redacted.push_str("***");
            rest = after;
        } else {
            redacted.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    redacted
}

/// What follows the secret, if the text begins with it.
fn skip_secret<'a>(text: &'a str, secret: &[char]) -> Option<&'a str> {
    if !text.starts_with(*secret.first()?) {
        return None;
    }
    let mut rest = text.chars();
    let mut visible = rest.by_ref().filter(|c| !c.is_control());
    let is_secret = secret.iter().all(|c| visible.next() == Some(*c));
    is_secret.then_some(rest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_password() {
        let credentials = Credentials {
            username: "admin".into(),
            password: Password::new("sekret16"),
            ca: None,
        };
        assert!(!format!("{credentials:?}").contains("sekret16"));
    }

    #[test]
    fn a_secret_is_found_with_control_characters_in_it() {
        for (text, redacted) in [
            ("login with sekret16 failed", "login with *** failed"),
            ("sek\nret\u{1b}16", "***"),
            ("a\nsekret16\nb", "a\n***\nb"),
            ("sekresekret16", "sekre***"),
            ("sekret1", "sekret1"),
            ("", ""),
        ] {
            assert_eq!(redact_secret(text, "sekret16"), redacted, "{text:?}");
        }
        assert_eq!(redact_secret("as it is", ""), "as it is");
        assert_eq!(redact_secret("pass\tword", "pass\tword"), "***");
    }
}
