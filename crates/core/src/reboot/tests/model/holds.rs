//! Holds in the model world: asked for and withdrawn at any moment.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::kit;
use super::Happens;
use super::world::World;
use crate::reboot::*;

fn asks_for_hold(node: &ObservedNode) -> bool {
    let request = node.request.get();
    request.is_some_and(|request| request.method == RebootMethod::Hold)
}

impl World {
    /// A controller puts a hold only where nothing else is asked for.
    pub(super) fn ask_for_hold(&mut self, node: usize) {
        if self.server.node(node).request != ParsedAnnotation::Absent {
            return;
        }
        self.hosts[node].prints += 1;
        let number = self.hosts[node].prints;
        let asked = NodeRebootRef {
            name: "nr".into(),
            uid: number.to_string(),
        };
        self.server.change(node, |node| {
            node.request = ParsedAnnotation::Is(RebootRequest {
                method: RebootMethod::Hold,
                node_reboots: vec![asked],
                ..RebootRequest::default()
            });
            node.request_fingerprint = Some(TriggerFingerprint(number.to_string()));
        });
    }

    pub(super) fn withdraw_hold(&mut self, node: usize) {
        if asks_for_hold(self.server.node(node)) {
            self.server.change(node, |node| {
                node.request = ParsedAnnotation::Absent;
                node.request_fingerprint = None;
            });
        }
    }
}

/// The model proves nothing about holds if none begins, or none outlives a boot.
#[test]
fn holds_begin_and_outlive_boots_in_the_model() {
    let mut world = World::new(2, 1, true, super::super::super::DrainTimeoutAction::Abort);
    for what in [Happens::Starts, Happens::Holds, Happens::PodGoes] {
        world.happens(0, &what);
    }
    for _ in 0..12 {
        world.happens(0, &Happens::Works { turns: 5 });
    }
    let phase = |world: &World| world.server.node(0).record.get().map(|record| record.phase);
    assert_eq!(
        phase(&world),
        Some(RebootPhase::Holding),
        "{}",
        world.words()
    );
    world.happens(0, &Happens::Boots { surprise: true });
    for what in [
        Happens::Kubelet,
        Happens::Starts,
        Happens::Works { turns: 5 },
    ] {
        world.happens(0, &what);
    }
    let record = world.server.node(0).record.get().unwrap().clone();
    assert_eq!(
        (record.phase, record.boot_id),
        (RebootPhase::Holding, kit::boot("boot-2"))
    );
    world.comes_to_its_end();
    let last = world.server.node(0).last_reboot.get().unwrap().clone();
    assert_eq!(last.outcome, RebootOutcome::Released);
}
