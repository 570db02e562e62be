//! Single decisions about a request: the times at which they change. Source: specification §4.2.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::super::super::*;
use super::super::kit::*;
use super::desk::{DELETE, TAINT};
use crate::Now;
use crate::condition::CurrentCondition;
use crate::decision::DecisionEvent;
use crate::power::CurrentPower;
use crate::reboot::ObservedNode;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A request of second 900 that was taken up, at second 1000; its Node is not Ready.
struct Asked {
    case: Remediation,
    known: RemediationMemory,
    now: Now,
}

impl Asked {
    fn new() -> Self {
        let request = Arc::new(PowerRequest {
            created: at(900),
            node_name: Some("n-a".into()),
            strategy: Ok(DELETE),
            status: RequestStatus {
                started_at: Some(at(900)),
                ..RequestStatus::default()
            },
            ..request()
        });
        let failed = ObservedNode {
            ready: false,
            ..node("a")
        };
        let mut world = world([machine("a")], [host("a")], [failed]);
        world.requests.insert(request.name.clone(), request);
        let mut it = Self {
            case: case_of(&world, "powerremediation/machines/r").unwrap(),
            known: RemediationMemory::default(),
            now: now(1000),
        };
        it.power_is(CurrentPower::On);
        it
    }

    /// Its key and record are on the host.
    fn keyed() -> Self {
        let mut it = Self::new();
        it.case.host = Ok(Arc::new(keyed(host("a"), &it.case.key)));
        let begun = begun(host("a"), &it.case.key);
        it.case.record = record_on_host(&begun);
        it
    }

    fn request(&mut self) -> &mut PowerRequest {
        Arc::make_mut(self.case.request.as_mut().unwrap())
    }

    fn status(&mut self) -> &mut RequestStatus {
        &mut self.request().status
    }

    fn node(&mut self) -> &mut ObservedNode {
        Arc::make_mut(self.case.node.as_mut().unwrap())
    }

    fn attempt(&mut self) -> &mut RemediationAttempt {
        self.status().attempt.get_or_insert(RemediationAttempt {
            number: 1,
            started_at: at(900),
            key_at: None,
            off_at: None,
            released_at: None,
            key_removed_at: None,
        })
    }

    fn power_is(&mut self, power: CurrentPower) {
        self.known.power = Some(unproved_power(power));
    }

    /// The Node is Ready, with this `lastHeartbeatTime`.
    fn is_ready(&mut self, beat: Option<i64>) {
        let node = self.node();
        node.ready = true;
        node.conditions = vec![CurrentCondition {
            kind: "Ready".into(),
            status: "True".into(),
            reason: String::new(),
            message: String::new(),
            last_transition: None,
            last_heartbeat: beat.map(at),
        }];
    }

    fn has_step(&mut self, step: RemediationStep, second: i64) {
        let at = at(second);
        self.status().timeline.push(StepStamp { step, at });
    }

    fn decision(&self) -> RemediationDecision {
        let around = ConcurrentRemediations::default();
        let config = RemediationConfig::default();
        decide(&self.case, &self.known, &around, &config, self.now)
    }

    fn written(&self) -> Option<RequestStatus> {
        let mut actions = self.decision().actions.into_iter();
        actions.find_map(|action| {
            if let RemediationAction::WriteStatus { status, .. } = action {
                Some(*status)
            } else {
                None
            }
        })
    }

    fn removes_key(&self) -> bool {
        let decision = self.decision();
        let mut actions = decision.actions.iter();
        actions.any(|it| matches!(it, RemediationAction::RemoveKey { .. }))
    }
}

#[test]
fn a_request_is_served_unless_it_is_served_already_ended_cancelled_or_bad() {
    type Change = fn(&mut Asked);
    let changes: [Change; 5] = [
        |it| it.request().deleting = true,
        |it| it.request().timed_out = true,
        |it| it.request().strategy = Err(String::new()),
        |it| it.status().ended_at = Some(at(950)),
        |it| it.attempt().released_at = Some(at(950)),
    ];
    let needs = |it: &mut Asked| super::super::super::request::needs_remediation(it.request());
    assert!(needs(&mut Asked::new()));
    let mut unserved = Asked::new();
    unserved.attempt();
    assert!(needs(&mut unserved));
    for (index, change) in changes.into_iter().enumerate() {
        let mut it = Asked::new();
        change(&mut it);
        assert!(!needs(&mut it), "change {index}");
    }
}

