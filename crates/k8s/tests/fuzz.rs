//! Objects that others write, and kubeconfigs, on mutated inputs: no panic, and no input takes long.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::drain::{MachineDrainBehavior, select_machine_rules};
use dogwatch_core::policy::{
    ClusterPolicies, MinInterval, RolloutCandidate, may_reboot_begin, resolve_policy,
};
use dogwatch_core::power::{OffConfirmation, reboot_annotations};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_core::remediation::RemediationKey;
use dogwatch_fuzz::{FuzzTarget, assert_one_line};
use dogwatch_k8s::connect::connect_by_kubeconfig_text;
use dogwatch_k8s::drain::parse_machine_rule;
use dogwatch_k8s::host::{HostObject, convert_host};
use dogwatch_k8s::node::{Node, observed_node};
use dogwatch_k8s::node_reboot::{NodeRebootObject, convert_node_reboot};
use dogwatch_k8s::policy::{PolicyObject, convert_policy_object};
use dogwatch_k8s::schedule::{ScheduleObject, convert_schedule};
use jiff::Timestamp;
use kube::core::DynamicObject;

fn check_bytes(name: &str, seeds: &[&str], check: impl FnMut(&[u8])) {
    let seeds: Vec<&[u8]> = seeds.iter().map(|seed| seed.as_bytes()).collect();
    let target = FuzzTarget {
        name,
        crate_folder: env!("CARGO_MANIFEST_DIR"),
        seeds: &seeds,
    };
    target.check_inputs(check);
}

const POLICY: &str = r#"{"metadata":{"name":"workers"},"spec":{"nodeSelector":{"matchLabels":{"a":"b"}},"priority":3,"maxUnavailable":"50%","paused":{"reason":"x","until":"2026-01-05T00:00:00Z"},"windows":[{"days":["Mon"],"start":"22:00","end":"04:00","timeZone":"Europe/Berlin","excludedDates":["2026-12-24"]},{"rrule":"FREQ=MONTHLY;BYDAY=2TU","start":"01:00","end":"03:00","timeZone":"UTC"}],"minInterval":"24h","drain":{"timeout":"1h","onTimeout":"Abort","exclude":{}},"reboot":{"timeout":"30m","attempts":2},"return":{"settle":"30s","gates":["Volumes"],"gateTimeout":"15m","onGateTimeout":"Keep"},"gates":[{"prometheus":{"url":"http://p","query":"up"}}],"rollout":{"canary":{"nodes":1,"soak":"10m"}}},"status":{"rollout":{"phase":"Canary"}}}"#;

/// A policy's windows are searched for years ahead: a rule that matches hardly ever must not take
/// long.
#[test]
fn policies_of_any_form_are_read_and_decided_by() {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let yearly = POLICY.replace(
        "FREQ=MONTHLY;BYDAY=2TU",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;COUNT=3",
    );
    let secondly = POLICY.replace(
        "FREQ=MONTHLY;BYDAY=2TU",
        "FREQ=DAILY;INTERVAL=1000;UNTIL=20300101T000000Z",
    );
    check_bytes("policy", &[POLICY, &yearly, &secondly], |input| {
        let Ok(object) = serde_json::from_slice::<PolicyObject>(input) else {
            return;
        };
        let policy = convert_policy_object(&object);
        let policies = ClusterPolicies::Known(vec![policy]);
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let rule = resolve_policy(&policies, &labels, &RebootConfig::default());
        let interval = MinInterval::since_last_reboot(None);
        let drain = Duration::from_mins(5);
        let candidate = RolloutCandidate::Hold;
        let _ = may_reboot_begin(&policies, rule.policy, drain, interval, candidate, now);
    });
}

