mod forecast;

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::condition::CurrentCondition;
use crate::explain::host::testkit::{host, said};
use crate::explain::testkit::{at, node, now};
use crate::explain::{ExplanationTopic, POWER_AS_WANTED};
use crate::name::NodeName;
use crate::power::{HostSnapshot, OffConfirmation, PowerState, reboot_annotations};
use crate::reboot::ObservedNode;
use crate::remediation::{
    KeyOwner, MachineApi, MachineName, ObjectName, ObservedMachine, REMEDIATION_CONDITION,
    RemediationReason, RemediationRecord, RemediationStep, StepStamp,
};

const RECORD: &str = "dogwatch.dev/remediation";

fn name(name: &str) -> MachineName {
    MachineName {
        api: MachineApi::OpenShift,
        object: ObjectName::new("machines", name),
    }
}

/// A marked Machine of Node `n1` on host `metal/h1`.
fn marked() -> ObservedMachine {
    ObservedMachine {
        name: name("m1"),
        uid: "uid-m1".into(),
        resource_version: "1".into(),
        deleting: false,
        need: Some(String::new()),
        host: Some("metal/h1".into()),
        infra: None,
        provider_id: None,
        node: Some("n1".into()),
        control_plane: false,
        cluster: None,
        paused: false,
        cluster_paused: false,
        conditions: Vec::new(),
    }
}

fn its_host() -> HostSnapshot {
    let consumer = crate::power::HostConsumer {
        group: "machine.openshift.io".into(),
        kind: "Machine".into(),
        namespace: "machines".into(),
        name: "m1".into(),
    };
    HostSnapshot {
        consumer: Some(consumer),
        ..host("h1")
    }
}

fn record(steps: &[(RemediationStep, i64)]) -> RemediationRecord {
    let stamp = |(step, second): &(RemediationStep, i64)| StepStamp {
        step: *step,
        at: at(*second),
    };
    RemediationRecord {
        subject: "machine/machines/m1".into(),
        uid: "uid-m1".into(),
        node: Some("n1".into()),
        node_uid: Some("uid-n1".into()),
        cluster: None,
        cluster_uid: None,
        boot_id: Some("old-boot".into()),
        attempt: 1,
        steps: steps.iter().map(stamp).collect(),
    }
}

fn remembering(mut host: HostSnapshot, steps: &[(RemediationStep, i64)]) -> HostSnapshot {
    let text = serde_json::to_string(&record(steps)).unwrap();
    host.annotations.insert(RECORD.into(), text);
    host
}

/// The host carries the Machine's key and has been powering off since second 80.
fn keyed() -> HostSnapshot {
    let key = KeyOwner::Machine("uid-m1".into());
    let mut host = remembering(
        its_host(),
        &[
            (RemediationStep::Requested, 70),
            (RemediationStep::KeyAdded, 80),
        ],
    );
    host.annotations
        .insert(key.annotation_name(), key.annotation_value());
    host.status.power.state = Some(PowerState::PoweringOff);
    host.status.conditions[0] = said(POWER_AS_WANTED, "False", "PoweringOff", "cut at 80");
    host
}

/// The host's status confirms off.
fn proved(mut host: HostSnapshot) -> HostSnapshot {
    let ids = reboot_annotations(&host)
        .into_iter()
        .map(|request| request.id());
    host.status.power.confirmed_for = ids.collect();
    host.status.power.state = Some(PowerState::Off);
    host.status.power.off_confirmed_at = Some(at(84));
    host
}

fn failed() -> ObservedNode {
    ObservedNode {
        ready: false,
        ..node("n1")
    }
}

fn view(
    machine: ObservedMachine,
    host: HostSnapshot,
    nodes: Vec<ObservedNode>,
) -> RemediationReportInput {
    let world = RemediationSnapshot {
        machines: [(machine.name.clone(), Arc::new(machine))].into(),
        hosts: [(host.name.clone(), Arc::new(host))].into(),
        nodes: nodes
            .into_iter()
            .map(|it| (it.name.clone(), Arc::new(it)))
            .collect(),
        synced: true,
        ..RemediationSnapshot::default()
    };
    RemediationReportInput {
        snapshot: world,
        policies: ClusterPolicies::default(),
        control_plane_lock: None,
        controller: ObservedController::Leads {
            holder: "c-1".into(),
            renewed: Some(at(98)),
        },
    }
}

fn condition(status: &str, reason: &str, message: &str) -> CurrentCondition {
    CurrentCondition {
        last_transition: Some(at(80)),
        ..said(REMEDIATION_CONDITION, status, reason, message)
    }
}

