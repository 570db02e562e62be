//! NodeReboots: which are made, and how their ends are counted.

use super::kit::*;
use crate::decision::EventSeverity;
use crate::reboot::ParsedAnnotation;
use crate::schedule::*;

const TEN: &str = "2026-03-02T10:00:00Z";

/// Nodes are asked by NodeReboots, and these were made before.
fn known(made: &[MadeNodeReboot]) -> MadeNodeRebootsRead {
    let by_name = made.iter().map(|one| (one.name.clone(), one.clone()));
    MadeNodeRebootsRead {
        made: MadeNodeReboots::Known(by_name.collect()),
        refused: None,
        taken: std::time::Duration::MAX,
    }
}

fn issuing(
    nodes: Vec<TargetObject>,
    made: &[MadeNodeReboot],
) -> (ScheduleSnapshot, ScheduleDecision) {
    let names = nodes.iter().map(|node| node.name.clone()).collect();
    let plan = SchedulePlan {
        nodes: Some(TargetChoice {
            names,
            selector: None,
        }),
        ..once(TEN)
    };
    let mut seen = seen(plan).issuing(TEN, nodes, vec![], now(TEN));
    seen.reboots = Some(known(made));
    seen.settled(now(TEN))
}

fn drafts(decision: &ScheduleDecision) -> Vec<&NodeRebootDraft> {
    let drafts = decision.actions.iter().map(|action| match action {
        ScheduleAction::CreateReboot(draft) => draft.as_ref(),
        other @ (ScheduleAction::WriteStatus(_) | ScheduleAction::Ask(_)) => panic!("{other:?}"),
    });
    drafts.collect()
}

/// The NodeReboot after the API server has created it.
fn created(draft: &NodeRebootDraft) -> MadeNodeReboot {
    MadeNodeReboot {
        name: draft.name.clone(),
        node: draft.target.name.clone(),
        node_uid: Some(draft.node_uid.clone()),
        at: Some(draft.at),
        end: None,
    }
}

fn ended(one: &MadeNodeReboot, reason: &str, moment: &str) -> MadeNodeReboot {
    MadeNodeReboot {
        end: Some(MadeRebootEnd {
            is_success: reason == "Rebooted",
            reason: reason.into(),
            message: "m".into(),
            at: at(moment),
        }),
        ..one.clone()
    }
}

fn marked(node: TargetObject, decision: &ScheduleDecision) -> TargetObject {
    let ask = asked(decision)
        .into_iter()
        .find(|ask| ask.target.name == node.name);
    TargetObject {
        marks: ParsedAnnotation::Is(ask.unwrap().marks.clone()),
        ..node
    }
}

/// The schedule after an occurrence that made these NodeReboots, and the NodeReboots.
fn after_issue(nodes: &[&str]) -> (ScheduleSnapshot, Vec<MadeNodeReboot>) {
    let objects: Vec<TargetObject> = nodes.iter().map(|name| object(name)).collect();
    let (_, creating) = issuing(objects.clone(), &[]);
    let made: Vec<MadeNodeReboot> = drafts(&creating).into_iter().map(created).collect();
    let (_, marking) = issuing(objects.clone(), &made);
    let objects = objects.into_iter().map(|node| marked(node, &marking));
    let (seen, _) = issuing(objects.collect(), &made);
    assert_eq!(seen.schedule.status.current, None);
    (seen, made)
}

/// The record after these NodeReboots were read at this time.
fn read_at(
    seen: &mut ScheduleSnapshot,
    made: &[MadeNodeReboot],
    moment: &str,
) -> OccurrenceReboots {
    seen.reboots = Some(known(made));
    let (settled, _) = seen.clone().settled(now(moment));
    *seen = settled;
    seen.schedule.status.history[0].reboots.clone().unwrap()
}

