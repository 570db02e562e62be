use dogwatch_core::explain::explained_annotations;
use dogwatch_core::power::{
    HostName, HostSnapshot, HostStatus, PendingCommand, PendingCommandEnd as Ended, PowerCommand,
    PowerState, PowerStatus,
};
use jiff::Timestamp;

use super::super::request::PowerOffMode;
use super::*;

fn at(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

fn host(version: u64, state: PowerState) -> HostSnapshot {
    HostSnapshot {
        name: HostName::new("metal", "h1"),
        uid: "u".into(),
        resource_version: version.to_string(),
        deleting: false,
        annotations: std::collections::BTreeMap::new(),
        online: true,
        externally_provisioned: None,
        disable_power_off: false,
        created: None,
        consumer: None,
        levels: Vec::new(),
        status: HostStatus {
            powered_on: Some(state != PowerState::Off),
            operational: None,
            provisioning: Some("provisioned".into()),
            last_powered_on: at(10),
            power: PowerStatus {
                state: Some(state),
                ..PowerStatus::default()
            },
            ..HostStatus::default()
        },
    }
}

fn with(mut host: HostSnapshot, annotation: &str) -> HostSnapshot {
    host.annotations.insert(annotation.into(), String::new());
    host
}

fn sent(mut host: HostSnapshot, command: PowerCommand) -> HostSnapshot {
    host.status.power.command = Some(PendingCommand {
        id: "p/1".into(),
        command,
        level: 0,
        target: String::new(),
        since: Timestamp::UNIX_EPOCH,
        at: Timestamp::UNIX_EPOCH,
        attempt: 1,
        before: 0,
        after_unknown: false,
        why: String::new(),
        end: Ended::Open,
    });
    host
}

fn offline(mut host: HostSnapshot) -> HostSnapshot {
    host.online = false;
    host
}

fn confirmed(mut host: HostSnapshot) -> HostSnapshot {
    host.status.power.off_confirmed_at = at(30);
    host.status.power.confirmed_for = explained_annotations(&host)
        .iter()
        .map(|it| it.request.id())
        .collect();
    host
}

fn pending(mut host: HostSnapshot) -> HostSnapshot {
    host.status.pending_reboot_since = at(20);
    host
}

fn booted(mut host: HostSnapshot) -> HostSnapshot {
    host.status.last_powered_on = at(40);
    host
}

const CYCLE: PowerOperation = PowerOperation::Cycle {
    mode: PowerOffMode::Soft,
    force: false,
};

fn ended(wish: &PowerOperation, seen: &HostSnapshot) -> Option<bool> {
    let before = host(1, PowerState::On);
    let asked = host(2, PowerState::On);
    request_outcome(wish, &before, &asked, seen)
        .map(|end| matches!(end, PowerRequestOutcome::Reached(_)))
}

#[test]
fn off_is_reached_when_it_is_confirmed_and_not_when_it_is_read() {
    let off = offline(host(3, PowerState::Off));
    assert_eq!(
        ended(&PowerOperation::Off, &offline(host(3, PowerState::On))),
        None
    );
    assert_eq!(ended(&PowerOperation::Off, &off), None);
    assert_eq!(ended(&PowerOperation::Off, &confirmed(off)), Some(true));
    assert_eq!(
        ended(&PowerOperation::Off, &host(3, PowerState::On)),
        Some(false),
        "on again"
    );
}

#[test]
fn on_is_reached_when_nothing_takes_it_off_again() {
    let on = host(3, PowerState::On);
    assert_eq!(ended(&PowerOperation::On, &on), Some(true));
    assert_eq!(
        ended(&PowerOperation::On, &sent(on.clone(), PowerCommand::On)),
        Some(true)
    );
    for not_yet in [
        host(3, PowerState::PoweringOn),
        host(3, PowerState::Unknown),
        sent(on.clone(), PowerCommand::SoftOff),
        pending(on.clone()),
        with(on.clone(), "reboot.metal3.io/k"),
    ] {
        assert_eq!(ended(&PowerOperation::On, &not_yet), None);
    }
    assert_eq!(ended(&PowerOperation::On, &offline(on)), Some(false));
}

#[test]
fn a_cycle_is_over_only_with_a_power_on_later_than_the_request() {
    let asked = with(host(2, PowerState::On), "reboot.metal3.io");
    let going = pending(with(host(3, PowerState::PoweringOff), "reboot.metal3.io"));
    let served = pending(confirmed(host(4, PowerState::Off)));
    let booting = booted(pending(host(5, PowerState::PoweringOn)));
    for not_yet in [asked, going, served, booting] {
        assert_eq!(ended(&CYCLE, &not_yet), None, "{:?}", not_yet.status);
    }
    let back = booted(pending(host(6, PowerState::On)));
    assert_eq!(ended(&CYCLE, &back), Some(true));
    assert_eq!(
        ended(&CYCLE, &host(3, PowerState::On)),
        Some(false),
        "the request was removed"
    );
}

#[test]
fn a_hold_is_reached_when_off_is_proved_for_that_key() {
    let wish = PowerOperation::Hold {
        key: "k".into(),
        mode: PowerOffMode::Soft,
        force: false,
    };
    let held = with(host(3, PowerState::Off), "reboot.metal3.io/k");
    let mut proved_for_another =
        confirmed(with(host(3, PowerState::Off), "reboot.metal3.io/other"));
    proved_for_another
        .annotations
        .insert("reboot.metal3.io/k".into(), String::new());
    assert_eq!(ended(&wish, &held), None);
    assert_eq!(ended(&wish, &proved_for_another), None);
    assert_eq!(ended(&wish, &confirmed(held)), Some(true));
    assert_eq!(
        ended(&wish, &host(3, PowerState::Off)),
        Some(false),
        "the key is gone"
    );
}

#[test]
fn a_release_ends_where_others_hold_or_where_it_is_on() {
    let wish = PowerOperation::Release { key: "k".into() };
    assert_eq!(
        ended(&wish, &with(host(3, PowerState::Off), "reboot.metal3.io/x")),
        Some(true)
    );
    assert_eq!(ended(&wish, &offline(host(3, PowerState::Off))), Some(true));
    assert_eq!(ended(&wish, &host(3, PowerState::PoweringOn)), None);
    assert_eq!(ended(&wish, &host(3, PowerState::On)), Some(true));
    assert_eq!(
        ended(&wish, &with(host(3, PowerState::Off), "reboot.metal3.io/k")),
        Some(false)
    );
}

#[test]
fn what_was_seen_before_our_own_write_says_nothing() {
    assert!(is_older_host(
        &host(9, PowerState::On),
        &host(10, PowerState::On)
    ));
    assert!(!is_older_host(
        &host(10, PowerState::On),
        &host(10, PowerState::On)
    ));
}
