//! Single steps of one elector.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::Now;

fn at(milliseconds: u64) -> Now {
    let wall = i64::try_from(milliseconds).unwrap() + 1_700_000_000_000;
    Now {
        wall: Timestamp::from_millisecond(wall).unwrap(),
        mono: Duration::from_millis(milliseconds),
    }
}

fn lease(version: u32, holder: Option<&str>, renewed: Timestamp) -> LeaderLease {
    LeaderLease {
        uid: "u".into(),
        resource_version: version.to_string(),
        holder: holder.map(str::to_owned),
        renewed: Some(renewed),
        transitions: 1,
        released: false,
    }
}

fn there(version: u32, holder: Option<&str>, renewed: Timestamp) -> ObservedLeaderLease {
    ObservedLeaderLease::There(lease(version, holder, renewed))
}

fn elector() -> LeaderElector {
    LeaderElector::new("me", 0.0)
}

fn other(version: u32) -> ObservedLeaderLease {
    there(version, Some("other"), at(u64::from(version)).wall)
}

/// The Lease after the API server has applied a write.
fn done(write: &LeaderLeaseWrite, version: u32) -> ObservedLeaderLease {
    match write {
        LeaderLeaseWrite::Create => ObservedLeaderLease::There(LeaderLease {
            transitions: 0,
            renewed: None,
            ..lease(version, None, at(0).wall)
        }),
        LeaderLeaseWrite::Take { renewed, .. } | LeaderLeaseWrite::Renew { renewed, .. } => {
            there(version, Some("me"), *renewed)
        }
        LeaderLeaseWrite::Release { .. } => ObservedLeaderLease::There(LeaderLease {
            released: true,
            ..lease(version, None, at(0).wall)
        }),
    }
}

fn write(step: ElectionStep) -> LeaderLeaseWrite {
    match step {
        ElectionStep::Write(write) => write,
        ElectionStep::Read | ElectionStep::Wait { .. } => panic!("no write: {step:?}"),
    }
}

/// An elector that took a released Lease at second 1.
fn leading() -> LeaderElector {
    let mut elector = elector();
    elector.observe_lease(
        done(
            &LeaderLeaseWrite::Release {
                lease: lease(1, None, at(0).wall),
            },
            5,
        ),
        at(900),
    );
    let take = write(elector.next_step(at(1_000)));
    elector.observe_lease(done(&take, 6), at(1_100));
    elector
}

#[test]
fn anothers_record_is_waited_out_by_our_own_clock_whatever_its_times_say() {
    let mut elector = elector();
    assert_eq!(elector.next_step(at(0)), ElectionStep::Read);
    // An hour old by its writer's clock, which proves nothing.
    elector.observe_lease(there(1, Some("other"), Timestamp::UNIX_EPOCH), at(2_000));
    let until = Duration::from_secs(17);
    assert_eq!(elector.next_step(at(16_999)), ElectionStep::Wait { until });
    assert!(matches!(
        write(elector.next_step(at(17_000))),
        LeaderLeaseWrite::Take { .. }
    ));
    assert_eq!(elector.current_term(at(17_001)), None, "asked is not won");
}

#[test]
fn a_renewal_begins_the_wait_anew_and_somebody_elses_label_does_not() {
    let mut elector = elector();
    elector.observe_lease(other(1), at(0));
    elector.observe_lease(other(2), at(10_000));
    let ObservedLeaderLease::There(labelled) = other(2) else {
        unreachable!()
    };
    let labelled = LeaderLease {
        resource_version: "3".into(),
        ..labelled
    };
    elector.observe_lease(ObservedLeaderLease::There(labelled.clone()), at(20_000));
    let until = Duration::from_secs(25);
    assert_eq!(elector.next_step(at(20_000)), ElectionStep::Wait { until });
    let written = write(elector.next_step(at(25_000)));
    let LeaderLeaseWrite::Take { lease, .. } = &written else {
        panic!("{written:?}");
    };
    assert_eq!(*lease, labelled, "the newest version is bid for");
}

