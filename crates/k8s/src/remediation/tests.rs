//! Tests the conversion of objects and the patches.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod machines;
mod only_here;
mod requests;
mod writes;

use kube::api::DynamicObject;
use serde_json::Value;

fn object(json: Value) -> DynamicObject {
    serde_json::from_value(json).unwrap()
}
