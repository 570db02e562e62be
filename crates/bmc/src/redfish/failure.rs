//! What went wrong below HTTP, by its cause.

use std::error::Error;
use std::io;

use crate::{Class, Fault};

/// Of an error of the HTTP client. The order matters: a body that stalls is a timeout *and* a body that
/// cannot be read.
pub(super) fn of(error: &reqwest::Error) -> Fault {
    let cause = cause(error);
    if error.is_connect() {
        return never_connected(error, &cause);
    }
    if error.is_timeout() {
        return Fault::unknown_end(Class::TimedOut, "no whole answer in time");
    }
    let half = error.is_body() || error.is_decode();
    match (half, is_lost(error)) {
        (true, _) => Fault::unknown_end(Class::Contradiction, format!("half an answer: {cause}")),
        (false, true) => Fault::unknown_end(
            Class::Unreachable,
            format!("the connection was lost before the answer: {cause}"),
        ),
        (false, false) => Fault::unknown_end(
            Class::Contradiction,
            format!("it does not speak HTTP as it should: {cause}"),
        ),
    }
}

/// Nothing was sent. Whatever fails after TCP has connected is TLS.
fn never_connected(error: &reqwest::Error, cause: &str) -> Fault {
    if error.is_timeout() {
        let message = "no connection in time: nothing there, or a BMC that hangs";
        return Fault::harmless(Class::Unreachable, message);
    }
    let tls = chain(error).find(|cause| cause.is::<native_tls::Error>());
    match tls {
        Some(tls) => Fault::harmless(
            Class::Tls,
            format!("TLS failed: {}", said(&tls.to_string())),
        ),
        None => Fault::harmless(Class::Unreachable, format!("no connection: {cause}")),
    }
}

/// What OpenSSL says, without its place in the source: `error:0A000086:SSL routines:FUNCTION:certificate
/// verify failed:FILE:LINE: (self-signed certificate)`.
fn said(text: &str) -> String {
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

/// Whether the other side went away: mostly before it took the request in, but nobody knows.
fn is_lost(error: &reqwest::Error) -> bool {
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
    let io = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    let closed = chain(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    let (mut io, mut closed) = (io, closed);
    io.any(by_kind) || closed.any(hyper::Error::is_incomplete_message)
}

/// The last cause says it; those before it say where.
fn cause(error: &reqwest::Error) -> String {
    chain(error)
        .last()
        .map_or_else(String::new, ToString::to_string)
}

fn chain<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    let next = |error: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> {
        (*error).source()
    };
    std::iter::successors(Some(first), next)
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn openssl_is_quoted_without_its_source() {
        let place = "tls_post_process_server_certificate";
        let text = format!("error:0A000086:SSL routines:{place}:certificate verify failed:a.c:21:");
        assert_eq!(said(&text), "certificate verify failed");
        let verdict = format!("{text} (self-signed certificate)");
        assert_eq!(
            said(&verdict),
            "certificate verify failed (self-signed certificate)"
        );
        assert_eq!(said("unexpected EOF"), "unexpected EOF");
    }
}
