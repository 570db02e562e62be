//! Tests the conversion of hosts and the patches.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod reading;
mod writing;

use dogwatch_core::power::HostSnapshot;
use serde_json::{Value, json};

use super::convert_host;

fn host(spec: &Value, status: &Value) -> HostSnapshot {
    let object = json!({
        "metadata": { "namespace": "site", "name": "h", "uid": "u", "resourceVersion": "7" },
        "spec": spec, "status": status,
    });
    convert_host(&serde_json::from_value(object).unwrap())
}
