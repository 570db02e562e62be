//! What BMCs said of their hosts' power, as it went over the wire.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::Fault;
use dogwatch_bmc::redfish::Exchange;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use jiff::Timestamp;
use serde_json::Value;

use crate::bmc::{SimBmc, Wire};
use crate::clock::{Clock as _, TokioClock};

/// One answer with a power state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// When it came, by the true clock.
    pub at: Timestamp,
    /// What it said, e.g. `Off`.
    pub power: String,
}

/// Every answer of every BMC. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Readings(Arc<Mutex<BTreeMap<String, Vec<Said>>>>);

impl Readings {
    /// What this BMC said, the oldest first.
    pub fn of(&self, bmc: &str) -> Vec<Said> {
        self.lock().get(bmc).cloned().unwrap_or_default()
    }

    fn add(&self, bmc: &str, said: Said) {
        self.lock().entry(bmc.to_owned()).or_default().push(said);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Said>>> {
        self.0.lock().expect("nothing panics while it is read")
    }
}

/// A wire whose readings are written down.
pub(super) struct Overheard {
    pub wire: Wire,
    pub bmc: SimBmc,
    pub readings: Readings,
    pub clock: Arc<TokioClock>,
}

impl Exchange for Overheard {
    fn ask(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Fault>> {
        let is_reading = request.method() == Method::GET && request.uri().path() == self.bmc.path();
        async move {
            let answer = self.wire.ask(request, within).await?;
            if let Some(power) = power(&answer).filter(|_| is_reading) {
                let at = self.clock.now();
                self.readings.add(self.bmc.name(), Said { at, power });
            }
            Ok(answer)
        }
        .boxed()
    }
}

fn power(answer: &Response<Bytes>) -> Option<String> {
    let body: Value = serde_json::from_slice(answer.body()).ok()?;
    Some(body["PowerState"].as_str()?.to_owned())
}