#[test]
fn a_request_that_has_not_begun_waits_for_its_cluster_without_a_status() {
    for (is_started, is_keyed) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut it = if is_keyed {
            Asked::keyed()
        } else {
            Asked::new()
        };
        it.status().started_at = is_started.then(|| at(900));
        let reason = RemediationReason::WorkloadClusterUnreachable;
        it.case.cluster.problem = Some((reason, "it does not answer".into()));
        it.case.node = None;
        assert_eq!(it.decision().cause.reason, reason);
        let has_begun = is_started || is_keyed;
        assert_eq!(it.written().is_some(), has_begun, "{is_started} {is_keyed}");
    }
}

#[test]
fn the_next_heartbeat_of_a_ready_node_is_read_five_seconds_after_the_last() {
    let last = S * 995;
    for (asked, wake, newer_than) in [
        (Some(last + MS), Some(S * 1000 + MS), None),
        (Some(last), None, Some(last + Duration::from_nanos(1))),
        (None, None, Some(Duration::ZERO)),
    ] {
        let mut it = Asked::new();
        it.status().started_at = None;
        it.is_ready(Some(950));
        let beat = beat(it.case.node.as_ref(), 950);
        it.known.heartbeats = asked.map(|asked| HeartbeatHistory::new(asked, asked, beat));
        let decision = it.decision();
        let observe = newer_than.map(|newer_than| RemediationObserve::Heartbeat {
            node: node_name("a"),
            newer_than,
        });
        assert_eq!(decision.observe, observe.into_iter().collect::<Vec<_>>());
        if wake.is_some() {
            assert_eq!(decision.wake.map(|wake| wake.at), wake);
        }
    }
}

#[test]
fn a_heartbeat_shows_a_healthy_node_if_it_is_later_than_the_request_and_the_last_off() {
    for (off, beat, is_healthy) in [
        (None, Some(900), true),
        (None, Some(841), true),
        (None, Some(840), false),
        (None, None, false),
        (Some(950), Some(891), true),
        (Some(950), Some(890), false),
    ] {
        let mut it = Asked::new();
        it.is_ready(beat);
        it.has_step(RemediationStep::Requested, 901);
        if let Some(off) = off {
            it.has_step(RemediationStep::OffProved, off);
            it.has_step(RemediationStep::PoweredOn, 901);
        }
        let decision = it.decision();
        let is_held = decision.cause.reason == RemediationReason::NodeHealthy;
        assert_eq!(is_held, is_healthy, "{off:?} {beat:?}: {decision:?}");
        assert_eq!(decision.observe.is_empty(), is_healthy);
    }
}

#[test]
fn reads_that_found_a_healthy_node_are_valid_for_a_minute() {
    for (asked, is_valid) in [(S * 940 + MS, true), (S * 940, false)] {
        let mut it = Asked::new();
        it.is_ready(None);
        it.known.fresh = Some(FreshReads {
            asked_at: asked,
            host: it.case.host.clone().ok(),
            node: it.case.node.clone(),
            backup: None,
            stored_backup: None,
            heartbeat: beat(it.case.node.as_ref(), 950),
            needs_remediation: true,
        });
        let decision = it.decision();
        let is_held = decision.cause.reason == RemediationReason::NodeHealthy;
        assert_eq!(is_held, is_valid, "{decision:?}");
        if is_valid {
            assert_eq!(decision.wake.unwrap().at, asked + S * 60);
        }
    }
}

#[test]
fn a_healthy_node_has_its_key_removed_after_a_minute_and_not_before() {
    for (key_at, is_removed) in [(990, false), (941, false), (940, true)] {
        let mut it = Asked::keyed();
        it.attempt().key_at = Some(at(key_at));
        it.is_ready(Some(995));
        assert_eq!(it.removes_key(), is_removed, "{key_at}");
        if !is_removed {
            let wake = it.decision().wake.unwrap().at;
            assert_eq!(wake, S * u32::try_from(key_at + 60).unwrap());
        }
    }
}

