//! Percent-encoding and brackets. Errors never repeat a wrong text: it may hold a password.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::BadBmcAddress;

pub(super) fn bad_address<T>(what: &str) -> Result<T, BadBmcAddress> {
    Err(BadBmcAddress(what.to_owned()))
}

pub(super) fn bracket_host(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// `None` if the encoding is broken or does not decode to UTF-8 text.
pub(super) fn percent_decode(text: &str) -> Option<String> {
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

/// Decodes `a=b&c=d`. `+` means a space, as in every query.
pub(super) fn parse_query(query: &str) -> Result<Vec<(String, String)>, BadBmcAddress> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let plain = |text: &str| percent_decode(&text.replace('+', " "));
            plain(name).zip(plain(value))
        })
        .collect::<Option<_>>()
        .map_or_else(
            || bad_address("the text after '?' is not percent-encoded"),
            Ok,
        )
}

/// The reverse of [`parse_query`]: empty, or `?a=b&c=d`.
pub(super) fn format_query(options: &BTreeMap<String, String>) -> String {
    let mut query = String::new();
    for (name, value) in options {
        query.push(if query.is_empty() { '?' } else { '&' });
        percent_encode(name, &mut query);
        query.push('=');
        percent_encode(value, &mut query);
    }
    query
}

fn percent_encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:,".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _: std::fmt::Result = write!(into, "%{byte:02X}");
        }
    }
}
