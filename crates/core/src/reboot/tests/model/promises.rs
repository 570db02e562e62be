//! Every write and every command is held against the promises at the moment it takes effect.

use std::time::Duration;

use super::process::Process;
use super::world::{Command, Cordon, World, boot_id};
use crate::lock;
use crate::reboot::*;

impl World {
    pub(super) fn hold_patch_to_the_promises(
        &mut self,
        node: usize,
        before: &NodeSeen,
        after: &NodeSeen,
    ) {
        let host = &mut self.hosts[node];
        match (before.unschedulable, after.unschedulable) {
            (true, false) => {
                assert_eq!(
                    host.cordon,
                    Cordon::Ours,
                    "S3: a cordon that is not ours was removed"
                );
                host.cordon = Cordon::None;
            }
            (false, true) => host.cordon = Cordon::Ours,
            (true, true) | (false, false) => {}
        }
        let (from, to) = (before.record.get(), after.record.get());
        let phase = |record: Option<&Record>| record.map(|record| record.phase);
        if let Some(to) = to {
            let ours = !after.unschedulable || host.cordon == Cordon::Ours;
            assert!(
                !to.cordoned_by_us || ours,
                "S3: the record claims a foreign cordon"
            );
        }
        if phase(to) == Some(Phase::Returning) && phase(from) != Some(Phase::Returning) {
            assert_ne!(
                to.unwrap().boot_id,
                boot_id(host.boot),
                "S4: returning without a new boot"
            );
        }
        if phase(from) == Some(Phase::Rebooting) && phase(to) < Some(Phase::Rebooting) {
            assert!(
                !host.pending,
                "§2.4: undone although the command was started"
            );
        }
        if to.is_none()
            && let Some(from) = from
        {
            assert!(
                matches!(from.phase, Phase::Waiting | Phase::Returning),
                "the record went in {from:?}"
            );
            let holds = |lease: &lock::LeaseSeen| {
                lease
                    .record
                    .as_ref()
                    .is_some_and(|record| record.runs.contains(&from.run))
            };
            assert!(
                !self.server.leases().iter().any(holds),
                "S6: the record went before the lock"
            );
        }
    }

    pub(super) fn hold_command_to_the_promises(
        &mut self,
        node: usize,
        process: &Process,
        attempt: u32,
    ) {
        let record = self
            .server
            .node(node)
            .record
            .get()
            .expect("S5: no record stands")
            .clone();
        assert_eq!(
            (record.phase, record.attempts),
            (Phase::Rebooting, attempt),
            "S5: not what stands"
        );
        let held =
            |lease: &lock::LeaseSeen| lease.holder.as_ref() == Some(&process.seen.run.holder);
        let holds = self.server.leases().iter().any(held);
        assert!(
            holds || self.forced_unlock,
            "S1: the command without the lock"
        );
        let NodeFact::There(seen) = &process.seen.node else {
            panic!("acts without a Node")
        };
        let drained = process
            .seen
            .drain
            .as_ref()
            .is_some_and(|drain| drain.progress.drained());
        assert!(
            seen.unschedulable && (drained || record.forced),
            "§2.4: not cordoned or not drained"
        );
        self.hold_attempt_to_the_promises(node, &record);
        let host = &mut self.hosts[node];
        let fresh = record
            .serves
            .iter()
            .any(|(s, f)| !host.served.contains(&(s.clone(), f.clone())));
        let serves = &record.serves;
        assert!(
            fresh,
            "S5: a trigger that was served causes another reboot: {serves:?}"
        );
        let (boot, at) = (host.boot, self.mono);
        host.commands.push(Command { boot, record, at });
    }

    fn hold_attempt_to_the_promises(&self, node: usize, record: &Record) {
        let (host, config) = (&self.hosts[node], &self.config);
        assert!(
            record.attempts <= config.reboot_attempts,
            "§2.4: more attempts than allowed"
        );
        let same = |c: &&Command| c.boot == host.boot && c.record.planned == record.planned;
        for earlier in host.commands.iter().filter(same) {
            assert_ne!(
                earlier.record.attempts, record.attempts,
                "S5: one attempt, two commands"
            );
            // Counted from the intention, which the command follows within ten seconds.
            let passed = self.mono.saturating_sub(earlier.at) + Duration::from_secs(10);
            let kept = passed >= config.reboot_timeout;
            assert!(
                kept || host.wall_ahead.is_some(),
                "§2.4: the next attempt before rebootTimeout"
            );
        }
    }

    /// S1: never more nodes out on our account than the budget allows.
    pub(super) fn check_budget(&self) {
        let out = |node: &usize| {
            let phase = self
                .server
                .node(*node)
                .record
                .get()
                .map(|record| record.phase);
            self.hosts[*node].cordon == Cordon::Ours
                || self.hosts[*node].pending
                || matches!(phase, Some(Phase::Draining | Phase::Rebooting))
        };
        let out: Vec<usize> = (0..self.hosts.len()).filter(out).collect();
        assert!(
            out.len() <= self.max || self.forced_unlock,
            "S1: {out:?} are out"
        );
    }
}
