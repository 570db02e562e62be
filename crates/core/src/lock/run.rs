//! Which runs rely on a lock: taking over from an older one, and leaving.

use super::{HolderId, LeaseSeen, LockRecord};
use crate::name::RunId;

/// How a Lease stands to one run of a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Free, or somebody else's.
    NotHeld,
    /// This run is written in the record: it may rely on the lock.
    Ours,
    /// Held by the same holder, but this run is not written there. Before it relies on the lock it
    /// writes [`adopted`], and these older runs of its own kind go.
    OtherRun {
        /// Runs that are replaced; none if the record cannot be read.
        replaces: Vec<RunId>,
    },
}

/// How to give up a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Nothing of this run is there (any more).
    Nothing,
    /// Others rely on it: only our id goes.
    RemoveRun {
        /// Who stays.
        remaining: Vec<RunId>,
    },
    /// We are the last one out.
    Free,
}

/// How this Lease stands to `run` of `me`.
pub fn standing(lease: &LeaseSeen, me: &HolderId, run: &RunId) -> Standing {
    if lease.holder.as_ref() != Some(me) {
        return Standing::NotHeld;
    }
    match &lease.record {
        Some(record) if record.runs.contains(run) => Standing::Ours,
        Some(record) => Standing::OtherRun {
            replaces: record
                .runs
                .iter()
                .filter(|other| same_kind(other, run))
                .cloned()
                .collect(),
        },
        None => Standing::OtherRun {
            replaces: Vec::new(),
        },
    }
}

/// The record that `run` writes before it relies on a Lease that its holder has already.
///
/// `fresh` is what it would write on a new win. From the record that is there stay: since when and
/// for what the lock was taken (the boot in which, above all), and runs of another kind. A record
/// that cannot be read is replaced whole.
pub fn adopted(lease: &LeaseSeen, run: &RunId, fresh: LockRecord) -> LockRecord {
    let Some(old) = &lease.record else {
        return LockRecord {
            runs: vec![run.clone()],
            ..fresh
        };
    };
    let mut runs: Vec<RunId> = old
        .runs
        .iter()
        .filter(|other| !same_kind(other, run))
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

/// What `run` of `me` does to give the lock up. Only its own id is its to remove; a record that
/// cannot be read may hide others, so it is adopted first.
pub fn release_plan(lease: &LeaseSeen, me: &HolderId, run: &RunId) -> Release {
    if standing(lease, me, run) != Standing::Ours {
        return Release::Nothing;
    }
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    let remaining: Vec<RunId> = runs.filter(|other| *other != run).cloned().collect();
    if remaining.is_empty() {
        Release::Free
    } else {
        Release::RemoveRun { remaining }
    }
}

/// Runs of one kind replace each other: there is one coordinator per node, but any number of
/// requests. An id's first part names the kind; each request is a kind of its own.
fn same_kind(a: &RunId, b: &RunId) -> bool {
    const COORDINATOR: &str = "coordinator/";
    a == b || (a.as_str().starts_with(COORDINATOR) && b.as_str().starts_with(COORDINATOR))
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
            (free(0), Standing::NotHeld),
            (held(0, "n2", &["coordinator/b"]), Standing::NotHeld),
            (held(0, "n1", &["coordinator/b", "api/x"]), Standing::Ours),
            (
                held(0, "n1", &["coordinator/a", "api/x"]),
                Standing::OtherRun {
                    replaces: vec![run("coordinator/a")],
                },
            ),
            (
                LeaseSeen {
                    record: None,
                    ..held(0, "n1", &[])
                },
                Standing::OtherRun { replaces: vec![] },
            ),
        ];
        for (lease, expected) in table {
            assert_eq!(standing(&lease, &me, &mine), expected, "{lease:?}");
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
        let adopted = adopted(&lease, &run("coordinator/b"), fresh);
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
            adopted(&lease, &run("coordinator/b"), fresh).boot_id,
            boot("before")
        );
    }

    #[test]
    fn an_unreadable_record_is_replaced_before_anybody_relies_on_it_or_frees_it() {
        let lease = LeaseSeen {
            record: None,
            ..held(0, "n1", &[])
        };
        let mine = run("coordinator/b");
        assert_eq!(release_plan(&lease, &node("n1"), &mine), Release::Nothing);
        assert_eq!(adopted(&lease, &mine, record("n1", &[])).runs, [mine]);
    }

    #[test]
    fn one_request_never_replaces_another() {
        let lease = held(0, "n1", &["api/x"]);
        let mine = run("api/y");
        assert_eq!(
            standing(&lease, &node("n1"), &mine),
            Standing::OtherRun { replaces: vec![] }
        );
        assert_eq!(
            adopted(&lease, &mine, record("n1", &[])).runs,
            [run("api/x"), mine]
        );
    }

    #[test]
    fn the_last_one_out_frees_and_nobody_else() {
        let me = node("n1");
        let mine = run("coordinator/b");
        let table = [
            (free(0), Release::Nothing),
            (held(0, "n2", &["coordinator/b"]), Release::Nothing),
            (held(0, "n1", &["coordinator/c"]), Release::Nothing),
            (held(0, "n1", &["coordinator/b"]), Release::Free),
            (
                held(0, "n1", &["coordinator/b", "api/x"]),
                Release::RemoveRun {
                    remaining: vec![run("api/x")],
                },
            ),
        ];
        for (lease, expected) in table {
            assert_eq!(release_plan(&lease, &me, &mine), expected, "{lease:?}");
        }
    }
}
