//! Percent-encoding, and brackets. No text that is wrong is repeated: it may hold a password.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::BadAddress;

pub(super) fn bad<T>(what: &str) -> Result<T, BadAddress> {
    Err(BadAddress(what.to_owned()))
}

/// A host as it stands in a URL.
pub(super) fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// Without percent-encoding; `None` where that is broken, or hides what is no text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        plain.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(plain).ok()
}

/// `a=b&c=d`, decoded; `+` is a blank, as in every query.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>, BadAddress> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let plain = |text: &str| decoded(&text.replace('+', " "));
            plain(name).zip(plain(value))
        })
        .collect::<Option<_>>()
        .map_or_else(|| bad("what follows '?' is not percent-encoded text"), Ok)
}

/// The reverse: empty, or `?a=b&c=d`.
pub(super) fn query(options: &BTreeMap<String, String>) -> String {
    let mut query = String::new();
    for (name, value) in options {
        query.push(if query.is_empty() { '?' } else { '&' });
        encode(name, &mut query);
        query.push('=');
        encode(value, &mut query);
    }
    query
}

fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:,".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _: std::fmt::Result = write!(into, "%{byte:02X}");
        }
    }
}