fn told(
    machine: ObservedMachine,
    host: HostSnapshot,
    nodes: Vec<ObservedNode>,
) -> RemediationExplanation {
    let target = ExplainRemediationTarget::Machine(ObjectName::new("machines", "m1"));
    let mut all = explain_remediations(&view(machine, host, nodes), &target, now(100));
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn lines(told: &RemediationExplanation, topic: ExplanationTopic) -> Vec<&str> {
    let lines = told.chain.iter().filter(|line| line.topic == topic);
    lines.map(|line| line.text.as_str()).collect()
}

#[test]
fn a_machine_is_explained_from_the_need_to_what_is_waited_for() {
    let machine = ObservedMachine {
        conditions: vec![condition(
            "True",
            "PoweringOff",
            "the host is being powered off",
        )],
        ..marked()
    };
    let told = told(machine, keyed(), vec![failed()]);
    assert_eq!(told.summary, "machine/machines/m1: PoweringOff for 20s");
    assert!(told.under_way);
    for (topic, text) in [
        (
            ExplanationTopic::Asked,
            "it has annotation host.metal3.io/external-remediation",
        ),
        (
            ExplanationTopic::Host,
            "metal/h1, by annotation metal3.io/BareMetalHost on the Machine",
        ),
        (
            ExplanationTopic::Node,
            "n1, not Ready, UID uid-n1, boot old-boot",
        ),
        (ExplanationTopic::Lock, "dogwatch-remedy-n1 is not held"),
        (
            ExplanationTopic::Key,
            "the host has reboot.metal3.io/machine-remediation",
        ),
        (ExplanationTopic::Power, "PoweringOff, observed 40s ago"),
        (
            ExplanationTopic::Says,
            "PoweringOff: the host is being powered off",
        ),
        (ExplanationTopic::Step, "Requested at 1970-01-01 00:01:10Z"),
        (ExplanationTopic::Controller, "c-1 leads"),
    ] {
        let lines = lines(&told, topic);
        assert!(
            lines.iter().any(|line| line.starts_with(text)),
            "{topic:?}: {lines:?}"
        );
    }
    let words = lines(&told, ExplanationTopic::Power);
    assert!(
        words.contains(&"PoweringOff: cut at 80"),
        "the power side's own words: {words:?}"
    );
    assert!(
        told.advice
            .iter()
            .any(|it| it == "dogwatch explain host/metal/h1")
    );
}

#[test]
fn the_timeline_has_each_step_with_what_it_took_and_the_proof_before_it_is_written_down() {
    let told = told(marked(), proved(keyed()), vec![failed()]);
    let steps: Vec<(&str, Option<u64>)> = told
        .timeline
        .iter()
        .map(|row| (row.step, row.after_ms))
        .collect();
    let expected = [
        ("Requested", None),
        ("KeyAdded", Some(10_000)),
        ("OffProved", Some(4_000)),
    ];
    assert_eq!(steps, expected);
    let lines = lines(&told, ExplanationTopic::Step);
    assert_eq!(lines[2], "OffProved at 1970-01-01 00:01:24Z, after 4.0s");
    assert_eq!(lines[3], "14s from the first to the last");
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["timeline"][2]["afterMs"], json!(4000));
}

#[test]
fn a_proof_for_an_earlier_key_is_none() {
    let mut host = proved(keyed());
    let key = KeyOwner::Machine("uid-m1".into());
    host.status.power.confirmed_for = vec![format!("{}=of-another-value", key.annotation_name())];
    let told = told(marked(), host, vec![failed()]);
    assert_eq!(told.timeline.len(), 2, "{:?}", told.timeline);
}

#[test]
fn where_no_controller_has_spoken_the_same_decision_says_why_it_would_wait() {
    let alone = ObservedMachine {
        host: Some("metal/h2".into()),
        ..marked()
    };
    let told = told(alone, its_host(), vec![failed()]);
    assert_eq!(told.summary, "machine/machines/m1: HostNotFound");
    let says = lines(&told, ExplanationTopic::Says);
    assert!(
        says[0].starts_with("current state: HostNotFound"),
        "{says:?}"
    );
    let advice = told.advice.join("\n");
    assert!(
        advice.contains("annotate -n machines machines.machine.openshift.io m1"),
        "{advice}"
    );
    assert!(
        advice.contains("--components power,remediation"),
        "{advice}"
    );
    assert!(advice.contains("to cancel the remediation: "), "{advice}");
}

#[test]
fn a_condition_from_before_does_not_speak_for_a_new_mark() {
    let machine = ObservedMachine {
        conditions: vec![condition("False", "Remediated", "the Node is Ready")],
        paused: true,
        ..marked()
    };
    let told = told(machine, its_host(), vec![failed()]);
    assert_eq!(told.summary, "machine/machines/m1: Paused");
}

#[test]
fn what_needs_no_reading_is_told_beside_an_older_word_of_the_controller() {
    let machine = ObservedMachine {
        conditions: vec![condition("True", "Preparing", "reading everything again")],
        paused: true,
        ..marked()
    };
    let told = told(machine, its_host(), vec![failed()]);
    let says = lines(&told, ExplanationTopic::Says);
    assert_eq!(says.len(), 2, "{says:?}");
    assert!(says[1].starts_with("current state: Paused"), "{says:?}");
    let guard = lines(&told, ExplanationTopic::Guard);
    assert!(guard[0].starts_with("0 hosts are kept off for remediation, and --max-fenced is 5"));
}

