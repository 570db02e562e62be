//! Which targets are asked, and how.

use super::kit::*;
use crate::reboot::{ParsedAnnotation, RebootRequest};
use crate::schedule::*;

const TEN: &str = "2026-03-02T10:00:00Z";

fn asking(
    plan: SchedulePlan,
    nodes: Vec<TargetObject>,
    hosts: Vec<TargetObject>,
) -> (ScheduleSnapshot, ScheduleDecision) {
    seen(plan)
        .issuing(TEN, nodes, hosts, now(TEN))
        .settled(now(TEN))
}

fn choose(nodes: Option<TargetChoice>, hosts: Option<TargetChoice>) -> SchedulePlan {
    SchedulePlan {
        nodes,
        hosts,
        mode: HostRebootMode::Hard,
        ..once(TEN)
    }
}

fn named(names: &[&str]) -> TargetChoice {
    TargetChoice {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        selector: None,
    }
}

fn selected(value: &str) -> TargetChoice {
    TargetChoice {
        names: Vec::new(),
        selector: Some(pool(value)),
    }
}

fn whom(decision: &ScheduleDecision) -> Vec<String> {
    asked(decision)
        .iter()
        .map(|ask| ask.target.to_string())
        .collect()
}

fn host_of(name: &str, node: &str) -> TargetObject {
    TargetObject {
        carries: Some(CarriedNode {
            node: node.into(),
            older_claim: None,
        }),
        ..object(name)
    }
}

#[test]
fn names_and_selectors_choose_together_and_nobody_is_asked_twice() {
    let mut nodes = selected("a");
    nodes.names = vec!["n1".into(), "n3".into()];
    let there = vec![
        labelled("n1", "a"),
        labelled("n2", "a"),
        labelled("n3", "b"),
        labelled("n4", "b"),
    ];
    let plan = choose(Some(nodes), Some(named(&["h1", "h2"])));
    let (_, decision) = asking(plan, there, vec![host_of("h1", "n1"), object("h2")]);
    assert_eq!(
        whom(&decision),
        ["Node n1", "Node n2", "Node n3", "BareMetalHost h2"]
    );
}

#[test]
fn a_host_that_carries_a_node_is_rebooted_as_that_node_and_never_by_its_power() {
    let plan = || choose(None, Some(selected("a")));
    let mut host = host_of("h1", "n1");
    host.labels = labelled("", "a").labels;
    let (_, decision) = asking(plan(), vec![object("n1")], vec![host.clone()]);
    assert_eq!(whom(&decision), ["Node n1"]);
    let (key, text) = asked(&decision)[0].request.clone().unwrap();
    assert_eq!(key, "dogwatch.dev/reboot-requested");
    let request: RebootRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(request.requester, "rebootschedule/dogwatch/monthly");
    assert_eq!(
        request.reason,
        "kernel (scheduled for 2026-03-02T10:00:00Z)"
    );
    // If its Node does not exist, it is unknown whether pods still run on the host.
    let (seen, decision) = asking(plan(), vec![], vec![host]);
    assert!(decision.actions.is_empty());
    let record = &seen.schedule.status.history[0];
    assert_eq!(record.outcome, OccurrenceOutcome::Failed);
    assert!(
        record.message.contains("h1 names this Node"),
        "{}",
        record.message
    );
}

