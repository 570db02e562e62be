//! §2.1 and §2.5: what a node without a reboot says of its request, and what it plans.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::kit::*;

/// Node `n1` without a record and without a sentinel; this request stands on it.
fn asked(request: ParsedAnnotation<RebootRequest>) -> RebootSnapshot {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| {
        let stands = request != ParsedAnnotation::Absent;
        node.request_fingerprint = stands.then(|| print("r"));
        node.request = request;
    });
    seen
}

fn request(method: RebootMethod, not_before: Option<jiff::Timestamp>) -> RebootRequest {
    RebootRequest {
        reason: "firmware".into(),
        requester: "ann".into(),
        not_before,
        method,
        ..RebootRequest::default()
    }
}

const NO_ANNOTATION: &str =
    "a power cycle is asked for by a NodeReboot, not by a person's annotation";

#[test]
fn an_idle_node_says_what_it_waits_for_or_why_it_cannot_serve_its_request() {
    let later = request(RebootMethod::Reboot, Some(wall(100)));
    let cannot_read = "annotation dogwatch.dev/reboot-requested cannot be read";
    let table = [
        (
            ParsedAnnotation::Absent,
            "nothing requests a reboot".to_owned(),
            None,
        ),
        (
            ParsedAnnotation::Is(later),
            "a reboot is requested for 2027-01-15T08:01:40Z".into(),
            None,
        ),
        (
            ParsedAnnotation::Bad { why: "eof".into() },
            format!("{cannot_read}: eof"),
            Some("eof"),
        ),
        (
            ParsedAnnotation::Is(request(RebootMethod::PowerCycle, None)),
            format!("{cannot_read}: {NO_ANNOTATION}"),
            Some(NO_ANNOTATION),
        ),
    ];
    for (request, message, trouble) in table {
        let decision = decide(&asked(request), &config(), now(40));
        assert_eq!(decision.cause.message, message);
        let mut events = decision.report.events.iter();
        let warning = events.find(|event| event.reason == "RequestUnreadable");
        let expected = trouble
            .map(|why| format!("annotation dogwatch.dev/reboot-requested is not removed: {why}"));
        assert_eq!(
            warning.map(|event| event.message.clone()),
            expected,
            "{message}"
        );
    }
}

#[test]
fn a_request_that_no_reboot_can_serve_does_not_wake_its_node_once_its_time_has_come() {
    let seen = asked(ParsedAnnotation::Is(request(
        RebootMethod::PowerCycle,
        Some(wall(100)),
    )));
    for second in [100, 101, 5000] {
        let decision = decide(&seen, &config(), now(second));
        assert_eq!(decision.actions, [], "at {second}");
        assert_eq!(decision.wake, None, "at {second}");
    }
}

#[test]
fn a_plan_names_its_sentinel_and_the_first_line_of_the_reason() {
    let source = "sentinel:/run/reboot-needed";
    for (reason, said) in [
        ("kernel\nlibc", "kernel"),
        ("  kernel  ", "kernel"),
        ("", "no reason given"),
        ("  \nkernel", "no reason given"),
    ] {
        let mut seen = idle();
        seen.host.triggers = vec![ObservedTrigger {
            source: source.into(),
            state: TriggerState::Present {
                fingerprint: print("a"),
                reason: reason.into(),
            },
        }];
        let decision = decide(&seen, &config(), now(5));
        let expected = format!("{source} requests a reboot: {said}");
        assert_eq!(decision.cause.message, expected, "{reason:?}");
        let trigger = &written(&decision).trigger;
        assert_eq!(
            (trigger.source.as_str(), trigger.reason.as_str()),
            (source, reason)
        );
    }
}

#[test]
fn a_bid_under_way_is_settled_although_somebody_deleted_the_record() {
    let mut seen = asked(ParsedAnnotation::Absent);
    seen.lock.unsettled_bid = Some("dogwatch-default-0".into());
    let watches_leases = |decision: &RebootDecision| {
        let mut looks = decision.observe.iter();
        looks.any(|look| matches!(look, RebootObserve::Locks { .. }))
    };
    let reads = decide(&seen, &config(), now(5));
    assert_eq!(reads.actions, []);
    assert!(watches_leases(&reads), "{reads:?}");
    seen.lock.leases = Some(vec![free(0)]);
    let bids = decide(&seen, &config(), now(5));
    assert!(
        matches!(bids.actions.as_slice(), [RebootAction::Bid { .. }]),
        "{bids:?}"
    );
    assert_eq!(bids.cause.reason, RebootReason::SettlingBid);
    // The Lease is gone: nothing can be settled until it is there again.
    seen.lock.leases = Some(vec![]);
    let waits = decide(&seen, &config(), now(5));
    assert_eq!(waits.actions, []);
    assert!(watches_leases(&waits), "{waits:?}");
    seen.lock.unsettled_bid = None;
    assert!(!watches_leases(&decide(&seen, &config(), now(5))));
}
