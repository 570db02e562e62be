//! The address and user of an IPMI BMC, and the limits that IPMI sets.

use dogwatch_core::power::{BmcFault, FaultClass};

use crate::Credentials;

/// RMCP+ pads a password to 20 bytes; ipmitool truncates longer ones.
const LONGEST_PASSWORD: usize = 20;
const LONGEST_USERNAME: usize = 16;
/// Privilege levels that may switch the power (IPMI 2.0 appendix G).
const SWITCHING_PRIVILEGES: [&str; 3] = ["OPERATOR", "ADMINISTRATOR", "OEM"];
const READ_ONLY_PRIVILEGES: [&str; 2] = ["CALLBACK", "USER"];

/// Where the BMC is and how to speak to it; the fields of `BmcAddress::Ipmi`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpmiTarget {
    pub host: String,
    pub port: u16,
    /// `USER`, `OPERATOR`, `ADMINISTRATOR`, …
    pub privilege: String,
    /// `None`: try 17, then 3.
    pub cipher_suite: Option<u8>,
}

impl IpmiTarget {
    pub(super) fn check_privilege(&self) -> Result<(), BmcFault> {
        let level = self.privilege.as_str();
        if READ_ONLY_PRIVILEGES.contains(&level) || SWITCHING_PRIVILEGES.contains(&level) {
            return Ok(());
        }
        let message = "IPMI's privilege levels are CALLBACK, USER, OPERATOR, ADMINISTRATOR and OEM";
        Err(BmcFault::without_effect(FaultClass::Unsupported, message))
    }

    pub(super) fn check_switch_privilege(&self) -> Result<(), BmcFault> {
        let level = self.privilege.as_str();
        if READ_ONLY_PRIVILEGES.contains(&level) {
            let message = format!(
                "privilege level {level} may not switch the power: write ?privilegelevel=OPERATOR into the address"
            );
            return Err(BmcFault::without_effect(FaultClass::Unsupported, message));
        }
        Ok(())
    }
}

/// ipmitool would truncate a longer password, or one with a tab, and the BMC would refuse it as
/// wrong.
pub(super) fn check_credentials(credentials: &Credentials) -> Result<(), BmcFault> {
    let password = credentials.password.reveal();
    let wrong = |message: &str| {
        Err(BmcFault::without_effect(
            FaultClass::WrongCredentials,
            message,
        ))
    };
    if credentials.username.len() > LONGEST_USERNAME {
        return wrong("an IPMI user name has at most 16 bytes");
    }
    if password.len() > LONGEST_PASSWORD {
        return wrong("an IPMI password has at most 20 bytes");
    }
    if password.is_empty() || password.chars().any(char::is_control) {
        return wrong("the password is empty or has a control character");
    }
    if credentials.username.chars().any(char::is_control) {
        return wrong("the user name has a control character");
    }
    Ok(())
}
