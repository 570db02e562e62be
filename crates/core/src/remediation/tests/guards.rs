//! What delays a new key, and until when. Source: specification §4.4.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::*;
use super::kit::*;
use crate::name::{BootId, GroupName};
use crate::policy::{ClusterPolicies, Policy};
use crate::power::tests::world::World as Power;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};

/// Row 1110.
struct Marked {
    machine: ObservedMachine,
    node: ObservedNode,
    power: Power,
    around: ConcurrentRemediations,
    config: RemediationConfig,
    known: RemediationMemory,
    is_leased: bool,
}

impl Marked {
    fn new() -> Self {
        let mut power = power_of(&host("a"), true);
        power.run(10);
        Self {
            machine: marked("a"),
            node: node("a"),
            power,
            around: ConcurrentRemediations::default(),
            config: RemediationConfig::default(),
            known: RemediationMemory::default(),
            is_leased: false,
        }
    }

    fn case(&self) -> Remediation {
        let host = self.power.seen.host.as_ref().clone();
        let mut world = world([self.machine.clone()], [host], [self.node.clone()]);
        if self.is_leased {
            world.leases.insert(node_name("a"), own_lease());
        }
        case_of(&world, "machine/machines/a").unwrap()
    }

    fn decision(&self) -> RemediationDecision {
        let known = RemediationMemory {
            power: Some(power_seen(&self.power)),
            ..self.known.clone()
        };
        let now = self.power.now();
        decide(&self.case(), &known, &self.around, &self.config, now)
    }

    fn record_decision(&mut self) {
        let (decision, now) = (self.decision(), self.power.now().mono);
        self.known.record_decision(&self.case(), &decision, now);
    }

    /// The reason of the refusal; `None` if the key may be added.
    fn refused(&self) -> Option<RemediationReason> {
        let decision = self.decision();
        let reason = decision.cause.reason;
        if reason == RemediationReason::Preparing {
            assert!(matches!(
                &decision.actions[0],
                RemediationAction::TakeLease { .. }
            ));
            return None;
        }
        assert_eq!(decision.actions, vec![]);
        let shown = &decision.report.conditions[0];
        assert_eq!(
            (&*shown.reason, shown.status.as_str()),
            (reason.as_str(), "True")
        );
        assert_eq!(decision.report.events.len(), 1);
        Some(reason)
    }

    /// Seconds until the next decision.
    fn wakes_in(&self) -> u64 {
        let wake = self.decision().wake.unwrap().at;
        wake.saturating_sub(self.power.now().mono).as_secs()
    }

    fn ago(&self, seconds: i64) -> Timestamp {
        self.power.now().wall - SignedDuration::from_secs(seconds)
    }

    fn record(&mut self, steps: &[(RemediationStep, i64)]) {
        let stamp = |(step, ago): &(RemediationStep, i64)| StepStamp {
            step: *step,
            at: self.ago(*ago),
        };
        let record = RemediationRecord {
            subject: "machine/machines/a".into(),
            uid: "uid-a".into(),
            node: Some("n-a".into()),
            node_uid: None,
            cluster: None,
            cluster_uid: None,
            boot_id: Some("old-boot".into()),
            attempt: 1,
            steps: steps.iter().map(stamp).collect(),
        };
        let text = serde_json::to_string(&record).unwrap();
        self.power.annotate("dogwatch.dev/remediation", &text);
    }
}

#[test]
fn a_marked_machine_goes_ahead_when_nothing_is_in_the_way() {
    assert_eq!(Marked::new().refused(), None);
}

#[test]
fn no_more_than_max_fenced_hosts_are_switched_off_at_once() {
    let mut it = Marked::new();
    for (held, says) in [(4, None), (5, Some(RemediationReason::TooManyFenced))] {
        it.around.fenced = (0..held)
            .map(|at| fenced(&format!("x{at}"), RemediationStage::HeldOff))
            .collect();
        assert_eq!(it.refused(), says, "{held}");
    }
    let message = it.decision().cause.message;
    assert!(message.contains("5 hosts") && message.contains("--max-fenced is 5"));
    it.config.max_fenced = 6;
    assert_eq!(it.refused(), None);
}

#[test]
fn a_host_whose_bmc_does_not_answer_and_one_that_comes_back_count_in_no_cap() {
    let mut it = Marked::new();
    it.config.max_fenced = 1;
    let hung = FencedHost {
        bmc_answers: false,
        ..fenced("x", RemediationStage::HeldOff)
    };
    it.around.fenced = vec![hung, fenced("y", RemediationStage::Returning)];
    assert_eq!(it.refused(), None);
    it.around
        .fenced
        .push(fenced("z", RemediationStage::Admitted));
    assert_eq!(it.refused(), Some(RemediationReason::TooManyFenced));
}