#[test]
fn a_dead_bmc_is_answered_with_the_command_that_confirms() {
    let machine = ObservedMachine {
        conditions: vec![condition(
            "True",
            RemediationReason::PowerUnknown.as_str(),
            "no answer",
        )],
        ..marked()
    };
    let mut host = keyed();
    host.status.power.state = Some(PowerState::Unknown);
    let word = OffConfirmation::for_host(&host, "ann", at(90), "unplugged");
    let text = |host: &HostSnapshot| told(machine.clone(), host.clone(), vec![failed()]);
    let advice = text(&host).advice.join("\n");
    assert!(
        advice.contains("dogwatch confirm-off metal/h1 --reason TEXT"),
        "{advice}"
    );
    host.annotations.insert(
        crate::power::CONFIRMED_OFF_ANNOTATION.into(),
        word.annotation_value(),
    );
    let told = text(&host);
    let off = lines(&told, ExplanationTopic::Off);
    assert!(
        off[0].starts_with("ann confirmed that the host is off"),
        "{off:?}"
    );
}

#[test]
fn a_machine_of_which_nothing_is_asked_is_followed_to_its_host_all_the_same() {
    let quiet = ObservedMachine {
        need: None,
        ..marked()
    };
    let told = told(quiet, its_host(), vec![node("n1")]);
    assert_eq!(
        told.summary,
        "machine/machines/m1: no remediation is requested"
    );
    assert_eq!(
        (told.under_way, told.host.as_deref()),
        (false, Some("metal/h1"))
    );
    assert_eq!(told.advice, [""; 0]);
}

#[test]
fn a_node_that_was_deleted_is_explained_by_its_remediation() {
    let view = view(marked(), proved(keyed()), Vec::new());
    let about = |name: &str| {
        let target = ExplainRemediationTarget::Node(NodeName::new(name).unwrap());
        explain_remediations(&view, &target, now(100))
    };
    let told = about("n1");
    assert_eq!(told.len(), 1);
    assert_eq!(
        lines(&told[0], ExplanationTopic::Node),
        ["n1 does not exist"]
    );
    assert_eq!(about("n2"), []);
}

fn rows(machine: ObservedMachine, host: HostSnapshot) -> Vec<RemediationRow> {
    remediation_rows(&view(machine, host, vec![failed()]), now(100))
}

#[test]
fn a_row_says_who_where_how_far_since_when_and_why() {
    let machine = ObservedMachine {
        conditions: vec![condition("True", "PoweringOff", "it goes off")],
        ..marked()
    };
    let rows = rows(machine, keyed());
    assert_eq!(rows.len(), 1, "{rows:#?}");
    let row = &rows[0];
    assert_eq!(row.subject, "machine/machines/m1");
    assert_eq!(
        (row.node.as_deref(), row.host.as_deref()),
        (Some("n1"), Some("metal/h1"))
    );
    assert_eq!((row.step, row.since), (Some("KeyAdded"), Some(at(80))));
    assert_eq!((row.reason.as_str(), row.under_way), ("PoweringOff", true));
    assert!(!row.needs_somebody);
}

#[test]
fn what_ended_is_shown_for_an_hour_with_how_long_it_took() {
    let quiet = || ObservedMachine {
        need: None,
        ..marked()
    };
    let steps = [
        (RemediationStep::Requested, 10),
        (RemediationStep::KeyAdded, 11),
        (RemediationStep::NodeReady, 75),
    ];
    let host = remembering(its_host(), &steps);
    let rows = rows(quiet(), host.clone());
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!(rows[0].step, Some("NodeReady"));
    assert_eq!(
        (rows[0].reason.as_str(), rows[0].message.as_str()),
        ("Remediated", "ended after 65s")
    );
    assert!(!rows[0].under_way);
    let later = remediation_rows(&view(quiet(), host, vec![node("n1")]), now(75 + 3600));
    assert_eq!(later, []);
}

#[test]
fn tenths_of_a_second_matter_below_ten() {
    assert_eq!(
        [0, 4_270, 9_999, 10_400, 125_000].map(format_millis),
        ["0.0s", "4.2s", "9.9s", "10s", "2m5s"]
    );
}

#[test]
fn a_planned_reboot_is_given_its_time_since_it_began_and_not_since_somebody_asks() {
    for (since, waits) in [(40, true), (-1_600, true), (-1_800, false)] {
        let mut rebooting = failed();
        let record = crate::explain::testkit::record(crate::reboot::RebootPhase::Rebooting, since);
        rebooting.record = crate::reboot::ParsedAnnotation::Is(record);
        let view = view(marked(), its_host(), vec![rebooting]);
        let target = ExplainRemediationTarget::Machine(ObjectName::new("machines", "m1"));
        let told = &explain_remediations(&view, &target, now(100))[0];
        let says = lines(told, ExplanationTopic::Says).join("\n");
        assert_eq!(says.contains("PlannedReboot"), waits, "{since}: {says}");
    }
}
