//! Whom to speak to as whom: what IPMI can carry.

use dogwatch_core::power::{Class, Fault};

use crate::Credentials;

/// RMCP+ pads a password to 20 bytes; ipmitool cuts what is longer.
const LONGEST_PASSWORD: usize = 20;
const LONGEST_USERNAME: usize = 16;
/// Whoever may switch the power (IPMI 2.0 appendix G).
const MAY_SWITCH: [&str; 3] = ["OPERATOR", "ADMINISTRATOR", "OEM"];
const MAY_READ: [&str; 2] = ["CALLBACK", "USER"];

/// Where it is and how it is spoken to; the fields of `Address::Ipmi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or IP address.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// `USER`, `OPERATOR`, `ADMINISTRATOR`, …
    pub privilege: String,
    /// `None`: 17, then 3.
    pub cipher_suite: Option<u8>,
}

impl Target {
    pub(super) fn check_privilege(&self) -> Result<(), Fault> {
        let level = self.privilege.as_str();
        if MAY_READ.contains(&level) || MAY_SWITCH.contains(&level) {
            return Ok(());
        }
        let message = "IPMI's privilege levels are CALLBACK, USER, OPERATOR, ADMINISTRATOR and OEM";
        Err(Fault::harmless(Class::Unsupported, message))
    }

    pub(super) fn check_may_switch(&self) -> Result<(), Fault> {
        let level = self.privilege.as_str();
        if MAY_READ.contains(&level) {
            let message = format!(
                "privilege level {level} may not switch the power: write ?privilegelevel=OPERATOR into the address"
            );
            return Err(Fault::harmless(Class::Unsupported, message));
        }
        Ok(())
    }
}

/// ipmitool would cut a longer password, and one with a tab, and say that it is wrong.
pub(super) fn check_credentials(credentials: &Credentials) -> Result<(), Fault> {
    let password = credentials.password.reveal();
    let wrong = |message: &str| Err(Fault::harmless(Class::WrongCredentials, message));
    if credentials.username.len() > LONGEST_USERNAME {
        return wrong("IPMI knows no user name of more than 16 bytes");
    }
    if password.len() > LONGEST_PASSWORD {
        return wrong("IPMI knows no password of more than 20 bytes");
    }
    if password.is_empty() || password.chars().any(char::is_control) {
        return wrong("the password is empty or has a control character");
    }
    if credentials.username.chars().any(char::is_control) {
        return wrong("the user name has a control character");
    }
    Ok(())
}