#[test]
fn a_host_counts_once_however_many_hold_it_off_and_never_against_itself() {
    let mut it = Marked::new();
    it.config.max_fenced = 2;
    let twice = FencedHost {
        subject: RemediationSubject::Request(ObjectName::new("r", "r")),
        ..fenced("x", RemediationStage::HeldOff)
    };
    it.around.fenced = vec![fenced("x", RemediationStage::HeldOff), twice];
    assert_eq!(it.refused(), None);
    it.config.max_fenced = 1;
    assert_eq!(it.refused(), Some(RemediationReason::TooManyFenced));
    // Another remediation holds it off already: one more key switches nothing off.
    it.around.fenced.push(FencedHost {
        subject: RemediationSubject::Request(ObjectName::new("r", "s")),
        ..fenced("a", RemediationStage::HeldOff)
    });
    assert_eq!(it.refused(), None);
}

#[test]
fn in_one_pass_no_more_are_let_go_than_the_cap_allows() {
    let names: Vec<String> = (0..9).map(|at| format!("m{at}")).collect();
    let machines = names.iter().map(|name| marked(name));
    let hosts = names.iter().map(|name| host(name));
    let nodes = names.iter().map(|name| node(name));
    let world = world(machines, hosts, nodes);
    let cases = discover_remediations(&world);
    let config = RemediationConfig::default();
    let power = Marked::new().power;
    let known = RemediationMemory {
        power: Some(power_seen(&power)),
        ..RemediationMemory::default()
    };
    let mut around = ConcurrentRemediations::from_remediations(&cases, |_| true);
    let mut admitted = 0;
    for case in &cases {
        let decision = decide(case, &known, &around, &config, power.now());
        around.admit_decided(case, &decision, true);
        admitted += usize::from(!decision.actions.is_empty());
    }
    assert_eq!((cases.len(), admitted), (9, 5));
}

#[test]
fn of_two_that_are_ready_under_a_cap_of_one_the_first_goes_and_neither_waits_for_ever() {
    let fenced = |name: &str| ObservedNode {
        being_fenced: true,
        ..node(name)
    };
    let mut world = world(
        [marked("a"), marked("b")],
        [host("a"), host("b")],
        [fenced("a"), fenced("b")],
    );
    for name in ["a", "b"] {
        let resource_version = "1".into();
        let lease = HeldRemediationLease {
            resource_version,
            ..HeldRemediationLease::default()
        };
        world.leases.insert(node_name(name), lease);
    }
    let cases = discover_remediations(&world);
    let power = Marked::new().power;
    let known = RemediationMemory {
        power: Some(power_seen(&power)),
        ..RemediationMemory::default()
    };
    let config = RemediationConfig {
        max_fenced: 1,
        ..RemediationConfig::default()
    };
    let around = ConcurrentRemediations::from_remediations(&cases, |_| true);
    let reasons = cases.iter().map(|case| {
        let decision = decide(case, &known, &around, &config, power.now());
        decision.cause.reason
    });
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(
        reasons,
        [
            RemediationReason::Preparing,
            RemediationReason::TooManyFenced
        ]
    );
}

/// What a pass decides for a paused Machine and a request of one Node, which hold its Lease and mark.
/// The request's status is written as the pass decided.
fn pass_over_two_of_one_node(
    world: &mut RemediationSnapshot,
    is_request_first: bool,
) -> Vec<RemediationDecision> {
    let mut power = power_of(&host("a"), true);
    power.run(10);
    let known = RemediationMemory {
        power: Some(power_seen(&power)),
        ..RemediationMemory::default()
    };
    let mut cases = discover_remediations(world);
    cases.sort_by_key(|case| case.request.is_some() != is_request_first);
    assert_eq!(cases.len(), 2);
    let mut around = ConcurrentRemediations::from_remediations(&cases, |_| true);
    let config = RemediationConfig::default();
    let mut decisions = Vec::new();
    for case in &cases {
        let decision = decide(case, &known, &around, &config, power.now());
        around.admit_decided(case, &decision, true);
        for action in &decision.actions {
            if let RemediationAction::WriteStatus { request, status } = action {
                let request = PowerRequest {
                    status: (**status).clone(),
                    ..(**request).clone()
                };
                let name = request.name.clone();
                world.requests.insert(name, Arc::new(request));
            }
        }
        decisions.push(decision);
    }
    decisions
}

