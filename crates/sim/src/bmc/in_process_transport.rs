//! The driver's transport to a simulated BMC in the same process.

use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::redfish::RedfishTransport;
use dogwatch_bmc::{BmcFault, FaultClass};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};

use super::request::BmcReply;
use super::sim_bmc::SimBmc;

/// A transport to one BMC. If the client gives up, the BMC has still carried out the request.
#[derive(Clone)]
pub struct InProcessTransport(SimBmc);

impl InProcessTransport {
    pub fn to_bmc(bmc: &SimBmc) -> Self {
        Self(bmc.clone())
    }
}

impl RedfishTransport for InProcessTransport {
    fn send_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        async move {
            let asked = tokio::time::timeout(within, self.ask_bmc(request)).await;
            asked.unwrap_or_else(|_| {
                let message = format!("no answer within {within:?}");
                Err(BmcFault::with_unknown_effect(FaultClass::TimedOut, message))
            })
        }
        .boxed()
    }
}

impl InProcessTransport {
    async fn ask_bmc(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BmcFault> {
        match self.0.answer_request(request).await {
            BmcReply::Answer(answer) => Ok(answer),
            // An empty body has no missing half.
            BmcReply::Half(answer) if answer.body().is_empty() => Ok(answer),
            BmcReply::Half(_) | BmcReply::Silence => std::future::pending().await,
            BmcReply::Broken => {
                let message = "the connection was closed without an answer";
                Err(BmcFault::with_unknown_effect(
                    FaultClass::Unreachable,
                    message,
                ))
            }
            BmcReply::NoConnection => Err(BmcFault::without_effect(
                FaultClass::Unreachable,
                "connection refused",
            )),
        }
    }
}
