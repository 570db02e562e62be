//! Tests the whole page.

use super::*;

fn full() -> MetricsView {
    let mut view = MetricsView {
        phase: Some(RebootPhase::Draining),
        phase_since: Some(Timestamp::from_second(100).unwrap()),
        waiting_since: Some(Timestamp::from_second(90).unwrap()),
        blocked_by: [("budget".to_owned(), "shop/web".to_owned())].into(),
        drain: Some(DrainView {
            left: 3,
            evicted: 2,
            blocked: 1,
        }),
        triggers: [("sentinel:/run/x".to_owned(), TriggerMetric::Unknown)].into(),
        last: Some(LastRebootView {
            outcome: "Succeeded".to_owned(),
            ended: Timestamp::from_second(50).unwrap(),
            took: [(RebootPhase::Rebooting, Duration::from_millis(1500))].into(),
        }),
        ..MetricsView::default()
    };
    view.raise_alarm("RebootFailed");
    view.count_reboot("Succeeded");
    view.count_failure("conflict");
    view
}

#[test]
fn everything_that_the_loop_knows_is_shown() {
    let page = render_metrics(&full());
    for line in [
        "dogwatch_phase{phase=\"draining\"} 1",
        "dogwatch_phase{phase=\"in-service\"} 0",
        "dogwatch_phase_since_seconds 100.000",
        "dogwatch_waiting_since_seconds 90.000",
        "dogwatch_blocked_by{kind=\"budget\",name=\"shop/web\"} 1",
        "dogwatch_drain_pods{state=\"left\"} 3",
        "dogwatch_drain_pods{state=\"evicted\"} 2",
        "dogwatch_drain_pods{state=\"blocked\"} 1",
        "dogwatch_trigger{source=\"sentinel:/run/x\",state=\"unknown\"} 1",
        "dogwatch_trigger{source=\"sentinel:/run/x\",state=\"absent\"} 0",
        "dogwatch_last_reboot_outcome{outcome=\"Succeeded\"} 1",
        "dogwatch_last_reboot_end_seconds 50.000",
        "dogwatch_last_reboot_duration_seconds{phase=\"rebooting\"} 1.5",
        "dogwatch_alarm{reason=\"RebootFailed\"} 1",
        "dogwatch_reboots_total{outcome=\"Succeeded\"} 1",
        "dogwatch_api_errors_total{reason=\"conflict\"} 1",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} in\n{page}");
    }
}

#[test]
fn what_does_not_apply_has_no_sample() {
    let page = render_metrics(&MetricsView::default());
    assert!(
        page.contains("dogwatch_phase{phase=\"in-service\"} 1\n"),
        "{page}"
    );
    for name in [
        "drain_pods",
        "waiting_since",
        "last_reboot",
        "alarm",
        "blocked_by",
    ] {
        assert!(!page.contains(name), "{page}");
    }
}

#[test]
fn each_family_has_one_help_and_one_type_before_its_samples_and_no_sample_comes_twice() {
    let page = render_metrics(&full());
    assert!(page.ends_with('\n'));
    let mut families = BTreeSet::new();
    let mut samples = BTreeSet::new();
    let mut current = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            current = help.split(' ').next().unwrap().to_owned();
            let kind = lines.next().unwrap();
            assert!(kind.starts_with(&format!("# TYPE {current} ")), "{kind}");
            assert!(families.insert(current.clone()), "{current} twice");
            let counter = kind.ends_with(" counter");
            assert_eq!(counter, current.ends_with("_total"), "{kind}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(series.split('{').next().unwrap(), current);
            assert!(current.starts_with("dogwatch_"), "{current}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(samples.insert(series.to_owned()), "{series} twice");
        }
    }
}
