//! The controller's metrics.
//!
//! **For:** each component writes its own families, `/metrics` prints all of them.
//! **May touch:** nothing.
//! **Promises:** a scrape shows one moment of each family; samples of a gauge that no longer apply
//! are removed ([`MetricsRegistry::replace_gauge`]). The caller must bound the values of each
//! label: none may come unbounded from a request or an object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dogwatch_runtime::metrics_text::{MetricKind, MetricsPage};
use dogwatch_runtime::mutex::lock_ignoring_poison;

/// A metric family: a constant beside the component that fills it.
#[derive(Debug)]
pub struct MetricFamily {
    /// Begins with `dogwatch_`.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    pub shape: MetricShape,
}

#[derive(Debug, Clone, Copy)]
pub enum MetricShape {
    Counter,
    Gauge,
    /// A histogram of durations, with these upper bounds (seconds, ascending).
    Seconds(&'static [f64]),
}

/// Names and values of labels, in the order in which they are printed.
pub type MetricLabels = Vec<(&'static str, String)>;

/// Clones share the same metrics.
#[derive(Debug, Clone, Default)]
pub struct MetricsRegistry(Arc<Mutex<BTreeMap<&'static str, FamilySamples>>>);

#[derive(Debug)]
struct FamilySamples {
    family: &'static MetricFamily,
    samples: BTreeMap<MetricLabels, MetricSample>,
}

#[derive(Debug, Clone, Default)]
struct MetricSample {
    /// The value, or the sum of the observed values.
    value: f64,
    /// The number of observations, and how many were below each bound.
    count: u64,
    below: Vec<u64>,
}

impl MetricsRegistry {
    pub fn add_to_counter(
        &self,
        family: &'static MetricFamily,
        labels: &[(&'static str, &str)],
        by: u64,
    ) {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        let by = by as f64;
        self.update_sample(family, labels, |sample| sample.value += by);
    }

    pub fn set_gauge(
        &self,
        family: &'static MetricFamily,
        labels: &[(&'static str, &str)],
        value: f64,
    ) {
        self.update_sample(family, labels, |sample| sample.value = value);
    }

    /// Sets all samples of a gauge, and removes its other ones.
    pub fn replace_gauge(
        &self,
        family: &'static MetricFamily,
        samples: impl IntoIterator<Item = (MetricLabels, f64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| {
            let sample = MetricSample {
                value,
                ..MetricSample::default()
            };
            (labels, sample)
        });
        let samples = samples.collect();
        self.lock_families()
            .insert(family.name, FamilySamples { family, samples });
    }

    pub fn observe_duration(
        &self,
        family: &'static MetricFamily,
        labels: &[(&'static str, &str)],
        took: Duration,
    ) {
        let seconds = took.as_secs_f64();
        let bounds = family.histogram_bounds();
        self.update_sample(family, labels, |sample| {
            sample.value += seconds;
            sample.count += 1;
            sample.below.resize(bounds.len(), 0);
            for (count, bound) in sample.below.iter_mut().zip(bounds) {
                *count += u64::from(seconds <= *bound);
            }
        });
    }

    /// The whole page in Prometheus' text format.
    pub fn render_page(&self) -> String {
        let mut text = MetricsPage::default();
        text.begin_family(
            "dogwatch_build_info",
            MetricKind::Gauge,
            "The program that runs.",
        )
        .write_sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
        for kept in self.lock_families().values() {
            kept.render_family(&mut text);
        }
        text.finish()
    }

    fn update_sample(
        &self,
        family: &'static MetricFamily,
        labels: &[(&'static str, &str)],
        change: impl FnOnce(&mut MetricSample),
    ) {
        let labels: MetricLabels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let mut all = self.lock_families();
        let kept = all.entry(family.name).or_insert_with(|| FamilySamples {
            family,
            samples: BTreeMap::new(),
        });
        change(kept.samples.entry(labels).or_default());
    }

    fn lock_families(&self) -> MutexGuard<'_, BTreeMap<&'static str, FamilySamples>> {
        lock_ignoring_poison(&self.0)
    }
}

impl MetricFamily {
    fn histogram_bounds(&self) -> &'static [f64] {
        match self.shape {
            MetricShape::Seconds(bounds) => bounds,
            MetricShape::Counter | MetricShape::Gauge => &[],
        }
    }
}

impl FamilySamples {
    fn render_family(&self, text: &mut MetricsPage) {
        let kind = match self.family.shape {
            MetricShape::Counter => MetricKind::Counter,
            MetricShape::Gauge => MetricKind::Gauge,
            MetricShape::Seconds(_) => MetricKind::Histogram,
        };
        let mut family = text.begin_family(self.family.name, kind, self.family.help);
        for (labels, sample) in &self.samples {
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            match self.family.shape {
                MetricShape::Counter | MetricShape::Gauge => {
                    family.write_sample(&labels, sample.value);
                }
                MetricShape::Seconds(bounds) => {
                    for (count, bound) in sample.below.iter().zip(bounds) {
                        family.write_suffixed_sample(
                            "_bucket",
                            &with_bound(&labels, &bound.to_string()),
                            count,
                        );
                    }
                    family.write_suffixed_sample(
                        "_bucket",
                        &with_bound(&labels, "+Inf"),
                        sample.count,
                    );
                    family.write_suffixed_sample("_sum", &labels, sample.value);
                    family.write_suffixed_sample("_count", &labels, sample.count);
                }
            }
        }
    }
}

fn with_bound<'a>(labels: &[(&'a str, &'a str)], bound: &'a str) -> Vec<(&'a str, &'a str)> {
    labels.iter().copied().chain([("le", bound)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    static WAITERS: MetricFamily = MetricFamily {
        name: "x_waiters",
        help: "Who waits.",
        shape: MetricShape::Gauge,
    };
    static TOOK: MetricFamily = MetricFamily {
        name: "x_seconds",
        help: "How long.",
        shape: MetricShape::Seconds(&[0.1, 1.0]),
    };
    static CALLS: MetricFamily = MetricFamily {
        name: "x_total",
        help: "Calls.",
        shape: MetricShape::Counter,
    };

    #[test]
    fn every_family_of_the_leader_is_in_the_book() {
        const BOOK: &str = include_str!("../../../docs/controller.md");
        let sources = [
            include_str!("leader/election.rs"),
            include_str!("policy_status/mod.rs"),
            include_str!("power/power_metrics.rs"),
            include_str!("remediation/remediation_metrics.rs"),
        ];
        let lines = sources.iter().flat_map(|source| source.lines());
        let names = lines.filter_map(|line| line.trim().strip_prefix("name: \""));
        let names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            assert!(BOOK.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn a_gauge_that_is_replaced_forgets_what_does_not_apply() {
        let metrics = MetricsRegistry::default();
        metrics.set_gauge(&WAITERS, &[("group", "a")], 1.0);
        metrics.replace_gauge(&WAITERS, [(vec![("group", "b".to_owned())], 2.0)]);
        let page = metrics.render_page();
        assert!(page.contains("x_waiters{group=\"b\"} 2\n"), "{page}");
        assert!(!page.contains("group=\"a\""), "{page}");
    }

    #[test]
    fn a_counter_grows_by_label() {
        let metrics = MetricsRegistry::default();
        metrics.add_to_counter(&CALLS, &[("answer", "200")], 1);
        metrics.add_to_counter(&CALLS, &[("answer", "200")], 2);
        let page = metrics.render_page();
        assert!(
            page.contains("# TYPE x_total counter\nx_total{answer=\"200\"} 3\n"),
            "{page}"
        );
    }

    #[test]
    fn durations_are_counted_below_each_bound() {
        let metrics = MetricsRegistry::default();
        metrics.observe_duration(&TOOK, &[("p", "a")], Duration::from_millis(500));
        metrics.observe_duration(&TOOK, &[("p", "a")], Duration::from_secs(2));
        let page = metrics.render_page();
        let expected = "# TYPE x_seconds histogram\n\
            x_seconds_bucket{p=\"a\",le=\"0.1\"} 0\n\
            x_seconds_bucket{p=\"a\",le=\"1\"} 1\n\
            x_seconds_bucket{p=\"a\",le=\"+Inf\"} 2\n\
            x_seconds_sum{p=\"a\"} 2.5\n\
            x_seconds_count{p=\"a\"} 2\n";
        assert!(page.contains(expected), "{page}");
    }
}
