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
    let is_tls = chain(error).any(<dyn Error>::is::<native_tls::Error>);
    if is_tls {
        Fault::harmless(Class::Tls, format!("TLS failed: {cause}"))
    } else {
        Fault::harmless(Class::Unreachable, format!("no connection: {cause}"))
    }
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
