//! Every row of the table, with each knowledge of the power, and a crash before and after its write.

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

/// One row as it stands on the objects.
struct Row {
    world: World,
    power: Power,
    config: Config,
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
        // Off without a key is off by somebody else's wish.
        host.online = on == 1 || key == 1;
        let host = if key == 1 { keyed(host, &owner) } else { host };
        let mut power = power_of(&host, on == 1);
        if on == 1 {
            // It takes the command, and stays on.
            power.bmcs[0].default_takes = crate::power::tests::world::Takes::Ignores;
        }
        power.run(30);
        if reading == Reading::Unknown {
            power.bmcs[0].default_says =
                crate::power::tests::world::Says::Fails(crate::power::Class::Unreachable);
            power.run(90);
        }
        let nodes = (node_bit == 1).then(|| node("a"));
        let world = world([machine], [power.seen.host.as_ref().clone()], nodes);
        let config = Config::default();
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

    /// What is decided from here by a process that knows nothing: its looks are answered, and what only goes
    /// before the table's own write is done.
    fn first_move(&mut self) -> Vec<Action> {
        let mut known = Known::default();
        for _ in 0..12 {
            self.world.hosts = [self.power.seen.host.as_ref().clone()]
                .map(|host| (host.name.clone(), Arc::new(host)))
                .into();
            let Some(case) = case_of(&self.world, "machine/machines/a") else {
                return Vec::new();
            };
            let now = self.now();
            known.power = Some(power_at(&self.power, now));
            let around = Around::of(std::slice::from_ref(&case), |_| true);
            let decision = decide(&case, &known, &around, &self.config, now);
            known.decided(&decision, now.mono);
            let (first, moves) = split(decision.actions);
            if !moves.is_empty() {
                return moves;
            }
            let is_over = first.is_empty() && decision.looks.is_empty();
            for action in &first {
                self.apply(action);
            }
            for _ in &decision.looks {
                self.power.run(1);
                let taken = self.now().mono;
                let beat = beat(case.node.as_ref(), 5);
                known.beat(taken, taken, beat.clone());
                known.fresh = Some(fresh(&self.world, &case, &beat, taken));
            }
            if is_over {
                return Vec::new();
            }
        }
        panic!("it comes to no end: {:?}", known.since);
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::TakeLease { node, .. } => {
                let resource_version = "1".to_owned();
                let lease = RemedyLease {
                    resource_version,
                    ..RemedyLease::default()
                };
                self.world.leases.insert(node.clone(), lease);
            }
            Action::FreeLease { node } => {
                self.world.leases.remove(node);
            }
            Action::MarkNode { node, .. } => self.set_fenced(node, true),
            Action::UnmarkNode { node } => self.set_fenced(node, false),
            Action::AddKey { key, .. } => self.power.annotate(&key.key(), &key.value()),
            Action::RemoveKey { key, .. } => self.power.remove(key),
            Action::KeepBackup { host, backup, .. } => {
                let kept = stored(host, backup.clone());
                self.world
                    .backups
                    .insert(kept.host_uid.clone(), Arc::new(kept));
            }
            Action::DropBackup { stored } => {
                self.world.backups.remove(&stored.host_uid);
            }
            Action::Release(release) => {
                self.world.nodes.remove(release.cleared.node());
            }
            Action::RemoveMachineNeed { machine } => {
                let there = self.world.machines.get_mut(&machine.name).unwrap();
                Arc::make_mut(there).need = None;
            }
            Action::WriteRecord { record, .. } => {
                let text = serde_json::to_string(record).unwrap();
                self.power.annotate("dogwatch.dev/remediation", &text);
            }
            Action::RemoveNodeNeed { .. }
            | Action::RemoveOldBackup { .. }
            | Action::Restore { .. }
            | Action::Untaint { .. }
            | Action::WriteStatus { .. }
            | Action::AddFinalizer { .. }
            | Action::RemoveFinalizer { .. }
            | Action::HandBack { .. } => panic!("not of this flow: {action:?}"),
        }
    }

    fn set_fenced(&mut self, node: &crate::reboot::NodeSeen, fenced: bool) {
        let there = self.world.nodes.get_mut(&node.name).unwrap();
        Arc::make_mut(there).fenced = fenced;
    }
}

/// The table's own writes, and what goes before them.
fn split(actions: Vec<Action>) -> (Vec<Action>, Vec<Action>) {
    actions.into_iter().partition(|action| {
        !matches!(
            action,
            Action::AddKey { .. }
                | Action::Release(_)
                | Action::RemoveMachineNeed { .. }
                | Action::RemoveKey { .. }
        )
    })
}

fn named(moves: &[Action]) -> String {
    let name = |action: &Action| {
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
    let mut known = Known {
        power: Some(power_at(&row.power, now)),
        ..Known::default()
    };
    let (around, config) = (Around::default(), Config::default());
    let decision = decide(&case, &known, &around, &config, now);
    assert_eq!(decision.because.reason, reason::NOTHING_TO_DO);
    let shown = &decision.report.conditions[0];
    assert_eq!(
        (shown.kind, shown.status.as_str(), &*shown.reason),
        ("Remediation", "True", reason::NOTHING_TO_DO)
    );
    assert!(decision.report.events.is_empty());
    assert_eq!(
        decision.wake.as_ref().unwrap().at,
        now.mono + Config::SAY_AFTER
    );
    known.decided(&decision, now.mono);
    let mut later = now;
    later.mono += Config::SAY_AFTER + Duration::from_secs(1);
    let decision = decide(&case, &known, &around, &config, later);
    let event = &decision.report.events[0];
    assert_eq!(event.severity, crate::decision::Severity::Warning);
    assert!(event.message.starts_with("for more than 10m"), "{event:?}");
}
