//! Requests that name a method and NodeReboots. Source: specification §10.1.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::holding::{ask, asked, under_way};
use super::kit::*;

#[test]
fn annotations_without_a_method_have_the_text_of_before() {
    let texts = [
        r#"{"reason":"kernel","requester":"ann"}"#,
        r#"{"reason":"","requester":"","notBefore":"2026-11-21T22:00:00Z"}"#,
    ];
    for text in texts {
        let request: RebootRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.method, RebootMethod::Reboot);
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
    }
    let text = r#"{"source":"request","reason":"kernel","requester":"ann"}"#;
    let trigger: RebootTrigger = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&trigger).unwrap(), text);
}

#[test]
fn a_request_names_its_method_and_its_node_reboots() {
    let text = r#"{"reason":"","requester":"ann","method":"PowerCycle","nodeReboots":[{"name":"nr","uid":"u-1"}]}"#;
    let request: RebootRequest = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&request).unwrap(), text);
    let unknown = ParsedAnnotation::<RebootRequest>::from_text(Some(r#"{"method":"Nap"}"#));
    assert!(matches!(unknown, ParsedAnnotation::Bad { .. }));
}

#[test]
fn a_node_reboots_request_comes_before_a_command_and_a_persons_does_not() {
    let requests: [(RebootMethod, &[&str], &str); 4] = [
        (RebootMethod::Hold, &["u1"], "request"),
        (RebootMethod::PowerCycle, &["u1"], "request"),
        (RebootMethod::Reboot, &["u1"], "request"),
        (RebootMethod::Reboot, &[], "command"),
    ];
    for (method, uids, lead) in requests {
        let mut seen = idle();
        seen.host.triggers[0].source = "command".into();
        ask(&mut seen, method, uids);
        let decision = decide(&seen, &config(), now(5));
        let trigger = &written(&decision).trigger;
        assert_eq!(
            (trigger.source.as_str(), trigger.method),
            (lead, method),
            "{uids:?}"
        );
    }
}

#[test]
fn a_waiting_node_notices_each_change_of_a_request_that_makes_another_reboot_of_it() {
    let changes: [(RebootMethod, &[&str], RebootMethod, &[&str]); 4] = [
        (RebootMethod::Reboot, &["u1"], RebootMethod::Reboot, &[]),
        (RebootMethod::Hold, &[], RebootMethod::Reboot, &[]),
        (RebootMethod::Reboot, &[], RebootMethod::Reboot, &["u1"]),
        (
            RebootMethod::Hold,
            &["u1"],
            RebootMethod::PowerCycle,
            &["u1"],
        ),
    ];
    for (before, from, method, uids) in changes {
        let mut seen = under_way(RebootPhase::Waiting, before);
        set_record(&mut seen, |record| {
            record.trigger.node_reboots = from.iter().map(|uid| asked(uid)).collect();
        });
        ask(&mut seen, method, uids);
        let decision = decide(&seen, &config(), now(5));
        let case = format!("{before:?} {from:?} to {method:?} {uids:?}");
        assert_eq!(decision.cause.reason, RebootReason::RebootPlanned, "{case}");
        let trigger = &written(&decision).trigger;
        let expected: Vec<NodeRebootRef> = uids.iter().map(|uid| asked(uid)).collect();
        assert_eq!((trigger.method, &trigger.node_reboots), (method, &expected));
    }
}

#[test]
fn a_waiting_node_takes_over_another_text_of_a_hold_and_not_of_a_persons_reboot() {
    let mut hold = under_way(RebootPhase::Waiting, RebootMethod::Hold);
    set(&mut hold, |node| {
        node.request_fingerprint = Some(print("other words"));
    });
    let decision = decide(&hold, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::RebootPlanned);
    let serves = [("request".to_owned(), print("other words"))].into();
    assert_eq!(written(&decision).serves, serves);
    let mut reboot = under_way(RebootPhase::Waiting, RebootMethod::Reboot);
    set_record(&mut reboot, |record| record.trigger.node_reboots.clear());
    ask(&mut reboot, RebootMethod::Reboot, &[]);
    let decision = decide(&reboot, &config(), now(5));
    assert_eq!(written(&decision).phase, RebootPhase::Draining);
}

#[test]
fn a_withdrawn_power_cycle_or_hold_does_not_wait_on_for_a_sentinel_that_cannot_be_read() {
    let table = [
        (RebootMethod::PowerCycle, RebootReason::TriggerGone),
        (RebootMethod::Hold, RebootReason::TriggerGone),
        // A reboot needs no request: the sentinel may still ask for it.
        (RebootMethod::Reboot, RebootReason::Draining),
    ];
    for (method, reason) in table {
        let mut seen = under_way(RebootPhase::Waiting, method);
        seen.host.triggers = vec![unknown()];
        set_record(&mut seen, |record| {
            let sentinel = "sentinel:/run/reboot-needed".to_owned();
            record.serves.insert(sentinel, print("a"));
        });
        set(&mut seen, |node| {
            node.request = ParsedAnnotation::Absent;
            node.request_fingerprint = None;
        });
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(decision.cause.reason, reason, "{method:?}");
    }
}

#[test]
fn a_waiting_power_cycle_or_hold_waits_on_while_its_request_is_there_and_due() {
    for method in [RebootMethod::PowerCycle, RebootMethod::Hold] {
        let mut seen = under_way(RebootPhase::Waiting, method);
        seen.host.triggers = vec![unknown()];
        seen.lock.leases = Some(vec![held(0, "n2", &["coordinator/x"])]);
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(decision.cause.reason, RebootReason::LockHeldByOther);
        // Put off to a later time, it begins anew then.
        set(&mut seen, |node| {
            let ParsedAnnotation::Is(request) = &mut node.request else {
                panic!("{:?}", node.request);
            };
            request.not_before = Some(now(6).wall);
        });
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(
            decision.cause.reason,
            RebootReason::TriggerGone,
            "{method:?}"
        );
    }
}