#[test]
fn a_node_gets_a_node_reboot_of_one_name_and_is_marked_after_it() {
    let (_, creating) = issuing(vec![object("n1")], &[]);
    let draft = drafts(&creating)[0];
    assert!(
        draft.name.starts_with("monthly-20260302100000-"),
        "{draft:?}"
    );
    assert!(draft.name.len() <= 63, "{draft:?}");
    assert_eq!(
        (draft.node_uid.as_str(), draft.schedule_uid.as_str()),
        ("uid-of-n1", "u1")
    );
    assert_eq!(draft.requester, "rebootschedule/dogwatch/monthly");
    assert_eq!(draft.reason, "kernel (scheduled for 2026-03-02T10:00:00Z)");
    // No occurrence makes one again after its deadline, and it is not deleted before.
    assert!(draft.ttl > once(TEN).starting_deadline);
    // The same for whoever decides it; another one for another Node of that name.
    let (_, again) = issuing(vec![object("n1")], &[]);
    assert_eq!(drafts(&again)[0], draft);
    let mut anew = object("n1");
    anew.uid = "later".into();
    let (_, other) = issuing(vec![anew], &[]);
    assert_ne!(drafts(&other)[0].name, draft.name);

    let (_, marking) = issuing(vec![object("n1")], &[created(draft)]);
    let mark = asked(&marking)[0];
    assert_eq!(mark.request, None, "the NodeReboot is the request");
    assert_eq!(mark.marks["u1"].node_reboot.as_ref(), Some(&draft.name));
    // Marked, it is not made again, even if somebody has deleted it.
    let node = marked(object("n1"), &marking);
    let (seen, decision) = issuing(vec![node], &[]);
    assert!(decision.actions.is_empty());
    let record = &seen.schedule.status.history[0];
    assert_eq!((record.asked, record.noted, record.failed), (1, 0, 0));
    assert_eq!(record.targets[0].node_reboot.as_ref(), Some(&draft.name));
}

#[test]
fn a_long_name_is_cut_where_an_object_name_may_end() {
    let mut schedule = schedule(once(TEN));
    schedule.name.name = format!("{}.-{}", "a".repeat(30), "b".repeat(200));
    let mut seen = seen(once(TEN));
    seen.schedule = schedule;
    let mut seen = seen.issuing(TEN, vec![object("n1")], vec![], now(TEN));
    seen.reboots = Some(known(&[]));
    let (_, decision) = seen.settled(now(TEN));
    let draft = drafts(&decision)[0];
    assert!(
        draft.name.starts_with(&format!("{}-2026", "a".repeat(30))),
        "{draft:?}"
    );
    assert!(draft.requester.len() <= 256);
}

#[test]
fn a_request_of_somebody_else_is_joined_and_one_of_this_schedule_that_has_not_ended_is_noted() {
    let there = TargetObject {
        request: StandingRequest::Now,
        ..object("n1")
    };
    let (_, decision) = issuing(vec![there], &[]);
    assert_eq!(drafts(&decision).len(), 1);

    let earlier = MadeNodeReboot {
        name: "monthly-earlier".into(),
        node: "n1".into(),
        node_uid: Some("uid-of-n1".into()),
        at: Some(at("2026-02-02T10:00:00Z")),
        end: None,
    };
    let (_, decision) = issuing(vec![object("n1")], std::slice::from_ref(&earlier));
    let mark = asked(&decision)[0];
    assert!(mark.marks["u1"].noted && mark.request.is_none());
    let node = marked(object("n1"), &decision);
    let (seen, _) = issuing(vec![node], std::slice::from_ref(&earlier));
    let record = &seen.schedule.status.history[0];
    assert_eq!((record.asked, record.noted), (0, 1));
    assert_eq!(record.reboots, None, "it counts for the earlier time");
    assert!(
        record.targets[0].message.contains("monthly-earlier"),
        "{record:?}"
    );
    // One that has ended, or is of an earlier Node of that name, is no obstacle.
    let over = ended(&earlier, "Rebooted", "2026-02-02T11:00:00Z");
    let other = MadeNodeReboot {
        node_uid: Some("an earlier Node".into()),
        ..earlier
    };
    for one in [over, other] {
        let (_, decision) = issuing(vec![object("n1")], &[one]);
        assert_eq!(drafts(&decision).len(), 1);
    }
}