#[test]
fn objects_of_any_form_are_converted() {
    check_bytes(
        "node",
        &[
            r#"{"metadata":{"name":"n1","uid":"u","annotations":{"dogwatch.dev/reboot":"{}"},"labels":{"a":"b"}},"spec":{"unschedulable":true,"taints":[{"key":"k","effect":"NoSchedule"}]},"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"bootID":"b"},"capacity":{"nvidia.com/gpu":"8","memory":"16Gi"}}}"#,
        ],
        |input| {
            if let Ok(node) = serde_json::from_slice::<Node>(input) {
                let _ = observed_node(&node);
            }
        },
    );
    check_bytes(
        "host",
        &[
            r#"{"metadata":{"name":"h1","namespace":"metal","uid":"u","annotations":{"reboot.metal3.io/x":"{\"mode\":\"hard\",\"force\":true}","reboot.metal3.io":"","dogwatch.dev/confirmed-off":"{\"by\":\"a\",\"at\":\"2026-01-05T00:00:00Z\",\"reason\":\"r\",\"for\":[\"x\"]}"}},"spec":{"online":true,"bmc":{"address":"redfish://b","credentialsName":"s"},"consumerRef":{"kind":"Machine","name":"m"}},"status":{"poweredOn":true,"provisioning":{"state":"provisioned"}}}"#,
        ],
        |input| {
            let Ok(object) = serde_json::from_slice::<HostObject>(input) else {
                return;
            };
            let host = convert_host(&object);
            let _ = RemediationKey::keys_on_host(&host).count();
            for annotation in reboot_annotations(&host) {
                if let Some(problem) = annotation.problem {
                    assert_one_line(&problem);
                }
            }
            if let Some(Err(bad)) = OffConfirmation::read_from_host(&host) {
                assert_one_line(&bad.to_string());
            }
        },
    );
    check_bytes(
        "schedule",
        &[
            r#"{"metadata":{"name":"s","namespace":"dogwatch"},"spec":{"at":"2026-01-05T00:00:00Z","deadline":"1h","nodes":{"names":["n1"],"selector":{}},"reason":"x"},"status":{"phase":"Waiting"}}"#,
        ],
        |input| {
            if let Ok(object) = serde_json::from_slice::<ScheduleObject>(input) {
                let _ = convert_schedule(&object, "dogwatch");
            }
        },
    );
    check_bytes(
        "node-reboot",
        &[
            r#"{"metadata":{"name":"r","uid":"u"},"spec":{"nodeName":"n1","method":"PowerCycle","reason":"x","deadline":"1h","notBefore":"2026-01-05T00:00:00Z","successCondition":{"type":"T","status":"True"},"escalation":["PowerCycle"]},"status":{"conditions":[]}}"#,
        ],
        |input| {
            if let Ok(object) = serde_json::from_slice::<NodeRebootObject>(input) {
                let _ = convert_node_reboot(&object);
            }
        },
    );
}

const MACHINE_RULE: &str = r#"{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineDrainRule","metadata":{"name":"databases","namespace":"fleet"},"spec":{"drain":{"behavior":"Drain","order":-10},"machines":[{"selector":{"matchLabels":{"os":"linux"}},"clusterSelector":{"matchExpressions":[{"key":"stage","operator":"In","values":["production"]}]}},{"selector":{}}],"pods":[{"selector":{"matchLabels":{"app":"database"}},"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"Exists"}]}},{}]}}"#;

/// A rule that lost an entry, or its behaviour, would let pods go that it protects.
#[test]
fn machine_drain_rules_of_any_form_are_read_whole_or_refused_in_one_line() {
    let skip = MACHINE_RULE.replace(r#""Drain","order":-10"#, r#""Skip""#);
    let wait = MACHINE_RULE.replace(r#""Drain","order":-10"#, r#""WaitCompleted""#);
    // An operator has no schema: it may be any text.
    let bad = MACHINE_RULE.replace("Exists", r"Near\n\u001b[31m");
    let labels = BTreeMap::from([("os".to_owned(), "linux".to_owned())]);
    let mut read = 0_u64;
    check_bytes(
        "machine-drain-rule",
        &[MACHINE_RULE, &skip, &wait, &bad],
        |input| {
            let Ok(object) = serde_json::from_slice::<DynamicObject>(input) else {
                return;
            };
            let rule = match parse_machine_rule(&object) {
                Ok(rule) => rule,
                Err(why) => return assert_one_line(&why),
            };
            let spec = &object.data["spec"];
            let entries = |field: &str| spec[field].as_array().map_or(0, Vec::len);
            assert_eq!(rule.pods.len(), entries("pods"));
            assert_eq!(rule.machines.len(), entries("machines"));
            let behavior = match rule.behavior {
                MachineDrainBehavior::Drain { .. } => "Drain",
                MachineDrainBehavior::Skip => "Skip",
                MachineDrainBehavior::WaitCompleted => "WaitCompleted",
            };
            assert_eq!(spec["drain"]["behavior"], behavior);
            let _ = select_machine_rules(vec![rule], &labels, &labels);
            read += 1;
        },
    );
    assert!(read > 100, "only {read} inputs were rules");
}

/// A kubeconfig that somebody else wrote makes this process neither panic nor repeat a credential.
#[test]
fn kubeconfigs_of_others() {
    let secret = "s3cret-t0ken";
    let seed = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n    server: https://10.0.0.1:6443\n    certificate-authority-data: LS0tLS1CRUdJTg==\nusers:\n- name: u\n  user:\n    token: {secret}\ncontexts:\n- name: c\n  context:\n    cluster: k\n    user: u\n"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    check_bytes("kubeconfig", &[&seed], |input| {
        if let Err(refused) = runtime.block_on(connect_by_kubeconfig_text(input)) {
            let text = refused.to_string();
            assert_one_line(&text);
            assert!(!text.contains(secret), "{text}");
        }
    });
}
