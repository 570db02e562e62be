//! One request to one BMC: what lies below the driver.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

use crate::Fault;

/// A mark of a request (among its extensions): nothing is asked for long after it. Who is short of
/// connections closes this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Last;

/// Carries requests to one BMC. The driver does not know whether a network lies between: the real one
/// is [`super::Http`]; a simulated BMC is asked in process, under virtual time.
pub trait Exchange: Send + Sync + 'static {
    /// Sends the request and brings the whole answer, whatever its status.
    ///
    /// The request's URI is a path with perhaps a query (`/redfish/v1/Systems/1`), never an origin: an
    /// exchange reaches one BMC and nobody else. It follows no redirect and repeats nothing.
    ///
    /// # Errors
    /// A connection that was never made is [`Fault::harmless`]; everything after that is
    /// [`Fault::unknown_end`], `within` passed ([`crate::Class::TimedOut`]) among it. The driver keeps
    /// `within` as well, so that one that waits for ever is allowed.
    fn ask(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Fault>>;
}
