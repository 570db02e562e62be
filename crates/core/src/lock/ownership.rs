//! Which runs rely on a lock: how a run takes over from an older one, and how it leaves.

use super::{HolderId, LockRecord, ObservedLease};
use crate::name::RunId;

/// The relation of a Lease to one run of a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockOwnership {
    /// Free, or held by somebody else.
    NotHeld,
    /// The record names this run: the run may rely on the lock.
    Ours,
    /// The same holder holds it, but the record does not name this run. Before the run relies on
    /// the lock, it writes [`adopt_record`], which removes the older runs of its own kind.
    OtherRun {
        /// The runs to be replaced; empty if the record cannot be read.
        replaces: Vec<RunId>,
    },
}

/// How a run gives up a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockReleasePlan {
    /// The Lease does not name this run (any more).
    Nothing,
    /// Other runs rely on the lock: only this run's id is removed.
    RemoveRun { remaining: Vec<RunId> },
    /// This run is the last one: the Lease becomes free.
    Free,
}

pub fn lock_ownership(lease: &ObservedLease, me: &HolderId, run: &RunId) -> LockOwnership {
    if lease.holder.as_ref() != Some(me) {
        return LockOwnership::NotHeld;
    }
    match &lease.record {
        Some(record) if record.runs.contains(run) => LockOwnership::Ours,
        Some(record) => LockOwnership::OtherRun {
            replaces: record
                .runs
                .iter()
                .filter(|other| is_same_run_kind(other, run))
                .cloned()
                .collect(),
        },
        None => LockOwnership::OtherRun {
            replaces: Vec::new(),
        },
    }
}

/// The record that `run` writes before it relies on a Lease that its holder has already.
///
/// `fresh` is what the run would write on a new win. From the existing record stay: since when and
/// for what the lock was taken (above all the boot), and runs of another kind. An unreadable record
/// is replaced as a whole.
pub fn adopt_record(lease: &ObservedLease, run: &RunId, fresh: LockRecord) -> LockRecord {
    let Some(old) = &lease.record else {
        return LockRecord {
            runs: vec![run.clone()],
            ..fresh
        };
    };
    let mut runs: Vec<RunId> = old
        .runs
        .iter()
        .filter(|other| !is_same_run_kind(other, run))
        .cloned()
        .collect();
    runs.push(run.clone());
    LockRecord {
        node: old.node.clone().or(fresh.node),
        node_uid: old.node_uid.clone().or(fresh.node_uid),
        boot_id: old.boot_id.clone().or(fresh.boot_id),
        group: old.group.clone(),
        max: fresh.max,
        since: old.since,
        runs,
    }
}

/// How `run` of `me` gives up the lock. A run may remove only its own id. An unreadable record may
/// hide other runs, so the run adopts it first.
pub fn plan_release(lease: &ObservedLease, me: &HolderId, run: &RunId) -> LockReleasePlan {
    if lock_ownership(lease, me, run) != LockOwnership::Ours {
        return LockReleasePlan::Nothing;
    }
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    let remaining: Vec<RunId> = runs.filter(|other| *other != run).cloned().collect();
    if remaining.is_empty() {
        LockReleasePlan::Free
    } else {
        LockReleasePlan::RemoveRun { remaining }
    }
}

/// Runs of one kind replace each other: a node has one coordinator, but any number of requests. The
/// first part of an id names the kind; each request is a kind of its own.
fn is_same_run_kind(a: &RunId, b: &RunId) -> bool {
    const COORDINATOR_PREFIX: &str = "coordinator/";
    a == b
        || (a.as_str().starts_with(COORDINATOR_PREFIX)
            && b.as_str().starts_with(COORDINATOR_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{free, held, node, record, run};
    use super::*;

    #[test]
    fn a_run_relies_only_on_a_lease_that_names_it() {
        let me = node("n1");
        let mine = run("coordinator/b");
        let table = [
            (free(0), LockOwnership::NotHeld),
            (held(0, "n2", &["coordinator/b"]), LockOwnership::NotHeld),
            (
                held(0, "n1", &["coordinator/b", "api/x"]),
                LockOwnership::Ours,
            ),
            (
                held(0, "n1", &["coordinator/a", "api/x"]),
                LockOwnership::OtherRun {
                    replaces: vec![run("coordinator/a")],
                },
            ),
            (
                ObservedLease {
                    record: None,
                    ..held(0, "n1", &[])
                },
                LockOwnership::OtherRun { replaces: vec![] },
            ),
        ];
        for (lease, expected) in table {
            assert_eq!(lock_ownership(&lease, &me, &mine), expected, "{lease:?}");
        }
    }

    #[test]
    fn a_new_run_replaces_the_older_coordinator_and_no_request() {
        let lease = held(0, "n1", &["coordinator/a", "api/x"]);
        let fresh = LockRecord {
            max: 3,
            node_uid: Some("other".into()),
            ..record("n1", &[])
        };
        let adopted = adopt_record(&lease, &run("coordinator/b"), fresh);
        assert_eq!(adopted.runs, [run("api/x"), run("coordinator/b")]);
        assert_eq!(adopted.max, 3);
        assert_eq!(
            adopted.node_uid.as_deref(),
            Some("uid-n1"),
            "what it was taken for stays"
        );
    }

    #[test]
    fn the_boot_in_which_the_lock_was_taken_outlives_the_run() {
        let boot = |text: &str| Some(crate::name::BootId::new(text).unwrap());
        let mut lease = held(0, "n1", &["coordinator/a"]);
        lease.record.as_mut().unwrap().boot_id = boot("before");
        let fresh = LockRecord {
            boot_id: boot("after"),
            ..record("n1", &[])
        };
        assert_eq!(
            adopt_record(&lease, &run("coordinator/b"), fresh).boot_id,
            boot("before")
        );
    }

    #[test]
    fn an_unreadable_record_is_replaced_before_anybody_relies_on_it_or_frees_it() {
        let lease = ObservedLease {
            record: None,
            ..held(0, "n1", &[])
        };
        let mine = run("coordinator/b");
        assert_eq!(
            plan_release(&lease, &node("n1"), &mine),
            LockReleasePlan::Nothing
        );
        assert_eq!(adopt_record(&lease, &mine, record("n1", &[])).runs, [mine]);
    }

    #[test]
    fn one_request_never_replaces_another() {
        let lease = held(0, "n1", &["api/x"]);
        let mine = run("api/y");
        assert_eq!(
            lock_ownership(&lease, &node("n1"), &mine),
            LockOwnership::OtherRun { replaces: vec![] }
        );
        assert_eq!(
            adopt_record(&lease, &mine, record("n1", &[])).runs,
            [run("api/x"), mine]
        );
    }

    #[test]
    fn the_last_one_out_frees_and_nobody_else() {
        let me = node("n1");
        let mine = run("coordinator/b");
        let table = [
            (free(0), LockReleasePlan::Nothing),
            (held(0, "n2", &["coordinator/b"]), LockReleasePlan::Nothing),
            (held(0, "n1", &["coordinator/c"]), LockReleasePlan::Nothing),
            (held(0, "n1", &["coordinator/b"]), LockReleasePlan::Free),
            (
                held(0, "n1", &["coordinator/b", "api/x"]),
                LockReleasePlan::RemoveRun {
                    remaining: vec![run("api/x")],
                },
            ),
        ];
        for (lease, expected) in table {
            assert_eq!(plan_release(&lease, &me, &mine), expected, "{lease:?}");
        }
    }
}
