//! Hosts and Machines, and the annotations on them that others define. Source: specification §6.

use dogwatch_testbed::fixtures;
use serde_json::{Value, json};

use super::Who::{Breaker, Controller, Person};
use super::{Call, Expected, Stage, Who, annotated};
use crate::support::api::JSON;

const HOSTS: &str = "need verb update on baremetalhosts/reboot";
const MACHINES: &str = "needs verb update on machines/remediation";

/// A stage with one object of each kind; returns their paths.
async fn stage() -> (Stage, [String; 3]) {
    let stage = Stage::set().await;
    let mut paths = Vec::new();
    for (definition, object) in [
        (fixtures::metal3_hosts(), fixtures::metal3_host("a")),
        (
            fixtures::cluster_api_machines(),
            fixtures::cluster_api_machine("a"),
        ),
        (
            fixtures::openshift_machines(),
            fixtures::openshift_machine("a"),
        ),
    ] {
        let path = stage.install(&definition).await;
        stage.cluster.api.create(&path, &object).await;
        paths.push(format!("{path}/a"));
    }
    let paths = paths.try_into().expect("three kinds");
    (stage, paths)
}

#[tokio::test]
async fn a_host_is_rebooted_and_held_off_by_whoever_may_update_its_reboot() {
    let (stage, [host, ..]) = stage().await;
    let mut made = fixtures::metal3_host("b");
    made["metadata"]["annotations"] = json!({ "reboot.metal3.io/key": "" });
    let hosts = host.strip_suffix("/a").expect("its path").to_owned();
    stage
        .attempt(
            "made",
            Person,
            &Call::new("POST", hosts, JSON, made),
            Err(HOSTS),
        )
        .await;
    let (set, gone, other) = (json!(""), Value::Null, json!("x"));
    let (reboot, key) = ("reboot.metal3.io", "reboot.metal3.io/key");
    let table: [(Who, &str, &Value, Expected); 9] = [
        (Person, reboot, &set, Err(HOSTS)),
        (Person, key, &set, Err(HOSTS)),
        (Person, "reboot.metal3.iox", &set, Ok(())),
        (Breaker, reboot, &set, Ok(())),
        (Breaker, key, &set, Ok(())),
        (Person, key, &gone, Err(HOSTS)),
        (Person, reboot, &other, Err(HOSTS)),
        (Breaker, key, &gone, Ok(())),
        // The healer escalates a reboot.
        (Controller, reboot, &set, Ok(())),
    ];
    for (who, key, value, expected) in table {
        let call = annotated(&host, key, value);
        stage.attempt(key, who, &call, expected).await;
    }
}

#[tokio::test]
async fn a_machine_is_said_to_need_remediation_by_whoever_may_update_that() {
    let (stage, [_, capi, openshift]) = stage().await;
    let need = "host.metal3.io/external-remediation";
    let (set, gone) = (json!(""), Value::Null);
    let table: [(Who, &str, &str, &Value, Expected); 5] = [
        (Person, &capi, need, &set, Err(MACHINES)),
        (Breaker, &capi, need, &set, Ok(())),
        (Person, &capi, need, &gone, Err(MACHINES)),
        // The right covers one API group only.
        (Breaker, &openshift, need, &set, Err(MACHINES)),
        (Person, &openshift, "another", &set, Ok(())),
    ];
    for (who, machine, key, value, expected) in table {
        let call = annotated(machine, key, value);
        stage.attempt(machine, who, &call, expected).await;
    }
}
