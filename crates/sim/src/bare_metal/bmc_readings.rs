//! Records the power states that BMCs reported, as sent over the wire.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::BmcFault;
use dogwatch_bmc::redfish::RedfishTransport;
use dogwatch_kubesim::clock::{ClusterClock as _, TokioClock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use jiff::Timestamp;
use serde_json::Value;

use crate::bmc::{InProcessTransport, SimBmc};

/// One answer that contains a power state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedReading {
    /// True time of the answer.
    pub at: Timestamp,
    /// The value of `PowerState`, e.g. `Off`.
    pub power: String,
}

/// Every reading of every BMC. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct BmcReadings(Arc<Mutex<BTreeMap<String, Vec<ObservedReading>>>>);

impl BmcReadings {
    /// The readings of this BMC, the oldest first.
    pub fn readings_of_bmc(&self, bmc: &str) -> Vec<ObservedReading> {
        self.lock_readings().get(bmc).cloned().unwrap_or_default()
    }

    fn add_reading(&self, bmc: &str, said: ObservedReading) {
        self.lock_readings()
            .entry(bmc.to_owned())
            .or_default()
            .push(said);
    }

    fn lock_readings(&self) -> MutexGuard<'_, BTreeMap<String, Vec<ObservedReading>>> {
        self.0.lock().expect("nothing panics while it is read")
    }
}

/// A transport that records the readings.
pub(super) struct RecordingTransport {
    pub wire: InProcessTransport,
    pub bmc: SimBmc,
    pub readings: BmcReadings,
    pub clock: Arc<TokioClock>,
}

impl RedfishTransport for RecordingTransport {
    fn send_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        let is_reading =
            request.method() == Method::GET && request.uri().path() == self.bmc.system_path();
        async move {
            let answer = self.wire.send_request(request, within).await?;
            if let Some(power) = power_state_of_response(&answer).filter(|_| is_reading) {
                let at = self.clock.now();
                self.readings
                    .add_reading(self.bmc.name(), ObservedReading { at, power });
            }
            Ok(answer)
        }
        .boxed()
    }
}

fn power_state_of_response(answer: &Response<Bytes>) -> Option<String> {
    let body: Value = serde_json::from_slice(answer.body()).ok()?;
    Some(body["PowerState"].as_str()?.to_owned())
}
