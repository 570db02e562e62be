use dogwatch_core::name::NodeName;
use dogwatch_core::remediation::NodeHeartbeat;

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_look_is_answered_by_what_was_asked_later_only() {
    let mut note = CaseMemory::default();
    let look = |second| RemediationObserve::Heartbeat {
        node: NodeName::new("n1").unwrap(),
        newer_than: seconds(second),
    };
    assert!(!note.has_answer(&look(0)));
    let beat = NodeHeartbeat {
        node_uid: None,
        renewed: None,
        posted: None,
        lease_duration: None,
    };
    note.record_finding(RemediationFinding::Beat(seconds(3), beat), seconds(4));
    assert!(note.has_answer(&look(2)) && !note.has_answer(&look(3)));
}

#[test]
fn after_a_change_it_is_soon_decided_again_and_after_trouble_within_half_a_minute() {
    let (mut note, now) = (CaseMemory::default(), seconds(100));
    note.record_failure(&RemediationCallError::Changed("it".into()), now);
    let pause = |note: &CaseMemory| note.paused_until(now).unwrap().saturating_sub(now);
    assert_eq!(pause(&note), Duration::from_millis(20));
    note.record_failure(&RemediationCallError::Refused("no right".into()), now);
    assert_eq!(pause(&note), seconds(1));
    for _ in 0..9 {
        note.record_failure(&RemediationCallError::Failed("no answer".into()), now);
    }
    assert_eq!(pause(&note), seconds(30));
    assert_eq!(note.refused.as_deref(), Some("no right"));
    note.record_success();
    assert_eq!((note.paused_until(now), &note.refused), (None, &None));
}

#[test]
fn changes_that_do_not_end_are_reported_as_a_refusal_and_retried_as_one() {
    let (mut note, now) = (CaseMemory::default(), seconds(100));
    let change = RemediationCallError::Changed("host h: the webhook w said no".into());
    for _ in 1..LASTING_CHANGES {
        note.record_failure(&change, now);
        assert_eq!((&note.refused, note.has_lasting_changes()), (&None, false));
    }
    note.record_failure(&change, now);
    let refused = note.refused.as_deref();
    assert_eq!(refused, Some("host h: the webhook w said no"));
    for _ in 0..9 {
        note.record_failure(&change, now);
    }
    assert_eq!(note.paused_until(now), Some(now + seconds(30)));
    note.record_success();
    assert_eq!(note.refused, None);
    note.record_failure(&change, now);
    assert_eq!((&note.refused, note.has_lasting_changes()), (&None, false));
}
