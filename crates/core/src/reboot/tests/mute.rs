//! §10.6: the label that keeps NVSentinel quiet is set where it is absent, and removed by us alone.

use dogwatch_api::label::NVSENTINEL_MANAGED;

use super::super::*;
use super::kit::*;

fn muting() -> RebootConfig {
    RebootConfig {
        mute_nvsentinel: true,
        ..config()
    }
}

fn with_label(seen: &mut RebootSnapshot, value: &str) {
    set(seen, |node| {
        node.labels
            .insert(NVSENTINEL_MANAGED.into(), value.to_owned());
    });
}

#[test]
fn the_label_comes_with_the_cordon_where_the_policy_asks_for_it_and_nobody_has_set_it() {
    let mut seen = seen(RebootPhase::Waiting);
    let quiet = decide(&seen, &config(), now(5));
    assert_eq!(patch(&quiet).mute_label, None);
    let mute = decide(&seen, &muting(), now(5));
    assert_eq!(patch(&mute).mute_label, Some(true));
    assert!(written(&mute).muted);
    for value in ["false", "true"] {
        with_label(&mut seen, value);
        let decision = decide(&seen, &muting(), now(5));
        assert_eq!(patch(&decision).mute_label, None, "{value}");
        assert!(!written(&decision).muted, "{value}");
    }
}

/// The node is back, and everything but the record is done.
fn finished(muted: bool, value: &str) -> RebootSnapshot {
    let mut back = seen(RebootPhase::Returning);
    set_record(&mut back, |record| {
        record.muted = muted;
        record.cordoned_by_us = false;
    });
    set(&mut back, |node| node.unschedulable = false);
    with_label(&mut back, value);
    back.host.boot_id = Ok(boot("boot-2"));
    back.run.ready_since = Some(std::time::Duration::ZERO);
    back.gates = Some(Vec::new());
    back.lock.leases = Some(vec![free(0)]);
    back
}

#[test]
fn it_goes_with_the_record_if_we_set_it_and_nobody_changed_it_also_if_the_policy_asks_no_more() {
    for config in [config(), muting()] {
        for (muted, value, change) in [
            (true, "false", Some(false)),
            (true, "true", None),
            (false, "false", None),
        ] {
            let decision = decide(&finished(muted, value), &config, now(60));
            assert_eq!(patch(&decision).mute_label, change, "{muted} {value}");
        }
    }
}

#[test]
fn it_goes_with_the_cordon_when_the_drain_is_undone() {
    let mut seen = seen(RebootPhase::Draining);
    set_record(&mut seen, |record| record.muted = true);
    with_label(&mut seen, "false");
    set(&mut seen, |node| node.unschedulable = false);
    let undone = decide(&seen, &muting(), now(5));
    assert_eq!(patch(&undone).mute_label, Some(false));
    assert_eq!(written(&undone).phase, RebootPhase::Waiting);
    assert!(!written(&undone).muted);
}
