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
}
