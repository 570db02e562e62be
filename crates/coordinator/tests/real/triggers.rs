//! What triggers a reboot, and what does not. Source: specification §2.1.

use std::fs;

use serde_json::{Value, json};

use crate::support::read::record;
use crate::support::{Cluster, Setting};

const REQUEST: &str = "dogwatch.dev/reboot-requested";

fn annotated(text: &Value) -> Value {
    json!({ "metadata": { "annotations": { REQUEST: text } } })
}

fn request(request: &Value) -> Value {
    annotated(&json!(request.to_string()))
}

#[tokio::test]
async fn a_sentinel_that_survives_the_boot_causes_no_other_one_until_it_is_touched_anew() {
    let cluster = Cluster::new().await;
    let setting = Setting {
        sentinel_survives: true,
        ..Setting::default()
    };
    let machine = cluster.machine(setting).await;
    machine.touch("new kernel");
    machine.until_back().await;
    machine
        .until_condition("SentinelSurvivedReboot", "True", "SentinelSurvivedReboot")
        .await;
    machine
        .until_event("SentinelSurvivedReboot", &["run/reboot-needed"])
        .await;
    // A later fact is processed, so the sentinel was too, and it had no effect.
    machine.patch_node(&annotated(&json!("{"))).await;
    machine
        .until_condition("RebootTriggerUnknown", "True", "TriggerUnknown")
        .await;
    machine.patch_node(&annotated(&Value::Null)).await;
    machine
        .until_condition("RebootTriggerUnknown", "False", "NoRebootWanted")
        .await;
    assert_eq!(
        (machine.commands(), record(&machine.node().await)),
        (1, None)
    );

    machine.touch("another kernel");
    machine.until_commands(2).await;
    let last = machine.until_back().await;
    assert_eq!(last["trigger"]["reason"], "another kernel");
    machine.remove_sentinel();
    machine
        .until_condition("SentinelSurvivedReboot", "False", "NoRebootWanted")
        .await;
    assert_eq!(machine.commands(), 2);
}

#[tokio::test]
async fn a_request_on_the_node_is_served_once_and_removed() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    machine
        .patch_node(&request(
            &json!({ "reason": "firmware", "requester": "alice" }),
        ))
        .await;
    let last = machine.until_back().await;
    assert_eq!(
        (&last["trigger"]["source"], &last["trigger"]["reason"]),
        (&json!("request"), &json!("firmware"))
    );
    assert_eq!(last["trigger"]["requester"], "alice");
    assert!(machine.node().await["metadata"]["annotations"][REQUEST].is_null());
    assert_eq!(machine.commands(), 1);
}

#[tokio::test]
async fn a_request_waits_for_its_time() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    machine
        .patch_node(&request(
            &json!({ "reason": "later", "requester": "alice", "notBefore": at.to_string() }),
        ))
        .await;
    let last = machine.until_back().await;
    let planned: jiff::Timestamp = last["planned"]
        .as_str()
        .and_then(|time| time.parse().ok())
        .expect("a time");
    assert!(planned >= at, "{planned} >= {at}");
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_reported_and_left_alone() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    let bad = json!("reboot, please");
    machine.patch_node(&annotated(&bad)).await;
    machine
        .until_condition("RebootTriggerUnknown", "True", "TriggerUnknown")
        .await;
    machine.until_event("RequestUnreadable", &[REQUEST]).await;
    let node = machine.node().await;
    assert_eq!(node["metadata"]["annotations"][REQUEST], bad);
    assert!(record(&node).is_none() && machine.commands() == 0);
}

#[tokio::test]
async fn a_sentinels_folder_may_appear_later() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::flags(["--sentinel={host}/later/on/reboot-needed"]))
        .await;
    machine.log().until(&["started"]).await;
    fs::create_dir_all(machine.file("later/on")).expect("a folder");
    fs::write(machine.file("later/on/reboot-needed"), "new kernel").expect("a file");
    let last = machine.until_back().await;
    assert_eq!(last["trigger"]["reason"], "new kernel");
}

#[tokio::test]
async fn a_sentinel_that_cannot_be_read_is_unknown_and_said() {
    let cluster = Cluster::new().await;
    // Even root cannot look into a folder that is a file.
    let machine = cluster
        .machine_without_coordinator(Setting::flags(["--sentinel={host}/etc/reboot-needed"]))
        .await;
    fs::write(machine.file("etc"), "").expect("a file");
    machine.start_coordinator().await;
    let message = machine
        .until_condition("RebootTriggerUnknown", "True", "TriggerUnknown")
        .await;
    assert!(
        message.contains("etc is not a folder") && message.contains("--sentinel"),
        "{message}"
    );
    machine
        .until_event("TriggerUnknown", &["etc is not a folder"])
        .await;
    assert_eq!(machine.commands(), 0);

    fs::remove_file(machine.file("etc")).expect("it is there");
    machine
        .until_condition("RebootTriggerUnknown", "False", "NoRebootWanted")
        .await;
}

#[tokio::test]
async fn a_sentinel_command_that_says_yes_asks_for_a_reboot() {
    let cluster = Cluster::new().await;
    let flags = [
        "--sentinel-command=sh -c 'test -e {host}/run/reboot-needed && echo by command'",
        "--sentinel={host}/none",
        "--sentinel-interval=500ms",
    ];
    let machine = cluster.machine(Setting::flags(flags)).await;
    machine.touch("");
    let last = machine.until_back().await;
    assert_eq!(
        (&last["trigger"]["source"], &last["trigger"]["reason"]),
        (&json!("command"), &json!("by command"))
    );
}

const LABEL: &str = "nke.nvidia.com/reboot";

#[tokio::test]
async fn each_setting_of_the_request_label_is_one_reboot_and_goes_with_its_record() {
    let cluster = Cluster::new().await;
    let flag = format!("--reboot-request-label={LABEL}");
    let machine = cluster.machine(Setting::flags([&flag])).await;
    let asks = json!({ "metadata": { "labels": { LABEL: "requested-by-nvsentinel" } } });
    for boots in 1..=2 {
        machine.patch_node(&asks).await;
        machine.until_commands(boots).await;
        let last = machine.until_back().await;
        assert_eq!(
            (&last["trigger"]["source"], &last["trigger"]["reason"]),
            (
                &json!(format!("label:{LABEL}")),
                &json!("requested-by-nvsentinel")
            )
        );
        assert_eq!(
            machine.node().await["metadata"]["labels"][LABEL],
            Value::Null
        );
    }
    // Whoever waits for the label to go finds the node usable, and a reboot that is under way has it.
    cluster.world.now(|seen| {
        let states = seen.in_order(&["nodes"]).into_iter();
        let states = states.filter(|change| change.name == machine.name());
        for node in states.filter_map(|change| change.object.as_ref()) {
            let is_labelled = !node["metadata"]["labels"][LABEL].is_null();
            assert!(is_labelled || record(node).is_none(), "{node}");
        }
    });
    assert_eq!(machine.commands(), 2);
}