#[test]
fn where_none_can_be_made_nodes_are_asked_by_annotation_and_the_record_says_so() {
    let seen = seen(once(TEN)).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    let (_, decision) = seen.settled(now(TEN));
    assert!(asked(&decision)[0].request.is_some());
    let node = marked(object("n1"), &decision);
    let seen = super::kit::seen(once(TEN)).issuing(TEN, vec![node], vec![], now(TEN));
    let (seen, _) = seen.settled(now(TEN));
    let record = &seen.schedule.status.history[0];
    assert_eq!(record.reboots, None);
    let why = "requested by annotation, so their reboots are not recorded: the kind NodeReboot \
               is not installed";
    assert!(record.message.contains(why), "{}", record.message);
}

#[test]
fn where_no_further_one_can_be_made_those_that_were_made_count_and_the_rest_is_asked_by_annotation()
{
    let (_, creating) = issuing(vec![object("n1")], &[]);
    let made = created(drafts(&creating)[0]);
    let mut plan = once(TEN);
    plan.nodes.as_mut().unwrap().names.push("n2".into());
    let nodes = vec![object("n1"), object("n2")];
    let mut seen = seen(plan).issuing(TEN, nodes, vec![], now(TEN));
    seen.reboots = Some(MadeNodeRebootsRead {
        refused: Some("the right is missing".into()),
        ..known(&[made])
    });
    let (_, decision) = seen.settled(now(TEN));
    let [first, second] = asked(&decision)[..] else {
        panic!("{decision:?}");
    };
    assert!(first.request.is_none() && first.marks["u1"].node_reboot.is_some());
    assert!(second.request.is_some() && second.marks["u1"].node_reboot.is_none());
}

#[test]
fn while_node_reboots_cannot_be_read_no_node_is_asked() {
    let mut seen = seen(once(TEN)).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    seen.reboots = Some(MadeNodeRebootsRead {
        made: MadeNodeReboots::Unreadable("no answer".into()),
        refused: None,
        taken: std::time::Duration::MAX,
    });
    let (seen, decision) = seen.settled(now(TEN));
    assert_eq!(decision.actions, []);
    assert!(seen.schedule.status.current.is_some());
}

#[test]
fn node_reboots_are_read_after_the_marks_of_the_nodes() {
    let mut seen = seen(once(TEN)).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    let mut read = known(&[]);
    read.taken = now(TEN)
        .mono
        .saturating_sub(std::time::Duration::from_secs(1));
    seen.reboots = Some(read);
    let (_, decision) = seen.settled(now(TEN));
    assert_eq!(
        (decision.actions.len(), decision.observe.as_slice()),
        (0, &[ScheduleObserve::Reboots][..])
    );
}

#[test]
fn one_that_was_made_counts_as_requested_also_when_the_schedule_is_suspended_before_its_mark() {
    let (_, creating) = issuing(vec![object("n1")], &[]);
    let made = created(drafts(&creating)[0]);
    let mut plan = once(TEN);
    plan.suspend = true;
    let mut seen = seen(plan).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    seen.reboots = Some(known(&[made]));
    let (seen, _) = seen.settled(now(TEN));
    let record = &seen.schedule.status.history[0];
    assert_eq!(record.outcome, OccurrenceOutcome::Cancelled);
    assert_eq!((record.asked, record.failed), (1, 0));
    assert_eq!(record.reboots.as_ref().unwrap().open, 1, "it goes on");
}

