//! A release that was not answered may still arrive. Serves S1.

use super::super::*;
use super::kit::*;

fn released(name: &str, resource_version: &str, over_budget: bool) -> UnansweredRelease {
    UnansweredRelease {
        lease: name.into(),
        resource_version: resource_version.into(),
        over_budget,
    }
}

#[test]
fn a_release_that_may_still_arrive_is_repeated_before_anything_relies_on_the_lock() {
    let own = ours();
    for over_budget in [false, true] {
        let mut seen = seen(RebootPhase::Waiting);
        let sent = released(&own.name, &own.resource_version, over_budget);
        seen.lock.unanswered_release = Some(sent);
        let decision = decide(&seen, &config(), now(5));
        let expected = RebootAction::Release {
            lease: Box::new(own.clone()),
            over_budget,
        };
        assert_eq!(decision.actions, [expected]);
        let text = "releasing Lease dogwatch-default-0: an earlier release of it was not answered, and may still arrive";
        assert_eq!(decision.cause.message, text);
        seen.lock.count = None;
        let uncounted = decide(&seen, &config(), now(5));
        assert_eq!(uncounted.actions, decision.actions);
    }
}

#[test]
fn a_release_of_another_version_or_another_lease_hinders_nothing() {
    let own = ours();
    for sent in [
        released(&own.name, "0", false),
        released("dogwatch-default-1", &own.resource_version, false),
    ] {
        let mut seen = seen(RebootPhase::Waiting);
        seen.lock.unanswered_release = Some(sent);
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(written(&decision).phase, RebootPhase::Draining);
    }
}