#[test]
fn what_its_holder_gave_back_is_taken_at_once_and_what_is_merely_free_is_not() {
    let elector = leading();
    assert_eq!(
        elector.current_term(at(1_100)).map(|term| term.number),
        Some(1)
    );
    let mut cautious = super::tests::elector();
    cautious.observe_lease(there(1, None, at(0).wall), at(0));
    assert_eq!(
        cautious.next_step(at(1)),
        ElectionStep::Wait {
            until: LEASE_DURATION
        }
    );
}

#[test]
fn a_missing_lease_is_made_free_and_then_waited_out() {
    let mut elector = elector();
    elector.observe_lease(ObservedLeaderLease::Missing, at(0));
    let create = write(elector.next_step(at(0)));
    assert_eq!(create, LeaderLeaseWrite::Create);
    elector.observe_lease(done(&create, 1), at(100));
    let until = Duration::from_millis(15_100);
    assert_eq!(elector.next_step(at(100)), ElectionStep::Wait { until });
}

#[test]
fn a_term_counts_from_when_the_renewal_was_sent() {
    let mut elector = leading();
    assert_eq!(elector.current_term(at(1_100)).unwrap().until, at(11_000));
    let renew = write(elector.next_step(at(4_000)));
    assert!(matches!(renew, LeaderLeaseWrite::Renew { .. }));
    elector.observe_lease(done(&renew, 7), at(9_000));
    assert_eq!(elector.current_term(at(9_000)).unwrap().until, at(14_000));
    assert_eq!(
        elector.current_term(at(13_999)).map(|term| term.number),
        Some(1)
    );
    assert_eq!(elector.current_term(at(14_000)), None);
}

#[test]
fn a_renewal_that_was_never_answered_counts_once_it_is_seen() {
    let mut elector = leading();
    let renew = write(elector.next_step(at(4_000)));
    elector.record_call_failure(at(7_000));
    assert_eq!(
        elector.next_step(at(7_500)),
        ElectionStep::Wait {
            until: Duration::from_secs(8)
        }
    );
    elector.observe_lease(done(&renew, 7), at(7_600));
    assert_eq!(elector.current_term(at(7_600)).unwrap().until, at(14_000));
}

#[test]
fn who_is_late_begins_a_new_term_even_if_nobody_else_came() {
    let mut elector = leading();
    let renew = write(elector.next_step(at(30_000)));
    assert!(
        matches!(renew, LeaderLeaseWrite::Renew { .. }),
        "the record is ours still"
    );
    assert_eq!(elector.current_term(at(30_001)), None);
    elector.observe_lease(done(&renew, 7), at(30_100));
    assert_eq!(
        elector.current_term(at(30_100)).map(|term| term.number),
        Some(2)
    );
}

#[test]
fn it_steps_down_at_once_when_the_lease_is_gone_taken_or_cleared() {
    for sight in [
        ObservedLeaderLease::Missing,
        other(9),
        there(9, None, at(9).wall),
    ] {
        let mut elector = leading();
        elector.observe_lease(sight.clone(), at(2_000));
        assert_eq!(elector.current_term(at(2_000)), None, "{sight:?}");
    }
}

#[test]
fn our_name_on_a_record_that_we_did_not_write_is_another_process() {
    let mut elector = leading();
    elector.observe_lease(there(9, Some("me"), at(77).wall), at(2_000));
    assert_eq!(elector.current_term(at(2_000)), None);
    let until = Duration::from_secs(17);
    assert_eq!(elector.next_step(at(2_000)), ElectionStep::Wait { until });
}

#[test]
fn a_watch_that_lags_behind_an_answer_takes_nothing_back() {
    let mut elector = leading();
    elector.observe_lease(there(5, None, at(0).wall), at(1_200));
    assert!(elector.current_term(at(1_200)).is_some());
}