#[test]
fn a_host_without_a_node_is_asked_by_metal3s_annotation() {
    for (mode, value) in [
        (HostRebootMode::Soft, r#"{"mode":"soft"}"#),
        (HostRebootMode::Hard, r#"{"mode":"hard"}"#),
    ] {
        let plan = SchedulePlan {
            mode,
            ..choose(None, Some(named(&["h1"])))
        };
        let (_, decision) = asking(plan, vec![], vec![object("h1")]);
        let ask = asked(&decision)[0];
        assert_eq!(ask.request, Some(("reboot.metal3.io", value.to_owned())));
        assert_eq!(
            (ask.uid.as_str(), ask.resource_version.as_str()),
            ("uid-of-h1", "1")
        );
        assert_eq!(ask.marks["u1"].at, at(TEN));
    }
}

#[test]
fn a_request_that_stands_there_is_left_and_noted() {
    let there = TargetObject {
        request: StandingRequest::Now,
        ..object("n1")
    };
    let (_, decision) = asking(once(TEN), vec![there], vec![]);
    let ask = asked(&decision)[0];
    assert_eq!(ask.request, None);
    assert!(ask.marks["u1"].noted);
    // Once noted, a request stays noted, even if it was served meanwhile.
    let noted = TargetObject {
        marks: ParsedAnnotation::Is(ask.marks.clone()),
        ..object("n1")
    };
    let (seen, decision) = asking(once(TEN), vec![noted], vec![]);
    assert!(decision.actions.is_empty());
    let record = &seen.schedule.status.history[0];
    assert_eq!(
        (record.outcome, record.asked, record.noted),
        (OccurrenceOutcome::Requested, 0, 1)
    );
    assert_eq!(record.targets[0].result, TargetResult::Noted);
}

#[test]
fn a_mark_of_this_occurrence_means_asked_and_any_other_does_not() {
    let marked = |uid: &str, moment: &str| {
        let mark = ScheduleMark {
            by: "dogwatch/x".into(),
            at: at(moment),
            noted: false,
            node_reboot: None,
        };
        TargetObject {
            marks: ParsedAnnotation::Is(ScheduleMarks::from([(uid.to_owned(), mark)])),
            ..object("n1")
        }
    };
    for (uid, moment, is_asked) in [
        ("u1", TEN, true),
        ("u1", "2026-02-02T10:00:00Z", false),
        ("u2", TEN, false),
        ("gone", TEN, false),
    ] {
        let (seen, decision) = asking(once(TEN), vec![marked(uid, moment)], vec![]);
        assert_eq!(decision.actions.is_empty(), is_asked, "{uid} {moment}");
        if is_asked {
            assert_eq!(seen.schedule.status.history[0].asked, 1);
            continue;
        }
        // Marks of other schedules stay; those of deleted schedules are removed.
        let marks = &asked(&decision)[0].marks;
        let kept = usize::from(uid == "u2");
        assert_eq!(marks.len(), 1 + kept, "{marks:?}");
    }
}

#[test]
fn a_mark_that_cannot_be_read_may_say_asked_so_nobody_asks() {
    let odd = TargetObject {
        marks: ParsedAnnotation::Bad {
            why: "no JSON".into(),
        },
        ..object("n1")
    };
    let (seen, decision) = asking(once(TEN), vec![odd], vec![]);
    assert!(decision.actions.is_empty());
    assert!(
        seen.schedule.status.current.is_some(),
        "somebody may take it off in time"
    );
}

#[test]
fn who_does_not_exist_is_named_and_holds_nobody_up() {
    let plan = choose(Some(named(&["n1", "n9"])), Some(named(&["h9"])));
    let (_, decision) = asking(plan.clone(), vec![object("n1")], vec![]);
    assert_eq!(whom(&decision), ["Node n1"]);
    let done = TargetObject {
        marks: ParsedAnnotation::Is(asked(&decision)[0].marks.clone()),
        ..object("n1")
    };
    let (seen, _) = asking(plan, vec![done], vec![]);
    let record = &seen.schedule.status.history[0];
    assert_eq!(
        (record.outcome, record.asked, record.failed),
        (OccurrenceOutcome::PartlyRequested, 1, 2)
    );
    assert!(
        record.message.contains("Node n9 (no Node has this name)"),
        "{}",
        record.message
    );
    assert!(
        record.message.contains("BareMetalHost h9"),
        "{}",
        record.message
    );
}

#[test]
fn hosts_that_cannot_be_listed_delay_no_node_and_are_named_in_the_end() {
    let plan = choose(Some(named(&["n1"])), Some(selected("a")));
    let mut seen = seen(plan).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    seen.targets.as_mut().unwrap().hosts = Err("BareMetalHosts cannot be listed".into());
    let (mut seen, decision) = seen.settled(now(TEN));
    assert_eq!(whom(&decision), ["Node n1"]);
    let late = now("2026-03-02T11:00:01Z");
    let targets = seen.targets.as_mut().unwrap();
    targets.taken = late.mono;
    targets.nodes = Ok(vec![TargetObject {
        marks: ParsedAnnotation::Is(asked(&decision)[0].marks.clone()),
        ..object("n1")
    }]);
    let (seen, _) = seen.settled(late);
    let record = &seen.schedule.status.history[0];
    assert_eq!(
        (record.outcome, record.asked, record.failed),
        (OccurrenceOutcome::PartlyRequested, 1, 1)
    );
    assert!(
        record.message.contains("cannot be listed"),
        "{}",
        record.message
    );
}

/// The outcome of one target: nothing (not selected), `asked`, or how it failed.
fn fate(decision: &ScheduleDecision, seen: &ScheduleSnapshot) -> String {
    if decision.actions.is_empty() {
        return match seen.schedule.status.history.first() {
            Some(record) => record
                .targets
                .first()
                .map_or("not meant".into(), |target| target.message.clone()),
            None => "blocked".into(),
        };
    }
    whom(decision).join(", ")
}

#[test]
fn a_node_that_was_made_anew_since_its_time_came_is_not_asked_again() {
    let anew = || {
        let mut node = labelled("n1", "a");
        node.created = at("2026-03-02T10:00:01Z");
        node
    };
    let (seen, decision) = asking(choose(Some(named(&["n1"])), None), vec![anew()], vec![]);
    let message = fate(&decision, &seen);
    assert!(
        message.contains("created at 2026-03-02T10:00:01Z"),
        "{message}"
    );
    let (seen, decision) = asking(choose(Some(selected("a")), None), vec![anew()], vec![]);
    assert_eq!(fate(&decision, &seen), "not meant");
    let carrier = host_of("h1", "n1");
    let (seen, decision) = asking(
        choose(None, Some(named(&["h1"]))),
        vec![anew()],
        vec![carrier],
    );
    assert!(fate(&decision, &seen).contains("has booted since"));
}

#[test]
fn a_request_that_brings_about_no_reboot_now_is_left_and_not_taken_for_one() {
    let with = |request| TargetObject {
        request,
        ..object("n1")
    };
    let later = with(StandingRequest::NotBefore(at("2026-03-09T10:00:00Z")));
    let unreadable = with(StandingRequest::Unreadable {
        why: "no JSON".into(),
    });
    for (node, why) in [
        (later, "a request for a reboot at 2026-03-09T10:00:00Z"),
        (unreadable, "cannot be read, so no coordinator serves it"),
    ] {
        let (mut seen, decision) = asking(once(TEN), vec![node], vec![]);
        assert!(decision.actions.is_empty(), "it is somebody else's");
        assert!(
            seen.schedule.status.current.is_some(),
            "it may be taken back"
        );
        let late = now("2026-03-02T11:00:01Z");
        seen.targets.as_mut().unwrap().taken = late.mono;
        let (seen, _) = seen.settled(late);
        let record = &seen.schedule.status.history[0];
        assert_eq!(
            (record.outcome, record.noted),
            (OccurrenceOutcome::Failed, 0)
        );
        assert!(record.message.contains(why), "{}", record.message);
    }
    // A request whose time has come is as good as ours.
    let due = with(StandingRequest::NotBefore(at("2026-03-02T09:00:00Z")));
    let (_, decision) = asking(once(TEN), vec![due], vec![]);
    assert!(asked(&decision)[0].marks["u1"].noted);
}

#[test]
fn a_host_that_somebody_uses_is_not_switched_off_without_a_drain() {
    let mut host = labelled("h1", "a");
    host.power_refusal = Some(PowerRebootRefusal::InUse {
        by: "Metal3Machine capi/m1".into(),
    });
    for chosen in [named(&["h1"]), selected("a")] {
        let (seen, decision) = asking(choose(None, Some(chosen)), vec![], vec![host.clone()]);
        let message = fate(&decision, &seen);
        assert!(
            message.contains("Metal3Machine capi/m1 uses it"),
            "{message}"
        );
    }
    // The host was asked before somebody took it: the outcome stays.
    let mark = ScheduleMark {
        by: "dogwatch/monthly".into(),
        at: at(TEN),
        noted: false,
        node_reboot: None,
    };
    host.marks = ParsedAnnotation::Is(ScheduleMarks::from([("u1".to_owned(), mark)]));
    let (seen, _) = asking(choose(None, Some(named(&["h1"]))), vec![], vec![host]);
    assert_eq!(seen.schedule.status.history[0].asked, 1);
}

#[test]
fn a_host_that_is_not_provisioned_gets_no_annotation_that_strikes_when_it_is() {
    let mut host = labelled("h1", "a");
    host.power_refusal = Some(PowerRebootRefusal::NotProvisioned {
        state: "available".into(),
    });
    let by_name = choose(None, Some(named(&["h1"])));
    let (seen, decision) = asking(by_name, vec![], vec![host.clone()]);
    let message = fate(&decision, &seen);
    assert!(
        message.contains("provisioning state available"),
        "{message}"
    );
    let (seen, decision) = asking(choose(None, Some(selected("a"))), vec![], vec![host]);
    assert_eq!(fate(&decision, &seen), "not meant");
}

#[test]
fn of_two_hosts_that_claim_one_node_the_older_ones_word_counts() {
    let claim = |namespace: &str, second: u32, uid: &str, node: &str| HostNodeClaim {
        created: at(&format!("2026-01-01T00:00:{second:02}Z")),
        uid: uid.into(),
        host: crate::power::HostName::new(namespace, "h"),
        node: node.into(),
    };
    let all = [
        claim("metal", 1, "b", "n1"),
        claim("tenant", 2, "a", "n1"),
        claim("twin", 1, "c", "n1"),
        claim("tenant", 3, "d", "n2"),
    ];
    let older: Vec<Option<String>> = all
        .iter()
        .map(|claim| claim.find_older_claim(&all).map(ToString::to_string))
        .collect();
    let metal = || Some("metal/h".to_owned());
    assert_eq!(older, [None, metal(), metal(), None]);

    let mut host = host_of("h1", "n1");
    host.carries.as_mut().unwrap().older_claim = metal();
    let (seen, decision) = asking(
        choose(None, Some(named(&["h1"]))),
        vec![object("n1")],
        vec![host],
    );
    let message = fate(&decision, &seen);
    assert!(
        message.contains("so does that of host metal/h, which is older"),
        "{message}"
    );
}

#[test]
fn which_hosts_are_switched_off_for_a_schedule() {
    use crate::power::{HostConsumer, HostSnapshot};
    let host = |state: Option<&str>, used: bool| {
        let consumer = HostConsumer {
            kind: "Machine".into(),
            namespace: "capi".into(),
            name: "m1".into(),
            ..HostConsumer::default()
        };
        HostSnapshot {
            status: crate::power::HostStatus {
                provisioning: state.map(str::to_owned),
                ..crate::power::HostStatus::default()
            },
            consumer: used.then_some(consumer),
            ..crate::power::tests::world::host(&[], true)
        }
    };
    let table = [
        (None, false, ""),
        (Some("externally provisioned"), false, ""),
        (Some("provisioned"), false, ""),
        (Some("provisioned"), true, "Machine capi/m1 uses it"),
        (Some("available"), false, "provisioning state available"),
        (
            Some("provisioning"),
            true,
            "provisioning state provisioning",
        ),
    ];
    for (state, used, expected) in table {
        let why = PowerRebootRefusal::from_host(&host(state, used));
        let why = why.map_or(String::new(), |why| why.describe_refusal());
        assert!(
            why.contains(expected) && why.is_empty() == expected.is_empty(),
            "{state:?} {why}"
        );
    }
}

#[test]
fn many_targets_are_counted_and_some_are_named_those_that_failed_first() {
    let names: Vec<String> = (0..100).map(|number| format!("n{number:03}")).collect();
    let mut chosen = selected("a");
    chosen.names = vec!["missing".into()];
    let mark = ScheduleMark {
        by: "dogwatch/monthly".into(),
        at: at(TEN),
        noted: false,
        node_reboot: None,
    };
    let all = names.iter().map(|name| TargetObject {
        marks: ParsedAnnotation::Is(ScheduleMarks::from([("u1".to_owned(), mark.clone())])),
        ..labelled(name, "a")
    });
    let (seen, _) = asking(choose(Some(chosen), None), all.collect(), vec![]);
    let record = &seen.schedule.status.history[0];
    assert_eq!((record.asked, record.failed), (100, 1));
    assert_eq!(record.targets.len(), MAX_LISTED_TARGETS);
    assert_eq!(record.targets[0].name, "missing");
}
