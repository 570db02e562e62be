//! The driver's way to a simulated BMC in the same process.

use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::redfish::Exchange;
use dogwatch_bmc::{Class, Fault};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};

use super::request::Reply;
use super::simulated::SimBmc;

/// A wire to one BMC. A client that gives up leaves no trace: what it asked for is done.
#[derive(Clone)]
pub struct Wire(SimBmc);

impl Wire {
    /// To this BMC.
    pub fn to(bmc: &SimBmc) -> Self {
        Self(bmc.clone())
    }
}

impl Exchange for Wire {
    fn ask(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Fault>> {
        async move {
            let asked = tokio::time::timeout(within, self.asked(request)).await;
            asked.unwrap_or_else(|_| {
                let message = format!("no answer within {within:?}");
                Err(Fault::unknown_end(Class::TimedOut, message))
            })
        }
        .boxed()
    }
}

impl Wire {
    async fn asked(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Fault> {
        match self.0.reply(request).await {
            Reply::Answer(answer) => Ok(answer),
            // Nothing is missing of no body.
            Reply::Half(answer) if answer.body().is_empty() => Ok(answer),
            Reply::Half(_) | Reply::Silence => std::future::pending().await,
            Reply::Broken => {
                let message = "the connection was closed without an answer";
                Err(Fault::unknown_end(Class::Unreachable, message))
            }
            Reply::NoConnection => Err(Fault::harmless(Class::Unreachable, "connection refused")),
        }
    }
}