fn frees_claims(decision: &RemediationDecision) -> bool {
    let has = |wanted: fn(&RemediationAction) -> bool| decision.actions.iter().any(wanted);
    has(|action| matches!(action, RemediationAction::UnmarkNode { .. }))
        && has(|action| matches!(action, RemediationAction::FreeLease { .. }))
}

#[test]
fn two_of_one_node_that_are_both_refused_hold_nothing_for_each_other() {
    for (is_request_first, is_paused) in [(false, true), (true, true), (true, false)] {
        let machine = ObservedMachine {
            paused: is_paused,
            ..marked("a")
        };
        let node = ObservedNode {
            being_fenced: true,
            ready: false,
            ..node("a")
        };
        let mut world = world([machine], [host("a")], [node]);
        let lease = HeldRemediationLease::default();
        world.leases.insert(node_name("a"), lease);
        let request = PowerRequest {
            machine: Some(machine_name("a")),
            machine_uid: Some("uid-a".into()),
            strategy: Ok(super::request::desk::DELETE),
            ..request()
        };
        let request = Arc::new(request);
        world.requests.insert(request.name.clone(), request);
        // The first pass writes the request's status.
        pass_over_two_of_one_node(&mut world, is_request_first);
        let decisions = pass_over_two_of_one_node(&mut world, is_request_first);
        let reasons = decisions.iter().map(|it| it.cause.reason);
        let reason = if is_paused {
            RemediationReason::Paused
        } else {
            RemediationReason::Preparing
        };
        assert!(reasons.into_iter().all(|it| it == reason), "{decisions:?}");
        let frees: Vec<bool> = decisions.iter().map(frees_claims).collect();
        // The first one does not know yet that the second one is refused.
        assert_eq!(frees, [false, is_paused], "{is_request_first}");
    }
}

#[test]
fn one_control_plane_host_at_a_time_until_it_is_back() {
    let mut it = Marked::new();
    for stage in [
        RemediationStage::Preparing,
        RemediationStage::Admitted,
        RemediationStage::HeldOff,
        RemediationStage::Returning,
    ] {
        let other = FencedHost {
            control_plane: true,
            ..fenced("x", stage)
        };
        it.around.fenced = vec![other];
        it.machine.control_plane = true;
        assert_eq!(it.refused(), Some(RemediationReason::ControlPlaneOneByOne));
        assert!(it.decision().cause.message.contains("machines/h-x"));
        it.machine.control_plane = false;
        assert_eq!(it.refused(), None, "a worker waits for nobody");
    }
    // The Node's role label says the same.
    let role = "node-role.kubernetes.io/control-plane";
    it.node.labels.insert(role.into(), String::new());
    assert_eq!(it.refused(), Some(RemediationReason::ControlPlaneOneByOne));
}

#[test]
fn a_planned_reboot_of_another_control_plane_node_goes_first() {
    let mut it = Marked::new();
    it.machine.control_plane = true;
    it.around.planned.control_plane_locks = vec!["n-x".into()];
    assert_eq!(it.refused(), Some(RemediationReason::ControlPlaneOneByOne));
    // Its own lock is no reason to wait: it may have failed in its planned reboot.
    it.around.planned.control_plane_locks = vec!["n-a".into()];
    assert_eq!(it.refused(), None);
    it.around.planned.control_plane_locks = vec!["n-a".into(), "n-x".into()];
    assert_eq!(it.refused(), Some(RemediationReason::ControlPlaneOneByOne));
}

#[test]
fn a_host_is_left_alone_for_the_cooldown_after_a_remediation() {
    let mut it = Marked::new();
    it.record(&[
        (RemediationStep::KeyAdded, 900),
        (RemediationStep::NodeReady, 299),
    ]);
    assert_eq!(it.refused(), Some(RemediationReason::CoolingDown));
    assert_eq!(it.wakes_in(), 1);
    it.record(&[
        (RemediationStep::KeyAdded, 900),
        (RemediationStep::NodeReady, 300),
    ]);
    assert_eq!(it.refused(), None);
}

