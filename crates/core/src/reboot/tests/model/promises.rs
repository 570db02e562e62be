//! Checks every write and every command against the promises when it takes effect.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::process::Process;
use super::world::{Command, Cordon, World, boot_id};
use crate::lock;
use crate::policy::window::{WindowOpening, window_opening};
use crate::policy::{self, ClusterPolicies};
use crate::reboot::*;

impl World {
    pub(super) fn hold_patch_to_the_promises(
        &mut self,
        node: usize,
        before: &ObservedNode,
        after: &ObservedNode,
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
        self.hold_record_to_the_promises(node, before, after);
    }

    fn hold_record_to_the_promises(
        &mut self,
        node: usize,
        before: &ObservedNode,
        after: &ObservedNode,
    ) {
        let host = &mut self.hosts[node];
        let (from, to) = (before.record.get(), after.record.get());
        let phase = |record: Option<&RebootRecord>| record.map(|record| record.phase);
        if let Some(to) = to {
            let ours = !after.unschedulable || host.cordon == Cordon::Ours;
            assert!(
                !to.cordoned_by_us || ours,
                "S3: the record claims a foreign cordon"
            );
        }
        let held = Some(RebootPhase::Holding);
        if let Some(from) = from.filter(|_| phase(from) == held && phase(to) != held) {
            let asked = is_hold_requested(before, from);
            let aborts = before.abort != ParsedAnnotation::Absent;
            assert!(
                !asked || aborts,
                "§10.1: a hold ended although it is asked for"
            );
        }
        if phase(to) == Some(RebootPhase::Returning)
            && phase(from) != Some(RebootPhase::Returning)
            && phase(from) != held
        {
            assert_ne!(
                to.unwrap().boot_id,
                boot_id(host.boot),
                "S4: returning without a new boot"
            );
        }
        let aborts = before.abort != ParsedAnnotation::Absent;
        if phase(from) == Some(RebootPhase::Rebooting) && phase(to) < Some(RebootPhase::Rebooting) {
            assert!(
                !host.pending || aborts,
                "§2.4: undone although the command was started"
            );
        }
        if to.is_none()
            && let Some(from) = from
        {
            let was_held = from.trigger.method == RebootMethod::Hold;
            if from.phase == RebootPhase::Returning && !was_held {
                host.returned = Some(self.mono);
            }
            if let Some(last) = after.last_reboot.get().filter(|_| aborts) {
                let prints = last.fingerprints.clone();
                host.served.extend(prints);
                // The person who aborted answers for a command that was started already.
                (host.pending, host.commands) = (false, Vec::new());
            }
            assert!(
                aborts || matches!(from.phase, RebootPhase::Waiting | RebootPhase::Returning),
                "the record went in {from:?}"
            );
            let holds = |lease: &lock::ObservedLease| {
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

    /// S1, when a node goes out of service. Its cordon relies on a count of the members of the
    /// group and the holders of its slots, and on the smallest of the maxima that the decision knew
    /// and that were on the other holders' Leases. A node that joined the group after the count is
    /// not counted here: it went out under the budget of its former group.
    pub(super) fn hold_cordon_to_its_grant(
        &self,
        node: usize,
        before: &ObservedNode,
        after: &ObservedNode,
    ) {
        let waits =
            |node: &ObservedNode| node.record.get().map(|r| r.phase) == Some(RebootPhase::Waiting);
        let drains =
            |node: &ObservedNode| node.record.get().map(|r| r.phase) == Some(RebootPhase::Draining);
        if !waits(before) || !drains(after) || self.forced_unlock {
            return;
        }
        assert!(
            !before.api_lock,
            "§2.7: begins although the lock API has it"
        );
        assert_eq!(
            before.abort,
            ParsedAnnotation::Absent,
            "§2.4: begins although stopped"
        );
        let key = (node, before.resource_version.clone());
        let grant = self.grants.get(&key).expect("S1: a cordon out of nowhere");
        let group = group_of_lease(&grant.lease).unwrap();
        let leases = self.server.leases();
        let held = |name: &str| {
            let holder = format!("node/{name}");
            let mut slots = leases.iter();
            slots.find(|lease| {
                group_of_lease(&lease.name).as_ref() == Some(&group)
                    && lease.holder.as_ref().is_some_and(|h| h.as_str() == holder)
            })
        };
        let own = held(&self.hosts[node].name);
        assert!(own.is_some(), "S1: goes out without a lock of {group}");
        let others: Vec<usize> = (0..self.hosts.len())
            .filter(|other| *other != node && self.is_out(*other))
            .filter(|other| {
                let (of, since) = &self.grouped[*other];
                (*of == group && *since <= grant.counted)
                    || held(&self.hosts[*other].name).is_some()
            })
            .collect();
        let version = |lease: &lock::ObservedLease| lease.resource_version.parse::<u64>().unwrap();
        let maxima = others
            .iter()
            .filter_map(|other| held(&self.hosts[*other].name));
        let maxima = maxima.filter(|lease| version(lease) <= grant.counted);
        let maxima = maxima.filter_map(|lease| Some(lease.record.as_ref()?.max));
        let least = maxima.map(|max| usize::try_from(max).unwrap()).min();
        let max = grant.max.min(least.unwrap_or(usize::MAX));
        let out = others.len();
        assert!(
            out < max,
            "S1: {node} goes out, {others:?} are out, of {max} in {group}"
        );
    }

    /// §2.6: nothing begins without permission of the policy, as far as the process knows.
    pub(super) fn hold_beginning_to_the_promises(&self, node: usize, process: &Process) {
        self.hold_leave_to_the_promises(node, process, true);
    }

    fn hold_leave_to_the_promises(&self, node: usize, process: &Process, begins: bool) {
        let OwnNodeState::There(seen) = &process.seen.node else {
            panic!("acts without a Node")
        };
        let ClusterPolicies::Known(policies) = &process.seen.policies else {
            panic!("§2.6: goes on without knowing the policies")
        };
        let Some(rules) = policy::ruling_policy(policies, &seen.labels) else {
            return;
        };
        let now = self.now(node);
        assert!(
            rules.problems.is_empty(),
            "§2.6: under a policy that is invalid"
        );
        let paused = |pause: &policy::PolicyPause| pause.until.is_none_or(|until| until > now.wall);
        assert!(!rules.paused.as_ref().is_some_and(paused), "§2.6: paused");
        let needs = if begins {
            self.config.drain_timeout
        } else {
            Duration::ZERO
        };
        let open = rules.windows.is_empty()
            || matches!(
                window_opening(&rules.windows, now.wall, needs),
                WindowOpening::Open { .. }
            );
        assert!(open, "§2.6: outside the window");
        let is_hold = |record: &RebootRecord| record.trigger.method == RebootMethod::Hold;
        let counts = begins && !seen.record.get().is_some_and(is_hold);
        let last = self.hosts[node].returned.filter(|_| counts);
        if let (Some(least), Some(last)) = (rules.min_interval, last) {
            let kept = self.mono >= last + least || self.hosts[node].wall_ahead.is_some();
            assert!(kept, "§2.6: too soon after the last one");
        }
        if rules.gates.is_empty() {
            return;
        }
        let answer = process
            .seen
            .start_gates
            .as_ref()
            .expect("§2.6: gates were not asked");
        let age = Duration::from_secs(if begins { 60 } else { 30 });
        assert!(
            answer.gates == rules.gates && answer.shut.is_empty() && answer.taken + age >= now.mono,
            "§2.6: a gate is shut, or was not asked"
        );
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
            (RebootPhase::Rebooting, attempt),
            "S5: not what stands"
        );
        assert_eq!(
            record.trigger.method,
            RebootMethod::Reboot,
            "§10.1: the command of another method"
        );
        let held =
            |lease: &lock::ObservedLease| lease.holder.as_ref() == Some(&process.seen.run.holder);
        let holds = self.server.leases().iter().any(held);
        assert!(
            holds || self.forced_unlock,
            "S1: the command without the lock"
        );
        let OwnNodeState::There(seen) = &process.seen.node else {
            panic!("acts without a Node")
        };
        let rule = policy::resolve_policy(&process.seen.policies, &seen.labels, &self.config);
        let rules = rule.config.pod_rules;
        let drained = process
            .seen
            .drain
            .as_ref()
            .is_some_and(|drain| drain.progress.is_drained() && drain.progress.rules == rules);
        if attempt == 1 {
            self.hold_leave_to_the_promises(node, process, false);
        }
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

    fn hold_attempt_to_the_promises(&self, node: usize, record: &RebootRecord) {
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

    /// S1: Dogwatch never takes more nodes out of service than the budget allows.
    pub(super) fn check_budget(&self) {
        if self.policies.len() > 1 {
            // With several groups whose maxima change, each node is checked when it goes out.
            return;
        }
        let out = (0..self.hosts.len()).filter(|node| self.is_out(*node));
        let out: Vec<usize> = out.collect();
        assert!(
            out.len() <= self.max || self.forced_unlock,
            "S1: {out:?} are out"
        );
    }

    fn is_out(&self, node: usize) -> bool {
        let (host, record) = (&self.hosts[node], &self.server.node(node).record);
        let phase = record.get().map(|record| record.phase);
        // A person's abort outranks a reboot that may still come.
        let stopped =
            self.server.node(node).abort != ParsedAnnotation::Absent && host.cordon != Cordon::Ours;
        !stopped
            && (host.cordon == Cordon::Ours
                || host.pending
                || matches!(
                    phase,
                    Some(RebootPhase::Draining | RebootPhase::Holding | RebootPhase::Rebooting)
                ))
    }
}
