//! For which remediation a person's word that a host is off counts. Source: specification §4.2.

use std::sync::Arc;

use super::super::*;
use super::kit::*;
use crate::power::HostSnapshot;

fn to_confirm(world: &RemediationSnapshot, host: &HostSnapshot) -> Result<String, String> {
    let cases = discover_remediations(world);
    remediation_to_confirm(&cases, host).map(|case| case.subject.to_string())
}

#[track_caller]
fn is_refused(world: &RemediationSnapshot, host: &HostSnapshot, why: &str) {
    let text = to_confirm(world, host).unwrap_err();
    assert!(text.contains(why), "{text}");
}

#[test]
fn a_persons_word_is_for_no_machine_without_need_and_for_no_other_host() {
    // Its key is on the host still: it is decided about, and does not need to be off.
    let served = keyed(host("a"), &KeyOwner::Machine("uid-a".into()));
    let nodes = || [node("a"), node("b")];
    let one_served = world(
        [machine("a"), marked("b")],
        [served.clone(), host("b")],
        nodes(),
    );
    is_refused(&one_served, &served, "does not need to be off");
    let both = world([marked("a"), marked("b")], [host("a"), host("b")], nodes());
    for name in ["a", "b"] {
        let subject = to_confirm(&both, &host(name));
        assert_eq!(subject, Ok(format!("machine/machines/{name}")));
    }
}

#[test]
fn a_key_that_somebody_else_wrote_is_seen_in_the_watch_and_in_the_newest_read() {
    let mut theirs = host("a");
    theirs
        .annotations
        .insert(MACHINE_KEY.into(), "theirs".into());
    for (watched, read) in [
        (host("a"), theirs.clone()),
        (theirs.clone(), host("a")),
        (theirs.clone(), theirs),
    ] {
        let world = world([marked("a")], [watched], [node("a")]);
        is_refused(&world, &read, "with another value");
    }
}

#[test]
fn a_key_for_another_remediation_does_not_stand_in_a_requests_way() {
    let mut host = carrying(host("a"), "n-a");
    host.annotations
        .insert(MACHINE_KEY.into(), "of another".into());
    let request = PowerRequest {
        node_name: Some("n-a".into()),
        strategy: Ok(RemediationStrategy {
            kind: StrategyType::DeleteNode,
            retry_limit: 0,
            timeout: std::time::Duration::from_mins(10),
        }),
        ..request()
    };
    let mut world = world([], [host.clone()], [node("a")]);
    world
        .requests
        .insert(request.name.clone(), Arc::new(request));
    let subject = to_confirm(&world, &host);
    assert_eq!(subject.as_deref(), Ok("powerremediation/machines/r"));
}
