//! Remediation of machines behind real BMCs that speak IPMI: a chassis that records its commands,
//! and a virtual machine.
//!
//! A finalizer keeps the Node after its deletion is accepted, so nothing changes from then on: the
//! host is held off until the Node is gone.

use std::process::Command;

use dogwatch_testbed::ipmi_sim::{IpmiSim, NO_GUID, PASSWORD, USERNAME, guid_of_uuid};
use dogwatch_testbed::vm::{GUEST_RUNNING, GUEST_WROTE, GuestMode, VirtualMachine};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::form::Form;
use super::stage::{NODE, Stage};
use crate::support::eventually;

/// This many lines show that a writer still runs.
const SOME: usize = 5;

#[tokio::test]
async fn a_machine_behind_ipmi_is_off_before_its_node_goes_and_on_again_afterwards() {
    let stage = Stage::new(Form::Machine).await;
    let bmc = IpmiSim::start_with_guid(true, NO_GUID).await.unwrap();
    stage.put_host(&bmc.address()).await;
    let _controller = stage.controller();
    eventually(|| stage.is_controlled()).await;
    let old = silent(&stage).await;

    stage.ask().await;
    eventually(|| is_going(&stage)).await;
    let says = ipmitool(&bmc.address(), "status");
    assert_eq!(says, "Chassis Power is off\n");
    assert!(!bmc.is_on().unwrap());
    assert_eq!(bmc.chassis_commands().unwrap(), ["power 0"]);

    let_go(&stage).await;
    eventually(|| async { is_so(bmc.is_on().unwrap(), "the host is on") }).await;
    stage.kubelet.power_on(ANOTHER_BOOT);
    eventually(|| stage.is_over(&old)).await;
    assert_eq!(bmc.chassis_commands().unwrap(), ["power 0", "power 1"]);
    stage.nothing_was_refused().await;
}

#[tokio::test]
async fn a_machine_that_writes_while_its_node_is_silent_has_stopped_when_the_node_goes_and_boots_again()
 {
    let stage = Stage::new(Form::Machine).await;
    let guid = guid_of_uuid(stage.kubelet.system_uuid());
    let vm = VirtualMachine::start_with_guid(GuestMode::Writer, &guid)
        .await
        .unwrap();
    ipmitool(&vm.address(), "on");
    vm.wait_until_console_shows(GUEST_RUNNING, 1).await.unwrap();
    stage.put_host(&vm.address()).await;
    let _controller = stage.controller();
    eventually(|| stage.is_controlled()).await;
    let old = silent(&stage).await;
    vm.wait_until_console_shows(GUEST_WROTE, written(&vm, 1) + SOME)
        .await
        .unwrap();

    stage.ask().await;
    eventually(|| is_going(&stage)).await;
    assert!(!vm.has_process(), "it runs, and its Node is deleted");
    let (lines, last) = (written(&vm, 1), vm.last_printed_at().unwrap());
    assert!(Timestamp::try_from(last).unwrap() < deleted(&stage).await);

    let_go(&stage).await;
    vm.wait_until_console_shows(GUEST_RUNNING, 2).await.unwrap();
    vm.wait_until_console_shows(GUEST_WROTE, lines + SOME)
        .await
        .unwrap();
    assert_eq!(written(&vm, 1), lines, "{}", vm.console_output());
    stage.kubelet.power_on(ANOTHER_BOOT);
    eventually(|| stage.is_over(&old)).await;
    let boots = vm.console_output().matches(GUEST_RUNNING).count();
    assert_eq!(boots, 2, "{}", vm.console_output());
}

/// Stops the kubelet and gives the Node a finalizer; returns the Node from before.
async fn silent(stage: &Stage) -> Value {
    let keep = json!({ "metadata": { "finalizers": ["example.com/keep"] } });
    stage.hand.merge(NODE, &keep).await;
    let old = stage.node().await;
    stage.kubelet_dies().await;
    old
}

async fn let_go(stage: &Stage) {
    let none = json!({ "metadata": { "finalizers": null } });
    stage.hand.merge(NODE, &none).await;
}

/// Succeeds once the Node's deletion is accepted.
async fn is_going(stage: &Stage) -> Result<(), String> {
    let (node, host) = (stage.node().await, stage.host().await);
    let is_going = node["metadata"]["deletionTimestamp"].is_string();
    let machine = stage.machine().await;
    is_so(is_going, &format!("{machine} {host} {node}"))
}

/// When the API server received the deletion that it accepted.
async fn deleted(stage: &Stage) -> Timestamp {
    let asked = stage.asked().await;
    let mut deletions = asked.iter();
    let first =
        deletions.find(|it| it.verb == "delete" && it.resource == "nodes" && it.code == 200);
    first.unwrap().received.parse().unwrap()
}

/// The number of lines written in this boot.
fn written(vm: &VirtualMachine, boot: usize) -> usize {
    let console = vm.console_output();
    let of_boot = console.split(GUEST_RUNNING).nth(boot).unwrap();
    of_boot.matches(GUEST_WROTE).count()
}

fn is_so(is: bool, what: &str) -> Result<(), String> {
    is.then_some(()).ok_or_else(|| what.to_owned())
}

const ANOTHER_BOOT: &str = "00000000-0000-4000-8000-000000000002";

/// The answer of `ipmitool chassis power`, which does not use Dogwatch's driver.
fn ipmitool(address: &str, word: &str) -> String {
    let port = address.rsplit(':').next().unwrap();
    let output = Command::new("ipmitool")
        .args(["-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", port])
        .args(["-U", USERNAME, "-E", "chassis", "power", word])
        .env("IPMI_PASSWORD", PASSWORD)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