/// Deleted after the host was proved off and the key removed, in these seconds.
fn deleted_after(key_removed: i64) -> Asked {
    let mut it = Asked::new();
    it.request().deleting = true;
    let attempt = it.attempt();
    attempt.key_at = Some(at(300));
    attempt.off_at = Some(at(350));
    attempt.key_removed_at = Some(at(key_removed));
    it.status().boot_id = Some("old-boot".into());
    it.has_step(RemediationStep::Requested, 300);
    it.has_step(RemediationStep::KeyAdded, 300);
    it.has_step(RemediationStep::KeyRemoved, key_removed);
    it.power_is(CurrentPower::Off);
    it
}

#[test]
fn the_last_message_says_that_the_host_is_off_unless_it_is_on_or_was_never_off_or_its_node_is_back()
{
    type Change = fn(&mut Asked);
    let cases: [(&str, Change, bool); 6] = [
        ("off", |_| (), true),
        ("on", |it| it.power_is(CurrentPower::On), false),
        ("not proved off", |it| it.attempt().off_at = None, false),
        (
            "the Node is back",
            |it| {
                it.is_ready(None);
                it.status().boot_id = Some("an-older-boot".into());
            },
            false,
        ),
        ("Ready with the old boot", |it| it.is_ready(None), true),
        (
            "another boot without a key",
            |it| {
                it.is_ready(None);
                it.status().boot_id = Some("an-older-boot".into());
                let is_key = |it: &StepStamp| it.step == RemediationStep::KeyAdded;
                it.status().timeline.retain(|it| !is_key(it));
            },
            true,
        ),
    ];
    for (what, change, says_off) in cases {
        let mut it = deleted_after(390);
        change(&mut it);
        let message = it.decision().cause.message;
        assert_eq!(
            message.contains("its host is off"),
            says_off,
            "{what}: {message}"
        );
    }
}

#[test]
fn a_single_reboot_that_is_requested_holds_no_host_off() {
    let mut it = deleted_after(390);
    let host = Arc::make_mut(it.case.host.as_mut().unwrap());
    let reboot = ("reboot.metal3.io".to_owned(), String::new());
    host.annotations.extend([reboot]);
    let message = it.decision().cause.message;
    assert!(message.contains("was not seen on in time"), "{message}");
}

#[test]
fn a_host_that_was_off_is_waited_for_ten_minutes_after_the_key() {
    let decision = deleted_after(990).decision();
    assert_eq!(decision.cause.reason, RemediationReason::PoweringOn);
    assert_eq!(decision.wake.unwrap().at, S * 1590);
}

#[test]
fn a_node_that_appears_while_the_host_is_off_is_not_the_requests() {
    for (power, off_at, is_taken) in [
        (CurrentPower::On, None, true),
        (CurrentPower::Off, None, false),
        (CurrentPower::Unknown, Some(at(950)), false),
    ] {
        let mut it = Asked::keyed();
        it.power_is(power);
        let attempt = it.attempt();
        attempt.key_at = Some(at(940));
        attempt.off_at = off_at;
        let written = it.written().unwrap();
        assert_eq!(written.node_uid.is_some(), is_taken, "{power:?} {off_at:?}");
    }
}

#[test]
fn a_node_that_is_gone_is_released_by_this_request_only_under_its_key() {
    for is_keyed in [true, false] {
        let mut it = if is_keyed {
            Asked::keyed()
        } else {
            Asked::new()
        };
        it.attempt();
        it.case.node = None;
        it.power_is(CurrentPower::Off);
        let attempt = it.written().unwrap().attempt.unwrap();
        assert_eq!(attempt.released_at.is_some(), is_keyed);
    }
}

