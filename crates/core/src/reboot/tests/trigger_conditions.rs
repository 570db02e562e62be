//! §2.1 and §2.5: the conditions about triggers that cannot be read or that no reboot serves.

use super::super::*;
use super::kit::*;
use crate::condition::ConditionStatus;

const SENTINEL: &str = "sentinel:/run/reboot-needed";

/// Status, reason and message of a condition.
fn condition(seen: &RebootSnapshot, kind: &str) -> (bool, String, String) {
    let conditions = decide(seen, &config(), now(5)).report.conditions;
    let mut found = conditions.into_iter().filter(|one| one.kind == kind);
    let one = found.next().expect("the condition is reported");
    let is_true = one.status == ConditionStatus::True;
    (is_true, one.reason, one.message)
}

#[test]
fn a_sentinel_that_is_left_says_why_it_causes_no_reboot_and_what_to_do() {
    let table = [
        (
            RebootOutcome::Rebooted,
            false,
            "SentinelSurvivedReboot",
            "after the boot it caused",
        ),
        (
            RebootOutcome::Rebooted,
            true,
            "SentinelSurvivedReboot",
            "after the soft reboot it caused, which keeps /run",
        ),
        (
            RebootOutcome::Aborted,
            false,
            "Aborted",
            "although a person stopped the reboot that it requested",
        ),
    ];
    for (outcome, soft, reason, why) in table {
        let mut seen = idle();
        let last = LastReboot {
            outcome,
            soft,
            ..super::triggers::last(&[(SENTINEL, "a")])
        };
        set(&mut seen, |node| {
            node.last_reboot = ParsedAnnotation::Is(last);
        });
        let said = format!("{SENTINEL} is still there, unchanged, {why}");
        let condition = condition(&seen, "SentinelSurvivedReboot");
        let advice = format!("{said}: remove it, or touch it to request another reboot");
        assert_eq!(condition, (true, reason.to_owned(), advice));
        let events = decide(&seen, &config(), now(5)).report.events.into_iter();
        let events: Vec<_> = events.map(|event| (event.reason, event.message)).collect();
        assert_eq!(events, [(reason, said)]);
    }
}

#[test]
fn a_sentinel_that_no_reboot_has_served_yet_is_no_survivor() {
    let expected = (false, "NoRebootWanted".to_owned(), String::new());
    assert_eq!(condition(&idle(), "SentinelSurvivedReboot"), expected);
}

#[test]
fn the_condition_about_unknown_triggers_names_each_of_them_and_its_trouble() {
    let sentinel = "sentinel:/run/reboot-needed: permission denied";
    let request = "annotation dogwatch.dev/reboot-requested: eof";
    let last = "annotation dogwatch.dev/last-reboot cannot be read, so the coordinator obeys no \
                sentinel: repair or remove it (no JSON)";
    for (bad_sentinel, bad_request, bad_last) in [
        (false, false, false),
        (true, false, false),
        (false, true, false),
        (false, false, true),
        (true, true, true),
    ] {
        let mut seen = idle();
        seen.host.triggers = vec![if bad_sentinel { unknown() } else { absent() }];
        set(&mut seen, |node| {
            if bad_request {
                node.request = ParsedAnnotation::Bad { why: "eof".into() };
            }
            if bad_last {
                node.last_reboot = ParsedAnnotation::Bad {
                    why: "no JSON".into(),
                };
            }
        });
        let texts = [
            (bad_sentinel, sentinel),
            (bad_request, request),
            (bad_last, last),
        ];
        let bad = texts.iter().filter(|(is_bad, _)| *is_bad);
        let said: Vec<&str> = bad.map(|(_, text)| *text).collect();
        let reason = if said.is_empty() {
            "NoRebootWanted"
        } else {
            "TriggerUnknown"
        };
        let expected = (!said.is_empty(), reason.to_owned(), said.join("; "));
        assert_eq!(condition(&seen, "RebootTriggerUnknown"), expected);
    }
}

#[test]
fn what_cannot_be_read_is_an_event_with_the_same_words_as_its_condition() {
    let mut seen = idle();
    seen.host.triggers = vec![unknown()];
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Bad {
            why: "no JSON".into(),
        };
    });
    let events = decide(&seen, &config(), now(5)).report.events.into_iter();
    let unknown = events.filter(|event| event.reason == "TriggerUnknown");
    let said: Vec<String> = unknown.map(|event| event.message).collect();
    let expected = [
        "sentinel:/run/reboot-needed: permission denied",
        "annotation dogwatch.dev/last-reboot cannot be read, so the coordinator obeys no \
         sentinel: repair or remove it (no JSON)",
    ];
    assert_eq!(said, expected);
}