#[test]
fn an_answer_that_is_older_than_the_version_asked_with_is_a_restored_store() {
    let mut leader = leading();
    let renew = write(leader.next_step(at(4_000)));
    assert_eq!(renew.decided_on().unwrap().resource_version, "6");
    // The backup is from before this process took the Lease.
    leader.observe_answer(there(3, Some("other"), at(3).wall), at(4_100));
    assert_eq!(leader.current_term(at(4_100)), None);
    let until = Duration::from_millis(4_100) + LEASE_DURATION;
    assert_eq!(leader.next_step(at(4_100)), ElectionStep::Wait { until });
    let take = write(leader.next_step(at(19_100)));
    assert_eq!(take.decided_on().unwrap().resource_version, "3");
    leader.observe_answer(done(&take, 4), at(19_200));
    assert!(leader.current_term(at(19_200)).is_some());
}

#[test]
fn a_backup_that_has_our_renewal_is_renewed_by_its_own_version() {
    let mut leader = leading();
    let renew = write(leader.next_step(at(4_000)));
    leader.observe_answer(done(&renew, 7), at(4_100));
    let again = write(leader.next_step(at(7_000)));
    assert_eq!(again.decided_on().unwrap().resource_version, "7");
    leader.observe_answer(there(6, Some("me"), at(1_000).wall), at(7_100));
    let term = leader.current_term(at(7_100)).unwrap();
    assert_eq!(term.until.mono, Duration::from_secs(1) + RENEW_DEADLINE);
    let renew = write(leader.next_step(at(7_100)));
    assert_eq!(renew.decided_on().unwrap().resource_version, "6");
}

#[test]
fn an_answer_that_was_overtaken_by_the_watch_takes_nothing_back() {
    let mut elector = elector();
    assert_eq!(elector.next_step(at(0)), ElectionStep::Read);
    elector.observe_lease(other(9), at(100));
    elector.observe_answer(other(8), at(200));
    let until = Duration::from_millis(100) + LEASE_DURATION;
    assert_eq!(elector.next_step(at(200)), ElectionStep::Wait { until });
}

#[test]
fn a_clock_set_back_neither_repeats_a_renewal_nor_prolongs_a_term() {
    let mut elector = leading();
    let back = |milliseconds| Now {
        wall: Timestamp::UNIX_EPOCH,
        ..at(milliseconds)
    };
    let LeaderLeaseWrite::Renew { lease, renewed } = write(elector.next_step(back(4_000))) else {
        panic!("no renewal")
    };
    assert!(Some(renewed) > lease.renewed, "{renewed}");
    elector.observe_lease(there(7, Some("me"), renewed), back(4_100));
    assert!(elector.current_term(back(13_999)).is_some());
    assert_eq!(elector.current_term(back(14_000)), None);
}

#[test]
fn a_machine_that_was_suspended_knows_by_its_wall_clock() {
    let elector = leading();
    let woken = Now {
        wall: at(600_000).wall,
        ..at(1_200)
    };
    assert_eq!(elector.current_term(woken), None);
}

#[test]
fn who_ends_acts_no_more_and_then_gives_the_lease_back() {
    let mut elector = leading();
    elector.stop();
    assert_eq!(elector.current_term(at(1_200)), None);
    assert!(!elector.is_done());
    let release = write(elector.next_step(at(1_200)));
    assert!(
        matches!(&release, LeaderLeaseWrite::Release { lease } if lease.resource_version == "6")
    );
    elector.observe_lease(done(&release, 7), at(1_300));
    assert!(elector.is_done());
}

#[test]
fn who_ends_without_leading_leaves_the_lease_alone() {
    let mut elector = elector();
    elector.observe_lease(other(1), at(0));
    elector.stop();
    assert!(elector.is_done());
    assert_eq!(
        elector.next_step(at(60_000)),
        ElectionStep::Wait {
            until: Duration::MAX
        }
    );
}
