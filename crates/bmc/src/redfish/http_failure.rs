//! Classifies failures below HTTP by their cause.

use std::error::Error;
use std::io;

use crate::{BmcFault, FaultClass};

/// Converts an error of the HTTP client. The order of the checks matters: a body that stalls is
/// both a timeout and an unreadable body.
pub(super) fn fault_from_error(error: &reqwest::Error) -> BmcFault {
    let cause = root_cause(error);
    if error.is_connect() {
        return connect_fault(error, &cause);
    }
    if error.is_timeout() {
        return BmcFault::with_unknown_effect(FaultClass::TimedOut, "no complete answer in time");
    }
    let half = error.is_body() || error.is_decode();
    match (half, is_connection_lost(error)) {
        (true, _) => BmcFault::with_unknown_effect(
            FaultClass::Contradiction,
            format!("incomplete answer: {cause}"),
        ),
        (false, true) => BmcFault::with_unknown_effect(
            FaultClass::Unreachable,
            format!("the connection was lost before the answer: {cause}"),
        ),
        (false, false) => BmcFault::with_unknown_effect(
            FaultClass::Contradiction,
            format!("the BMC's answer is not valid HTTP: {cause}"),
        ),
    }
}

/// Nothing was sent. Every failure after TCP has connected is a TLS failure.
fn connect_fault(error: &reqwest::Error, cause: &str) -> BmcFault {
    if error.is_timeout() {
        let message = "no connection in time: no BMC at this address, or it hangs";
        return BmcFault::without_effect(FaultClass::Unreachable, message);
    }
    tls_fault(error).unwrap_or_else(|| {
        BmcFault::without_effect(FaultClass::Unreachable, format!("no connection: {cause}"))
    })
}

#[cfg(feature = "tls")]
fn tls_fault(error: &reqwest::Error) -> Option<BmcFault> {
    let tls = error_chain(error).find(|cause| cause.is::<native_tls::Error>())?;
    let message = format!("TLS failed: {}", openssl_reason(&tls.to_string()));
    Some(BmcFault::without_effect(FaultClass::Tls, message))
}

#[cfg(not(feature = "tls"))]
fn tls_fault(_: &reqwest::Error) -> Option<BmcFault> {
    None
}

/// OpenSSL's reason without the place in its source: `error:0A000086:SSL
/// routines:FUNCTION:certificate verify failed:FILE:LINE: (self-signed certificate)`.
#[cfg(feature = "tls")]
fn openssl_reason(text: &str) -> String {
    let reason = text
        .starts_with("error:")
        .then(|| text.split(':').nth(4))
        .flatten();
    let Some(reason) = reason else {
        return text.to_owned();
    };
    let verdict = text.rfind(" (").map_or("", |at| &text[at..]);
    format!("{reason}{verdict}")
}

/// Whether the BMC closed the connection: usually before it accepted the request, but that is not
/// certain.
fn is_connection_lost(error: &reqwest::Error) -> bool {
    let by_kind = |error: &io::Error| {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        [
            BrokenPipe,
            ConnectionAborted,
            ConnectionReset,
            UnexpectedEof,
        ]
        .contains(&error.kind())
    };
    let io = error_chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    let closed = error_chain(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    let (mut io, mut closed) = (io, closed);
    io.any(by_kind) || closed.any(hyper::Error::is_incomplete_message)
}

/// The last error of the chain names the cause; the ones before it only say where.
fn root_cause(error: &reqwest::Error) -> String {
    error_chain(error)
        .last()
        .map_or_else(String::new, ToString::to_string)
}

fn error_chain<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    let next = |error: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> {
        (*error).source()
    };
    std::iter::successors(Some(first), next)
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::openssl_reason;

    #[test]
    fn openssl_is_quoted_without_its_source() {
        let place = "tls_post_process_server_certificate";
        let text = format!("error:0A000086:SSL routines:{place}:certificate verify failed:a.c:21:");
        assert_eq!(openssl_reason(&text), "certificate verify failed");
        let verdict = format!("{text} (self-signed certificate)");
        assert_eq!(
            openssl_reason(&verdict),
            "certificate verify failed (self-signed certificate)"
        );
        assert_eq!(openssl_reason("unexpected EOF"), "unexpected EOF");
    }
}
