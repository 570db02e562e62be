//! Removes credentials from messages that quote a BMC.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use dogwatch_core::printable::printable_text;

use crate::secret::redact_secret;
use crate::{BmcFault, Credentials};

/// The longest message of a fault, in characters.
const FAULT_MESSAGE_LIMIT: usize = 300;

/// Makes a fault fit to leave the driver. A BMC may repeat what it received, including the password
/// ("the value 'PASSWORD' for the property Password is too short"), and its answer may have any
/// length. Every fault passes through here, and no message is shortened before, so that no part of
/// a secret remains.
pub(super) fn redact_secrets<'a>(
    fault: BmcFault,
    secrets: impl IntoIterator<Item = &'a str>,
) -> BmcFault {
    let mut message = fault.message;
    for secret in secrets {
        message = redact_secret(&message, secret);
    }
    let short: String = message.chars().take(FAULT_MESSAGE_LIMIT).collect();
    let message = printable_text(&short).trim().to_owned();
    BmcFault { message, ..fault }
}

/// The value of `Authorization` for basic authentication (RFC 7617).
pub(super) fn basic_auth_header(credentials: &Credentials) -> String {
    let pair = format!("{}:{}", credentials.username, credentials.password.reveal());
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FaultClass;

    #[test]
    fn a_secret_goes_whole_before_the_sentence_is_shortened() {
        let filler = "x".repeat(FAULT_MESSAGE_LIMIT - 4);
        let fault =
            BmcFault::without_effect(FaultClass::Refused, format!("{filler}sekret16 and\nmore"));
        let shown = redact_secrets(fault, ["", "sekret16"]).message;
        assert_eq!(shown, format!("{filler}***"));
    }

    #[test]
    fn a_control_character_inside_a_secret_does_not_hide_it() {
        let fault = BmcFault::without_effect(FaultClass::Refused, "value sek\r\nret16 is short");
        let shown = redact_secrets(fault, ["sekret16"]).message;
        assert_eq!(shown, "value *** is short");
    }
}
