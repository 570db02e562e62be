//! Every row of the table, with each state of knowledge about the power, and a crash before and
//! after its write.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::power::tests::world::World as Power;

/// Node exists, needs remediation, powered on, reboot key. Source: specification §4.1.
const DESIGN: [([u8; 4], &str); 16] = [
    ([0, 0, 0, 0], ""),
    ([0, 0, 0, 1], "RemoveKey"),
    ([0, 0, 1, 0], ""),
    ([0, 0, 1, 1], ""),
    ([0, 1, 0, 0], ""),
    ([0, 1, 0, 1], "RemoveMachineNeed, RemoveKey"),
    ([0, 1, 1, 0], "AddKey"),
    ([0, 1, 1, 1], ""),
    ([1, 0, 0, 0], ""),
    ([1, 0, 0, 1], "RemoveKey"),
    ([1, 0, 1, 0], ""),
    ([1, 0, 1, 1], ""),
    ([1, 1, 0, 0], ""),
    ([1, 1, 0, 1], "Release"),
    ([1, 1, 1, 0], "AddKey"),
    ([1, 1, 1, 1], ""),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reading {
    Fresh,
    Stale,
    Unknown,
}

/// The objects of one row.
struct Row {
    world: RemediationSnapshot,
    power: Power,
    config: RemediationConfig,
    reading: Reading,
}

impl Row {
    fn new([node_bit, needs, on, key]: [u8; 4], reading: Reading) -> Self {
        let mut machine = if needs == 1 {
            marked("a")
        } else {
            machine("a")
        };
        machine.resource_version = "7".into();
        let owner = KeyOwner::Machine(machine.uid.clone());
        let mut host = host("a");
        // Off without a key: somebody else switched it off.
        host.online = on == 1 || key == 1;
        let host = if key == 1 { keyed(host, &owner) } else { host };
        let mut power = power_of(&host, on == 1);
        if on == 1 {
            // The BMC accepts the command, and the host stays on.
            power.bmcs[0].default_takes = crate::power::tests::world::Takes::Ignores;
        }
        power.run(30);
        if reading == Reading::Unknown {
            power.bmcs[0].default_says =
                crate::power::tests::world::Says::Fails(crate::power::FaultClass::Unreachable);
            power.run(90);
        }
        let nodes = (node_bit == 1).then(|| node("a"));
        let world = world([machine], [power.seen.host.as_ref().clone()], nodes);
        let config = RemediationConfig::default();
        Self {
            world,
            power,
            config,
            reading,
        }
    }

    fn now(&self) -> crate::Now {
        let mut now = self.power.now();
        if self.reading == Reading::Stale {
            now.mono += self.power.config.poll * 3;
        }
        now
    }

    /// The decision of a process without memory, after its observations are answered and the writes
    /// that precede the table's own are done.
    fn first_move(&mut self) -> Vec<RemediationAction> {
        let mut known = RemediationMemory::default();
        for _ in 0..12 {
            self.world.hosts = [self.power.seen.host.as_ref().clone()]
                .map(|host| (host.name.clone(), Arc::new(host)))
                .into();
            let Some(case) = case_of(&self.world, "machine/machines/a") else {
                return Vec::new();
            };
            let now = self.now();
            known.power = Some(power_at(&self.power, now));
            let around =
                ConcurrentRemediations::from_remediations(std::slice::from_ref(&case), |_| true);
            let decision = decide(&case, &known, &around, &self.config, now);
            known.record_decision(&case, &decision, now.mono);
            let (first, moves) = split(decision.actions);
            if !moves.is_empty() {
                return moves;
            }
            let is_over = first.is_empty() && decision.observe.is_empty();
            for action in &first {
                self.apply(action);
                known.forget_reads();
            }
            for _ in &decision.observe {
                self.power.run(1);
                let taken = self.now().mono;
                let beat = beat(case.node.as_ref(), 5);
                known.record_heartbeat(taken, taken, beat.clone());
                known.fresh = Some(fresh(&self.world, &case, &beat, taken));
            }
            if is_over {
                return Vec::new();
            }
        }
        panic!("it comes to no end: {:?}", known.reason_since);
    }

    fn apply(&mut self, action: &RemediationAction) {
        match action {
            RemediationAction::TakeLease { node, .. } => {
                let resource_version = "1".to_owned();
                let lease = HeldRemediationLease {
                    resource_version,
                    ..HeldRemediationLease::default()
                };
                self.world.leases.insert(node.clone(), lease);
            }
            RemediationAction::FreeLease { node, .. } => {
                self.world.leases.remove(node);
            }
            RemediationAction::MarkNode { node, .. } => self.set_fenced(node, true),
            RemediationAction::UnmarkNode { node } => self.set_fenced(node, false),
            RemediationAction::AddKey { key, .. } => self
                .power
                .annotate(&key.annotation_name(), &key.annotation_value()),
            RemediationAction::RemoveKey { key, .. } => self.power.remove(key),
            RemediationAction::KeepBackup { host, backup, over } => {
                let mut kept = stored(host, backup.clone());
                if let Some(over) = over {
                    kept.resource_version = format!("{}1", over.resource_version);
                }
                self.world
                    .backups
                    .insert(kept.host_uid.clone(), Arc::new(kept));
            }
            RemediationAction::DropBackup { stored } => {
                self.world.backups.remove(&stored.host_uid);
            }
            RemediationAction::Release(release) => {
                self.world.nodes.remove(release.permit.node());
            }
            RemediationAction::RemoveMachineNeed { machine } => {
                let there = self.world.machines.get_mut(&machine.name).unwrap();
                Arc::make_mut(there).need = None;
            }
            RemediationAction::WriteRecord { record, .. } => {
                let text = serde_json::to_string(record).unwrap();
                self.power.annotate("dogwatch.dev/remediation", &text);
            }
            RemediationAction::RemoveNodeNeed { .. }
            | RemediationAction::RemoveOldBackup { .. }
            | RemediationAction::Restore { .. }
            | RemediationAction::Untaint { .. }
            | RemediationAction::WriteStatus { .. }
            | RemediationAction::AddFinalizer { .. }
            | RemediationAction::RemoveFinalizer { .. }
            | RemediationAction::HandBack { .. } => panic!("not of this flow: {action:?}"),
        }
    }

    fn set_fenced(&mut self, node: &crate::reboot::ObservedNode, fenced: bool) {
        let there = self.world.nodes.get_mut(&node.name).unwrap();
        Arc::make_mut(there).being_fenced = fenced;
    }
}

/// Splits the actions into the table's own and those that precede them.
fn split(actions: Vec<RemediationAction>) -> (Vec<RemediationAction>, Vec<RemediationAction>) {
    actions.into_iter().partition(|action| {
        !matches!(
            action,
            RemediationAction::AddKey { .. }
                | RemediationAction::Release(_)
                | RemediationAction::RemoveMachineNeed { .. }
                | RemediationAction::RemoveKey { .. }
        )
    })
}

fn named(moves: &[RemediationAction]) -> String {
    let name = |action: &RemediationAction| {
        let text = format!("{action:?}");
        text[..text.find([' ', '(']).unwrap()].to_owned()
    };
    moves.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[test]
fn each_row_does_what_the_design_says_on_a_fresh_reading_and_nothing_on_any_other() {
    for (bits, says) in DESIGN {
        for reading in [Reading::Fresh, Reading::Stale, Reading::Unknown] {
            let moves = Row::new(bits, reading).first_move();
            let wanted = if reading == Reading::Fresh { says } else { "" };
            assert_eq!(named(&moves), wanted, "{bits:?} {reading:?}");
        }
    }
}

#[test]
fn a_crash_before_a_rows_write_decides_it_again() {
    for (bits, says) in DESIGN {
        let mut row = Row::new(bits, Reading::Fresh);
        row.first_move();
        let again = row.first_move();
        assert_eq!(named(&again), says, "{bits:?}");
    }
}

#[test]
fn a_crash_after_a_rows_write_goes_on_with_the_next_row() {
    for (bits, next) in [
        ([0, 1, 1, 0], ""),
        ([1, 1, 1, 0], ""),
        ([1, 1, 0, 1], "RemoveMachineNeed, RemoveKey"),
        ([0, 1, 0, 1], "RemoveKey"),
        ([0, 0, 0, 1], ""),
        ([1, 0, 0, 1], ""),
    ] {
        let mut row = Row::new(bits, Reading::Fresh);
        let moves = row.first_move();
        // Of row 0101 only the first of its two writes.
        row.apply(&moves[0]);
        let then = row.first_move();
        assert_eq!(named(&then), next, "{bits:?}");
    }
}

#[test]
fn on_another_reading_nothing_is_done_after_any_write_either() {
    for (bits, _) in DESIGN {
        let mut row = Row::new(bits, Reading::Fresh);
        let moves = row.first_move();
        for action in moves.iter().take(1) {
            row.apply(action);
        }
        row.reading = Reading::Stale;
        row.config.require_identity = false;
        assert_eq!(named(&row.first_move()), "", "{bits:?}");
    }
}

#[test]
fn nothing_has_a_reason_a_deadline_and_is_said_loudly_after_it() {
    let row = Row::new([1, 1, 0, 0], Reading::Fresh);
    let case = case_of(&row.world, "machine/machines/a").unwrap();
    let now = row.now();
    let mut known = RemediationMemory {
        power: Some(power_at(&row.power, now)),
        ..RemediationMemory::default()
    };
    let (around, config) = (
        ConcurrentRemediations::default(),
        RemediationConfig::default(),
    );
    let decision = decide(&case, &known, &around, &config, now);
    assert_eq!(decision.cause.reason, RemediationReason::NothingToDo);
    let shown = &decision.report.conditions[0];
    assert_eq!(
        (shown.kind, shown.status.as_str(), &*shown.reason),
        (
            "Remediation",
            "True",
            RemediationReason::NothingToDo.as_str()
        )
    );
    assert!(decision.report.events.is_empty());
    assert_eq!(
        decision.wake.as_ref().unwrap().at,
        now.mono + RemediationConfig::WARN_AFTER
    );
    known.record_decision(&case, &decision, now.mono);
    let mut later = now;
    later.mono += RemediationConfig::WARN_AFTER + Duration::from_secs(1);
    let decision = decide(&case, &known, &around, &config, later);
    let event = &decision.report.events[0];
    assert_eq!(event.severity, crate::decision::EventSeverity::Warning);
    assert!(event.message.starts_with("for more than 10m"), "{event:?}");
}