#[test]
fn each_end_is_counted_and_said_once_all_are_known() {
    let (mut seen, made) = after_issue(&["n1", "n2", "n3", "n4"]);
    let begun = seen.schedule.status.history[0].reboots.clone().unwrap();
    assert_eq!((begun.made, begun.open, begun.ended), (4, 4, None));
    let mut now_made = vec![
        ended(&made[0], "Rebooted", "2026-03-02T10:20:00Z"),
        ended(&made[1], "NodeGone", "2026-03-02T10:21:00Z"),
        ended(&made[2], "Cancelled", "2026-03-02T10:22:00Z"),
        made[3].clone(),
    ];
    let half = read_at(&mut seen, &now_made, "2026-03-02T10:30:00Z");
    assert_eq!(
        (half.succeeded, half.failed, half.given_up, half.open),
        (1, 1, 1, 1)
    );
    let condition = |seen: &ScheduleSnapshot| {
        let mut all = seen.schedule.status.conditions.iter();
        let it = all
            .find(|one| one.kind == "LastOccurrenceRebooted")
            .unwrap();
        (it.status.clone(), it.reason.clone())
    };
    assert_eq!(
        condition(&seen),
        ("Unknown".into(), "AwaitingReboots".into())
    );
    now_made.remove(3);
    let whole = read_at(&mut seen, &now_made, "2026-03-02T10:40:00Z");
    assert_eq!((whole.open, whole.unknown), (0, 1), "somebody deleted it");
    assert_eq!(whole.ended, Some(at("2026-03-02T10:40:00Z")));
    assert_eq!(whole.failures.len(), 2);
    assert_eq!(condition(&seen), ("False".into(), "NotAllRebooted".into()));
    let said = decide(&seen, now("2026-03-02T10:40:00Z")).report.events;
    let [.., event] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert_eq!(
        (event.severity, event.reason),
        (EventSeverity::Warning, "NotAllRebooted")
    );
    assert!(event.message.contains(&made[1].name), "{event:?}");
    // Later reads change nothing: the NodeReboots may be gone.
    assert_eq!(read_at(&mut seen, &[], "2026-03-09T10:00:00Z"), whole);
}

#[test]
fn node_reboots_that_were_deleted_after_their_time_stay_counted_while_others_wait() {
    let (mut seen, made) = after_issue(&["n1", "n2", "n3"]);
    let first = ended(&made[0], "Rebooted", "2026-03-02T10:20:00Z");
    let now_made = [first, made[1].clone(), made[2].clone()];
    read_at(&mut seen, &now_made, "2026-03-02T10:21:00Z");
    let kept = read_at(&mut seen, &now_made, "2026-03-03T09:00:00Z");
    assert_eq!(kept.settled.as_ref().unwrap().succeeded, 1);
    // The first one is deleted after a day; the others end a day later.
    let second = ended(&made[1], "Rebooted", "2026-03-04T10:00:00Z");
    let third = ended(&made[2], "Rebooted", "2026-03-04T10:30:00Z");
    let all = read_at(&mut seen, &[second, third], "2026-03-04T11:00:00Z");
    assert_eq!((all.succeeded, all.open, all.unknown), (3, 0, 0));
    assert_eq!(all.settled, None);
}

#[test]
fn what_has_not_ended_is_read_each_minute_and_what_has_is_not() {
    let (mut seen, made) = after_issue(&["n1"]);
    seen.reboots.as_mut().unwrap().taken = now(TEN).mono;
    let quiet = decide(&seen, now("2026-03-02T10:00:59Z"));
    assert_eq!(quiet.observe, []);
    assert_eq!(quiet.wake.unwrap().at, now("2026-03-02T10:01:00Z").mono);
    let due = decide(&seen, now("2026-03-02T10:01:00Z"));
    assert_eq!(due.observe, [ScheduleObserve::Reboots]);
    let over = [ended(&made[0], "Rebooted", "2026-03-02T10:00:30Z")];
    read_at(&mut seen, &over, "2026-03-02T10:01:00Z");
    seen.reboots = None;
    let done = decide(&seen, now("2026-03-02T10:05:00Z"));
    assert_eq!((done.observe.len(), done.wake), (0, None));
}

#[test]
fn many_failures_are_counted_and_some_are_named() {
    let nodes: Vec<String> = (0..50).map(|number| format!("n{number:02}")).collect();
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let (mut seen, made) = after_issue(&names);
    let over: Vec<MadeNodeReboot> = made
        .iter()
        .map(|one| ended(one, "NodeGone", "2026-03-02T10:20:00Z"))
        .collect();
    let counted = read_at(&mut seen, &over, "2026-03-02T10:30:00Z");
    assert_eq!(counted.failed, 50);
    assert_eq!(counted.failures.len(), MAX_LISTED_FAILURES);
}