#[test]
fn a_health_check_that_marks_again_while_the_host_comes_back_switches_nothing_off() {
    let mut it = Marked::new();
    it.record(&[
        (RemediationStep::KeyAdded, 900),
        (RemediationStep::KeyRemoved, 700),
        (RemediationStep::PoweredOn, 1_799),
    ]);
    it.is_leased = true;
    assert_eq!(it.refused(), Some(RemediationReason::CoolingDown));
    it.is_leased = false;
    it.record(&[
        (RemediationStep::KeyAdded, 900),
        (RemediationStep::KeyRemoved, 700),
        (RemediationStep::PoweredOn, 1_800),
    ]);
    assert_eq!(it.refused(), None, "it did not come back");
}

#[test]
fn a_machine_that_boots_slowly_is_given_as_long_as_in_a_planned_reboot() {
    let mut it = Marked::new();
    it.record(&[
        (RemediationStep::KeyRemoved, 4_000),
        (RemediationStep::PoweredOn, 3_599),
    ]);
    assert_eq!(it.refused(), None);
    it.config.reboot.reboot_timeout = Duration::from_hours(1);
    it.is_leased = true;
    assert_eq!(it.refused(), Some(RemediationReason::CoolingDown));
    assert_eq!(it.wakes_in(), 1);
    it.is_leased = false;
    // The policy of its labels takes precedence.
    let mut slow = Policy::without_rules(GroupName::new("slow").unwrap());
    slow.reboot.timeout = Some(Duration::from_mins(5));
    it.around.planned.policies = ClusterPolicies::Known(vec![slow]);
    assert_eq!(it.refused(), None);
    // It has ten minutes in any case.
    it.record(&[
        (RemediationStep::KeyRemoved, 700),
        (RemediationStep::PoweredOn, 599),
    ]);
    it.is_leased = true;
    assert_eq!(it.refused(), Some(RemediationReason::CoolingDown));
}

#[test]
fn a_node_that_is_back_is_not_switched_off_before_the_end_of_its_remediation_is_recorded() {
    let mut it = Marked::new();
    it.record(&[
        (RemediationStep::KeyRemoved, 9_000),
        (RemediationStep::PoweredOn, 8_900),
    ]);
    it.node.boot_id = Some(BootId::new("new-boot").unwrap());
    let decision = it.decision();
    assert_eq!(decision.cause.reason, RemediationReason::Remediated);
    let [
        RemediationAction::RemoveMachineNeed { machine },
        RemediationAction::WriteRecord { record, .. },
    ] = &decision.actions[..]
    else {
        panic!("{decision:?}");
    };
    assert_eq!(**machine, it.machine);
    assert!(record.ended_at().is_some());
    // The Machine was deleted and created again: the mark is for a later remediation.
    it.machine.uid = "uid-anew".into();
    let decision = it.decision();
    assert_eq!(decision.cause.reason, RemediationReason::CoolingDown);
    assert!(
        matches!(
            &decision.actions[..],
            [RemediationAction::WriteRecord { .. }]
        ),
        "{decision:?}"
    );
}

#[test]
fn a_cooldown_that_another_clock_wrote_ends_all_the_same_and_does_not_begin_again() {
    // The clock of this process overtakes the second one when the wait is over.
    for ahead in [86_400, 301] {
        let mut it = Marked::new();
        it.record(&[(RemediationStep::NodeReady, -ahead)]);
        assert_eq!(it.refused(), Some(RemediationReason::CoolingDown));
        assert_eq!(it.wakes_in(), 300);
        it.record_decision();
        it.power.run(299);
        assert_eq!(it.refused(), Some(RemediationReason::CoolingDown));
        for _ in 0..3 {
            it.record_decision();
            it.power.run(1);
            assert_eq!(it.refused(), None, "{ahead}");
        }
    }
}

#[test]
fn a_key_that_somebody_took_away_is_put_back_at_once() {
    let mut it = Marked::new();
    it.record(&[(RemediationStep::KeyAdded, 5)]);
    assert_eq!(it.refused(), None);
}

#[test]
fn a_planned_reboot_has_its_time_and_one_that_dies_while_draining_has_none() {
    let mut it = Marked::new();
    it.around.planned.policies = crate::policy::ClusterPolicies::Known(Vec::new());
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Returning,
    ] {
        it.node.record = ParsedAnnotation::Is(reboot_record(phase, 5));
        assert_eq!(it.refused(), None, "{phase:?}");
    }
    it.node.record = ParsedAnnotation::Is(reboot_record(RebootPhase::Rebooting, 5));
    it.around.planned.reboots.observe_nodes([], it.power.now());
    it.around
        .planned
        .reboots
        .observe_nodes([&it.node], it.power.now());
    assert_eq!(it.refused(), Some(RemediationReason::PlannedReboot));
    it.power.run(1_799);
    assert_eq!(it.refused(), Some(RemediationReason::PlannedReboot));
    it.power.run(1);
    assert_eq!(it.refused(), None);
}

