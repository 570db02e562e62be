//! The transport below the driver: one request to one BMC.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

use crate::BmcFault;

/// Request extension: no other request follows soon, so a transport that must save connections
/// closes this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastRequest;

/// Carries requests to one BMC: the real one is [`super::HttpTransport`]; a simulated BMC is asked
/// in process, under virtual time.
pub trait RedfishTransport: Send + Sync + 'static {
    /// Sends the request and returns the complete answer, whatever its status.
    ///
    /// The request's URI is a path with an optional query (`/redfish/v1/Systems/1`), never an
    /// origin: a transport reaches only one BMC. It follows no redirect and repeats nothing.
    ///
    /// # Errors
    /// Use [`BmcFault::without_effect`] if no connection was made, and
    /// [`BmcFault::with_unknown_effect`] for everything later, including when `within` has passed
    /// ([`FaultClass::TimedOut`](crate::FaultClass::TimedOut)). The driver enforces `within` too,
    /// so a transport may wait forever.
    fn send_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>>;
}