#[test]
fn an_attempt_whose_time_is_half_used_up_before_its_key_begins_again() {
    for (second, started_at) in [(1199, 900), (1200, 1200)] {
        let mut it = Asked::new();
        it.attempt();
        it.now = now(second);
        let attempt = it.written().unwrap().attempt.unwrap();
        assert_eq!(attempt.started_at, at(started_at), "{second}");
    }
}

/// The host is off, the Node is tainted, and these pods were left.
fn tainted(asked_at: Duration, pods: &[&str], attachments: &[&str]) -> Asked {
    let texts = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let mut it = Asked::keyed();
    it.request().strategy = Ok(TAINT);
    it.attempt().key_at = Some(at(940));
    it.attempt().off_at = Some(at(950));
    it.node().out_of_service = true;
    it.power_is(CurrentPower::Off);
    it.known.leftovers = Some(WorkloadLeftovers {
        asked_at,
        pods: texts(pods),
        attachments: texts(attachments),
    });
    it
}

#[test]
fn nothing_left_on_a_node_releases_it_for_five_seconds() {
    for (asked, is_released) in [(S * 995 + MS, true), (S * 995, false)] {
        let written = tainted(asked, &[], &[]).written().unwrap();
        let released = written.attempt.unwrap().released_at;
        assert_eq!(released.is_some(), is_released, "{asked:?}");
    }
}

#[test]
fn what_is_left_on_a_node_is_read_two_seconds_after_the_last_read() {
    let early = tainted(S * 998 + MS, &["p"], &[]).decision();
    assert_eq!(early.observe, []);
    assert_eq!(early.wake.unwrap().at, S * 1000 + MS);
    let due = tainted(S * 998, &["p"], &[]).decision();
    let wanted = RemediationObserve::Leftovers {
        node: node_name("a"),
        newer_than: S * 998,
    };
    assert_eq!(due.observe, [wanted]);
}

#[test]
fn what_is_left_on_a_node_is_named() {
    for (pods, attachments, says) in [
        (&["p1"][..], &[][..], ": pods p1"),
        (&["p1", "p2", "p3"], &[], ": pods p1, p2, p3"),
        (&["p1", "p2", "p3", "p4"], &[], ": 4 pods (p1, p2, p3, …)"),
        (&[], &["v1"], ": volume attachments v1"),
        (&["p1"], &["v1"], ": pods p1 and volume attachments v1"),
        (&[], &[], ": none, according to an old answer"),
    ] {
        let message = tainted(S * 990, pods, attachments).decision().cause.message;
        assert!(message.ends_with(says), "{message}");
    }
}

#[test]
fn a_state_that_has_lasted_ten_minutes_is_a_warning_with_its_message() {
    for (since, count) in [(S * 400 + MS, 0), (S * 400, 1)] {
        let mut it = deleted_after(990);
        it.known.reason_since = Some((RemediationReason::PoweringOn, since));
        let decision = it.decision();
        let events = &decision.report.events;
        assert_eq!(events.len(), count, "{decision:?}");
        let is_said = |it: &DecisionEvent| it.message.ends_with(&decision.cause.message);
        assert!(events.iter().all(is_said), "{decision:?}");
    }
}

#[test]
fn where_the_old_boot_is_not_known_only_another_node_after_the_release_is_back() {
    for (is_released, old_uid, is_back) in [
        (true, "uid-of-the-old", true),
        (true, "uid-n-a", false),
        (false, "uid-of-the-old", false),
        (false, "uid-n-a", false),
    ] {
        let mut it = deleted_after(390);
        it.is_ready(None);
        it.status().boot_id = None;
        it.status().node_uid = Some(old_uid.into());
        if is_released {
            it.has_step(RemediationStep::Released, 360);
        }
        let message = it.decision().cause.message;
        let says_off = message.contains("its host is off");
        assert_eq!(says_off, !is_back, "{is_released} {old_uid}: {message}");
    }
}

