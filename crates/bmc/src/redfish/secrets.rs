//! What a BMC was told in confidence, kept out of what it is quoted with.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::{Credentials, Fault};

/// The most that a sentence on a fault takes.
const LONGEST: usize = 300;

/// The fault as it may leave the driver: a BMC may repeat what it was told, the password among it ("the
/// value 'PASSWORD' for the property Password is too short"), and it may say anything at any length.
/// Every fault goes through here, and nothing is shortened before, so that half a secret never stays.
pub(super) fn without_secrets<'a>(
    fault: Fault,
    secrets: impl IntoIterator<Item = &'a str>,
) -> Fault {
    let mut message = fault.message;
    for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
        message = message.replace(secret, "***");
    }
    let printable = message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c });
    let message = printable.take(LONGEST).collect::<String>();
    let message = message.trim().to_owned();
    Fault { message, ..fault }
}

/// The value of `Authorization` for basic authentication (RFC 7617).
pub(super) fn basic(credentials: &Credentials) -> String {
    let pair = format!("{}:{}", credentials.username, credentials.password.reveal());
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    #[test]
    fn a_secret_goes_whole_before_the_sentence_is_shortened() {
        let filler = "x".repeat(LONGEST - 4);
        let fault = Fault::harmless(Class::Refused, format!("{filler}sekret16 and\nmore"));
        let shown = without_secrets(fault, ["", "sekret16"]).message;
        assert_eq!(shown, format!("{filler}***"));
    }
}
