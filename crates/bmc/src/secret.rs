//! What must not be seen.

use std::fmt;

/// User name and password of one device, and what else its Secret holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// `username`, without white space around it.
    pub username: String,
    /// `password`, without white space around it.
    pub password: Password,
    /// `ca.crt`, PEM: whom its certificate must be from.
    pub ca: Option<Vec<u8>>,
}

/// A password. `Debug` does not show it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text: for the one line that sends it.
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
