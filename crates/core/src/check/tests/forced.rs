use super::*;
use crate::explain::RemediationForecast;
use crate::remediation::RemediationReason;

fn ready() -> RemediationForecast {
    RemediationForecast {
        subject: "machine/ns/m1".into(),
        host: Some("metal/h1".into()),
        under_way: false,
        is_ending: false,
        refusal: None,
        not_ready: None,
        no_identity: false,
    }
}

fn found(foreseen: Result<RemediationForecast, String>) -> Vec<(FindingSeverity, String)> {
    let view = CheckView {
        remediation: Some(foreseen),
        ..alone()
    };
    let findings = find_reboot_blockers(&view, now(100)).unwrap().into_iter();
    findings
        .filter(|found| found.subject == "remediation")
        .map(|found| (found.severity, found.what))
        .collect()
}

#[test]
fn what_would_keep_a_node_from_being_fenced_is_told_before_it_fails() {
    let works = "if this node failed: host metal/h1 would be powered off; power control works";
    assert_eq!(found(Ok(ready())), [(FindingSeverity::Note, works.into())]);
    let refused = |reason, passes| RemediationForecast {
        refusal: Some((reason, "why".into(), passes)),
        ..ready()
    };
    for (foreseen, severity, word) in [
        (
            refused(RemediationReason::HostShared, false),
            FindingSeverity::Warns,
            "HostShared: why",
        ),
        (
            refused(RemediationReason::CoolingDown, true),
            FindingSeverity::Note,
            "CoolingDown: why",
        ),
        (
            refused(RemediationReason::NoHost, false),
            FindingSeverity::Note,
            "NoHost: why",
        ),
        (
            RemediationForecast {
                not_ready: Some("Unreachable: away".into()),
                ..ready()
            },
            FindingSeverity::Warns,
            "Dogwatch might be unable to prove host metal/h1 off: Unreachable: away",
        ),
        (
            RemediationForecast {
                no_identity: true,
                ..ready()
            },
            FindingSeverity::Note,
            "system UUID",
        ),
        (
            RemediationForecast {
                under_way: true,
                ..refused(RemediationReason::NoHost, false)
            },
            FindingSeverity::Blocks,
            "machine/ns/m1 is under way",
        ),
    ] {
        let mut all = found(Ok(foreseen));
        all.retain(|(_, what)| what != works);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].0, severity, "{all:?}");
        assert!(all[0].1.contains(word), "{all:?}");
    }
    let blind = found(Err("not allowed".into()));
    assert_eq!(blind[0].0, FindingSeverity::Unknown);
}

#[test]
fn without_a_leader_nobody_would_power_a_host_off() {
    let mut view = CheckView {
        remediation: Some(Ok(ready())),
        ..alone()
    };
    view.fleet.controller = crate::explain::ObservedController::Nobody;
    let told = told(&view);
    let warning = "warns controller: no dogwatch controller leads: if this node failed, nobody would power its host off";
    assert!(told.contains(&warning.to_owned()), "{told:#?}");
}
