//! Objects in, hosts out; decisions in, patches out.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod reading;
mod writing;

use dogwatch_core::power::Host;
use serde_json::{Value, json};

use super::convert;

fn host(spec: &Value, status: &Value) -> Host {
    let object = json!({
        "metadata": { "namespace": "site", "name": "h", "uid": "u", "resourceVersion": "7" },
        "spec": spec, "status": status,
    });
    convert(&serde_json::from_value(object).unwrap())
}
