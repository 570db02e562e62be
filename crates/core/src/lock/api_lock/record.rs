//! The record of the requests that rely on a lock: how one is added, and marked as answered.

use super::super::{LockRecord, ObservedLease, adopt_record};
use super::{answered_run_id, is_run_answered, process_of_request};
use crate::name::RunId;

/// How many answered requests a record keeps. A client that repeats its call for ever must not fill
/// it; a request was answered long ago when this many came after it.
const REMEMBERED_REQUESTS: usize = 32;

/// The record that a request writes before it relies on a Lease that is free or held by its own
/// host. `fresh` is what it would write on a win. `returned` tells whether an answered request of
/// this process has had its answer delivered: one of those is enough to keep the lock.
pub fn adopt_request_record(
    lease: &ObservedLease,
    run: &RunId,
    fresh: LockRecord,
    returned: impl Fn(&RunId) -> bool,
) -> LockRecord {
    let record = adopt_record(lease, run, fresh);
    let newest = record.runs.iter().rfind(|other| returned(other)).cloned();
    let keep = |other: &RunId| !returned(other) || newest.as_ref() == Some(other);
    let runs: Vec<RunId> = record.runs.into_iter().filter(keep).collect();
    let record = LockRecord { runs, ..record };
    LockRecord {
        runs: trim_answered_runs(record.runs),
        ..record
    }
}

/// The record after this run's client may be told that it holds. `None`: the record does not name
/// the run (any more), so the run does not hold the lock.
pub fn mark_request_answered(record: &LockRecord, run: &RunId) -> Option<LockRecord> {
    let told = answered_run_id(run);
    if !record
        .runs
        .iter()
        .any(|other| other == run || *other == told)
    {
        return None;
    }
    let others = record
        .runs
        .iter()
        .filter(|other| *other != run && **other != told);
    let mut runs: Vec<RunId> = others.cloned().collect();
    runs.push(told);
    Some(LockRecord {
        runs,
        ..record.clone()
    })
}

fn trim_answered_runs(runs: Vec<RunId>) -> Vec<RunId> {
    let told = |run: &&RunId| is_run_answered(run) && process_of_request(run).is_some();
    let mut too_many = runs
        .iter()
        .filter(told)
        .count()
        .saturating_sub(REMEMBERED_REQUESTS);
    let keep = |run: &RunId| {
        let drop = too_many > 0 && told(&run);
        too_many -= usize::from(drop);
        !drop
    };
    runs.into_iter().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::testkit::{free, held, record, run};
    use super::*;

    fn runs(record: &LockRecord) -> Vec<&str> {
        record.runs.iter().map(RunId::as_str).collect()
    }

    #[test]
    fn a_request_joins_those_that_rely_on_the_lock_and_replaces_none() {
        let mine = run("api/p/2");
        let fresh = || record("h", &["api/p/2"]);
        let adopted = adopt_request_record(&free(0), &mine, fresh(), |_| false);
        assert_eq!(runs(&adopted), ["api/p/2"]);
        let lease = held(0, "h", &["answered/q/1", "api/p/1"]);
        let adopted = adopt_request_record(&lease, &mine, fresh(), |_| false);
        assert_eq!(runs(&adopted), ["answered/q/1", "api/p/1", "api/p/2"]);
    }

    #[test]
    fn of_our_own_answers_that_were_handed_over_one_is_kept() {
        let lease = held(
            0,
            "h",
            &["answered/p/1", "answered/q/1", "answered/p/2", "api/p/3"],
        );
        let mine = run("api/p/4");
        let adopted = adopt_request_record(&lease, &mine, record("h", &["api/p/4"]), |other| {
            other.as_str().starts_with("answered/p/")
        });
        assert_eq!(
            runs(&adopted),
            ["answered/q/1", "answered/p/2", "api/p/3", "api/p/4"]
        );
    }

    #[test]
    fn a_client_that_repeats_itself_for_ever_does_not_fill_the_record() {
        let many: Vec<String> = (0..100).map(|n| format!("answered/p{n}/1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let lease = held(0, "h", &many);
        let adopted = adopt_request_record(&lease, &run("api/q/1"), record("h", &[]), |_| false);
        assert_eq!(adopted.runs.len(), REMEMBERED_REQUESTS + 1);
        assert_eq!(
            adopted.runs[REMEMBERED_REQUESTS - 1].as_str(),
            "answered/p99/1"
        );
    }

    #[test]
    fn only_a_run_that_is_written_there_may_be_told() {
        let stands = record("h", &["api/p/1", "api/p/2"]);
        let told = mark_request_answered(&stands, &run("api/p/1")).unwrap();
        assert_eq!(runs(&told), ["api/p/2", "answered/p/1"]);
        assert_eq!(mark_request_answered(&told, &run("api/p/1")), Some(told));
        assert_eq!(mark_request_answered(&stands, &run("api/p/3")), None);
    }
}