#[test]
fn another_node_of_the_name_is_refused_unless_this_request_released_the_first_or_holds_its_host() {
    for (is_released, is_keyed, is_refused) in [
        (false, false, true),
        (true, false, false),
        (false, true, false),
    ] {
        let mut it = if is_keyed {
            Asked::keyed()
        } else {
            Asked::new()
        };
        it.status().node_uid = Some("uid-of-the-old".into());
        if is_released {
            it.has_step(RemediationStep::Released, 950);
        }
        let reason = it.decision().cause.reason;
        let refused = reason == RemediationReason::NodeReplaced;
        assert_eq!(refused, is_refused, "{is_released} {is_keyed}: {reason}");
    }
}

#[test]
fn the_open_record_of_a_request_keeps_the_cluster_in_which_it_began() {
    let prod = super::super::two_clusters::prod();
    let (name, then, today) = ("machines/prod", Some("uid-then"), Some("uid-today"));
    let ended = Some(RemediationStep::Failed);
    for (uid, cluster, cluster_uid, end, wanted) in [
        ("uid-r", Some(name), then, None, (Some(name), then)),
        ("uid-r", Some(name), None, None, (Some(name), today)),
        ("uid-r", None, None, None, (None, None)),
        ("uid-r", None, then, ended, (Some(name), today)),
        ("uid-of-another", None, then, None, (Some(name), today)),
    ] {
        let mut it = Asked::keyed();
        it.request().deleting = true;
        it.case.cluster.name = NodeCluster::Workload(prod.clone());
        it.case.cluster.uid = today.map(str::to_owned);
        let record = it.case.record.as_mut().unwrap();
        record.uid = uid.into();
        record.cluster = cluster.map(str::to_owned);
        record.cluster_uid = cluster_uid.map(str::to_owned);
        let at = at(950);
        record.steps.extend(end.map(|step| StepStamp { step, at }));
        let actions = it.decision().actions;
        let mut records = actions.iter().filter_map(RemediationAction::host_record);
        let written = records.next().expect("the key is removed with a record");
        let written = (written.cluster.as_deref(), written.cluster_uid.as_deref());
        assert_eq!(written, wanted, "{uid} {cluster:?} {cluster_uid:?} {end:?}");
    }
}

/// Status, reason and message of a condition of the request.
fn condition(it: &Asked, kind: &str) -> Option<(String, String, String)> {
    let conditions = it.decision().report.conditions;
    let found = conditions.into_iter().find(|one| one.kind == kind)?;
    Some((found.status.as_str().into(), found.reason, found.message))
}

#[test]
fn a_health_check_is_told_how_a_request_ended_unless_it_withdrew_it_itself() {
    use RemediationStep::{Failed, NodeReady, Withdrawn};
    for (step, is_deleted, is_timed_out, wanted) in [
        (NodeReady, false, false, Some(("True", "Remediated"))),
        (NodeReady, true, false, Some(("True", "Remediated"))),
        (Withdrawn, false, false, Some(("False", "NodeHealthy"))),
        (Withdrawn, false, true, Some(("False", "TimedOut"))),
        (Withdrawn, true, false, None),
        (Withdrawn, true, true, None),
        (Failed, false, false, Some(("False", "AttemptsUsedUp"))),
        (Failed, true, false, Some(("False", "AttemptsUsedUp"))),
        (Failed, false, true, Some(("False", "TimedOut"))),
    ] {
        let mut it = Asked::new();
        it.request().deleting = is_deleted;
        it.request().timed_out = is_timed_out;
        it.has_step(step, 950);
        it.status().ended_at = Some(at(950));
        let told = condition(&it, "Succeeded");
        let told = told
            .as_ref()
            .map(|(status, reason, _)| (&**status, &**reason));
        assert_eq!(told, wanted, "{step:?} {is_deleted} {is_timed_out}");
    }
}

#[test]
fn it_is_said_of_each_strategy_whether_the_node_stays() {
    for (strategy, wanted) in [
        (Ok(DELETE), "the Node is deleted, and registers again"),
        (Ok(TAINT), "the Node stays"),
        (Err("no strategy".to_owned()), "the Node stays"),
    ] {
        let mut it = Asked::new();
        it.request().strategy = strategy;
        let told = condition(&it, "PermanentNodeDeletionExpected").unwrap();
        assert_eq!((told.0.as_str(), told.2.as_str()), ("False", wanted));
    }
}
