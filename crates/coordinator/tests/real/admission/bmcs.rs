//! Which BMC a host has: a changed address would receive the old BMC's user and password. Source:
//! specification §6.

use dogwatch_api::bare_metal_host;
use dogwatch_testbed::fixtures;
use serde_json::{Value, json};

use super::Who::{Breaker, Controller, Person};
use super::{Call, Expected, Stage, Who};
use crate::support::api::{APPLY, JSON, JSON_PATCH, MERGE};

const BMCS: &str = "needs verb update on baremetalhosts/bmc";

/// Installs Dogwatch's own definition, which has `spec.power`; returns the host's path.
async fn stage() -> (Stage, String) {
    let stage = Stage::set().await;
    let hosts = stage.install(&bare_metal_host::host_crd()).await;
    let mut host = fixtures::metal3_host("bmc");
    host["spec"]["bmc"] =
        json!({ "address": "redfish://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "bmc" });
    stage.cluster.api.create(&hosts, &host).await;
    (stage, format!("{hosts}/bmc"))
}

fn bmc(path: &str, change: &Value) -> Call {
    Call::new("PATCH", path, MERGE, json!({ "spec": { "bmc": change } }))
}

#[tokio::test]
async fn a_password_is_not_sent_to_another_address_by_whoever_may_only_patch_hosts() {
    let (stage, path) = stage().await;
    let attackers = json!({ "address": "redfish+http://192.0.2.66/redfish/v1/Systems/1" });
    let forced = format!("{path}?fieldManager=somebody&force=true");
    let apply = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "spec": { "bmc": attackers } });
    let operation = json!([{ "op": "replace", "path": "/spec/bmc/address", "value": "redfish+http://192.0.2.66" }]);
    let pdu = json!({ "spec": { "power": { "levels": [{ "devices": [
        { "address": "fence+fence_apc://192.0.2.66?plug=1", "credentialsName": "bmc" }] }] } } });
    let mut whole = stage.cluster.api.get(&path).await.expect("it is there");
    whole["spec"]["bmc"]["address"] = attackers["address"].clone();
    let rows: [(&str, Call); 8] = [
        ("another address", bmc(&path, &attackers)),
        (
            "another Secret",
            bmc(&path, &json!({ "credentialsName": "other" })),
        ),
        (
            "any certificate",
            bmc(&path, &json!({ "disableCertificateVerification": true })),
        ),
        ("no BMC", bmc(&path, &Value::Null)),
        ("a forced apply", Call::new("PATCH", forced, APPLY, apply)),
        (
            "a JSON patch",
            Call::new("PATCH", path.as_str(), JSON_PATCH, operation),
        ),
        (
            "the whole object",
            Call::new("PUT", path.as_str(), JSON, whole),
        ),
        (
            "a power switch",
            Call::new("PATCH", path.as_str(), MERGE, pdu),
        ),
    ];
    for (what, call) in rows {
        for who in [Person, Controller] {
            let expected: Expected = match (who, call.verb) {
                // The controller has no right to replace a host.
                (Who::Controller, "PUT") => Err("cannot update resource"),
                _ => Err(BMCS),
            };
            stage.attempt(what, who, &call, expected).await;
        }
    }
}

#[tokio::test]
async fn what_is_no_other_bmc_is_let_through_and_whoever_enrols_hosts_may_name_one() {
    let (stage, path) = stage().await;
    let online = json!({ "spec": { "online": false } });
    let same =
        json!({ "address": "redfish://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "bmc" });
    let rows: [(&str, Who, Call); 6] = [
        (
            "on and off",
            Person,
            Call::new("PATCH", path.as_str(), MERGE, online),
        ),
        ("the same", Person, bmc(&path, &same)),
        // metal3's own client omits this default.
        (
            "the default, said",
            Person,
            bmc(&path, &json!({ "disableCertificateVerification": false })),
        ),
        (
            "the default, left out",
            Person,
            bmc(&path, &json!({ "disableCertificateVerification": null })),
        ),
        (
            "another address",
            Breaker,
            bmc(&path, &json!({ "address": "ipmi://192.0.2.2" })),
        ),
        ("no BMC", Breaker, bmc(&path, &Value::Null)),
    ];
    for (what, who, call) in rows {
        stage.attempt(what, who, &call, Ok(())).await;
    }
    // Adding a BMC to a host without one is a change as well.
    let one = bmc(
        &path,
        &json!({ "address": "ipmi://192.0.2.66", "credentialsName": "bmc" }),
    );
    stage.attempt("a first BMC", Person, &one, Err(BMCS)).await;
}