#[test]
fn a_planned_reboot_has_the_time_that_its_coordinator_gives_it() {
    let mut it = Marked::new();
    it.around.planned.policies = crate::policy::ClusterPolicies::Known(Vec::new());
    let mut record = reboot_record(RebootPhase::Rebooting, 5);
    // The coordinator runs with --reboot-timeout=2h, which the controller does not know.
    record.limits.reboot_timeout_seconds = Some(7_200);
    it.node.record = ParsedAnnotation::Is(record);
    it.around.planned.reboots.observe_nodes([], it.power.now());
    it.around
        .planned
        .reboots
        .observe_nodes([&it.node], it.power.now());
    it.power.run(1_800);
    assert_eq!(it.refused(), Some(RemediationReason::PlannedReboot));
    it.power.run(5_399);
    assert_eq!(it.refused(), Some(RemediationReason::PlannedReboot));
    it.power.run(1);
    assert_eq!(it.refused(), None);
}

#[test]
fn a_planned_reboot_is_given_no_more_time_because_something_else_was_in_the_way_meanwhile() {
    let mut it = Marked::new();
    it.around.planned.policies = crate::policy::ClusterPolicies::Known(Vec::new());
    it.node.record = ParsedAnnotation::Is(reboot_record(RebootPhase::Rebooting, 5));
    it.around.planned.reboots.observe_nodes([], it.power.now());
    it.around
        .planned
        .reboots
        .observe_nodes([&it.node], it.power.now());
    it.power.run(1_200);
    // A failed reading: the reason was another one until now.
    it.known.reason_since = Some((RemediationReason::PowerUnknown, it.power.now().mono));
    assert_eq!(it.refused(), Some(RemediationReason::PlannedReboot));
    it.known.reason_since = Some((RemediationReason::PlannedReboot, it.power.now().mono));
    it.power.run(600);
    assert_eq!(it.refused(), None);
}

#[test]
fn a_machine_that_is_paused_is_begun_nothing_with() {
    let mut it = Marked::new();
    it.machine.paused = true;
    assert_eq!(it.refused(), Some(RemediationReason::Paused));
}

#[test]
fn a_pause_of_the_cluster_or_of_the_request_is_one_as_well() {
    let machine = ObservedMachine {
        cluster: Some("prod".into()),
        ..marked("a")
    };
    let mut world = world([machine], [host("a")], [node("a")]);
    let pause = |world: &RemediationSnapshot, subject: &str| {
        case_of(world, subject).unwrap().describe_pause()
    };
    let by_machine = "machine/machines/a";
    let elsewhere = ObjectName::new("elsewhere", "prod");
    world.paused_clusters.insert(elsewhere);
    assert_eq!(pause(&world, by_machine), None);
    let its_cluster = ObjectName::new("machines", "prod");
    world.paused_clusters.insert(its_cluster.clone());
    let said = pause(&world, by_machine).unwrap();
    assert!(said.contains("cluster machines/prod of machine"), "{said}");
    let mut it = Marked::new();
    it.machine.cluster_paused = true;
    assert_eq!(it.refused(), Some(RemediationReason::Paused));

    let of_request = PowerRequest {
        machine: Some(machine_name("a")),
        machine_uid: Some("uid-a".into()),
        strategy: Ok(super::request::desk::DELETE),
        ..request()
    };
    let by_request = "powerremediation/machines/r";
    let mut ask = |request: PowerRequest| {
        world
            .requests
            .insert(request.name.clone(), Arc::new(request));
        let of_cluster = pause(&world, by_request);
        world.paused_clusters.remove(&its_cluster);
        (of_cluster, pause(&world, by_request))
    };
    let (of_cluster, without) = ask(of_request.clone());
    assert!(of_cluster.unwrap().contains("cluster machines/prod"));
    assert_eq!(without, None);
    let paused = PowerRequest {
        paused: true,
        ..of_request
    };
    let (said, _) = ask(paused);
    assert!(said.unwrap().contains("request machines/r"));
}

#[test]
fn a_host_that_would_not_obey_the_key_gets_none() {
    let mut it = Marked::new();
    it.power.seen.host_mut().status.provisioning = Some("deprovisioning".into());
    assert_eq!(it.refused(), Some(RemediationReason::HostNotProvisioned));
    let message = it.decision().cause.message;
    assert!(message.contains("deprovisioning"), "{message}");
}

#[test]
fn guards_delay_new_keys_only() {
    // Rows 1101 and 1001, with every guard refusing.
    let owner = KeyOwner::Machine("uid-a".into());
    let mut power = power_of(&begun(host("a"), &owner), true);
    power.until_confirmed();
    power.run(7);
    let mut it = Marked::new();
    it.power = power;
    it.machine.paused = true;
    it.machine.control_plane = true;
    it.config.max_fenced = 0;
    it.around.planned.control_plane_locks = vec!["n-x".into()];
    it.around.fenced = vec![FencedHost {
        control_plane: true,
        ..fenced("x", RemediationStage::HeldOff)
    }];
    assert_eq!(it.decision().cause.reason, RemediationReason::ProvingOff);
    it.machine.need = None;
    let decision = it.decision();
    assert!(matches!(
        &decision.actions[..],
        [RemediationAction::RemoveKey { .. }]
    ));
}

/// Makes the fresh reads unusable for a key.
type Breaks = fn(&mut FreshReads);

const CONTRADICTIONS: [(&str, Breaks); 8] = [
    ("too old", |fresh| fresh.asked_at -= Duration::from_secs(1)),
    ("the need is gone", |fresh| fresh.needs_remediation = false),
    ("the host is gone", |fresh| fresh.host = None),
    ("the host was replaced", |fresh| {
        Arc::make_mut(fresh.host.as_mut().unwrap()).uid = "other".into();
    }),
    ("the key is there", |fresh| {
        let host = Arc::make_mut(fresh.host.as_mut().unwrap());
        host.annotations.insert(MACHINE_KEY.into(), String::new());
    }),
    ("the Node is gone", |fresh| fresh.node = None),
    ("the Node was replaced", |fresh| {
        Arc::make_mut(fresh.node.as_mut().unwrap()).uid = "other".into();
    }),
    ("the mark is gone", |fresh| {
        Arc::make_mut(fresh.node.as_mut().unwrap()).being_fenced = false;
    }),
];

#[test]
fn a_key_comes_only_after_lease_mark_and_fresh_reads_that_agree() {
    let mut it = Marked::new();
    it.node.being_fenced = true;
    let host = it.power.seen.host.as_ref().clone();
    let backup = NodeBackup::from_node(&it.node, BTreeMap::new(), Vec::new());
    let kept = stored(&host, backup);
    let world = world([it.machine.clone()], [host], [it.node.clone()]);
    let mut world = keeping(world, kept);
    let resource_version = "1".into();
    let lease = HeldRemediationLease {
        resource_version,
        ..HeldRemediationLease::default()
    };
    world.leases.insert(node_name("a"), lease);
    let case = case_of(&world, "machine/machines/a").unwrap();
    let now = it.power.now();
    let beat = beat(case.node.as_ref(), 5);
    let good = fresh(
        &world,
        &case,
        &beat,
        now.mono.saturating_sub(Duration::from_secs(4)),
    );
    let act = |case: &Remediation, fresh: Option<FreshReads>| {
        let known = RemediationMemory {
            power: Some(power_seen(&it.power)),
            fresh,
            ..RemediationMemory::default()
        };
        let decision = decide(case, &known, &it.around, &it.config, now);
        decision.actions
    };
    let actions = act(&case, Some(good.clone()));
    let [RemediationAction::AddKey { host, key, record }] = &actions[..] else {
        panic!("{actions:?}");
    };
    assert_eq!((&host.uid, key), (&host.uid, &case.key));
    assert_eq!(
        record.time_of_step(RemediationStep::KeyAdded),
        Some(now.wall)
    );
    assert_eq!(record.node_uid.as_deref(), Some("uid-n-a"));
    assert_eq!(record.boot_id.as_deref(), Some("old-boot"));

    let unleased = Remediation {
        held_lease: None,
        ..case.clone()
    };
    let only = act(&unleased, Some(good.clone()));
    assert!(matches!(&only[..], [RemediationAction::TakeLease { .. }]));

    let mut unmarked = case.clone();
    Arc::make_mut(unmarked.node.as_mut().unwrap()).being_fenced = false;
    let only = act(&unmarked, Some(good.clone()));
    assert!(matches!(&only[..], [RemediationAction::MarkNode { .. }]));

    assert_eq!(act(&case, None), vec![]);
    for (what, breaks) in CONTRADICTIONS {
        let mut fresh = good.clone();
        breaks(&mut fresh);
        assert_eq!(act(&case, Some(fresh)), vec![], "{what}");
    }
}
