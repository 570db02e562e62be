//! The controller's metrics.
//!
//! **For:** each component writes its own families, `/metrics` prints all of them.
//! **May touch:** nothing.
//! **Promises:** a scrape shows one moment of each family; a gauge's samples that do not apply any
//! more go ([`Metrics::replace`]). No label comes from a request or an object without a bound on
//! how many values it may have: that is the caller's to see to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_process::text::{Kind, Text};

/// One family: a constant beside the component that fills it.
#[derive(Debug)]
pub struct Family {
    /// `dogwatch_…`.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// What it counts.
    pub shape: Shape,
}

/// What a family counts.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How long something took, counted below these bounds (seconds, ascending).
    Seconds(&'static [f64]),
}

/// Names and values of labels, in the order in which they are printed.
pub type Labels = Vec<(&'static str, String)>;

/// Everything that `/metrics` shows. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Mutex<BTreeMap<&'static str, Kept>>>);

#[derive(Debug)]
struct Kept {
    family: &'static Family,
    samples: BTreeMap<Labels, Sample>,
}

#[derive(Debug, Clone, Default)]
struct Sample {
    /// The value, or the sum of what was observed.
    value: f64,
    /// How often something was observed, and how often below each bound.
    count: u64,
    below: Vec<u64>,
}

impl Metrics {
    /// Adds to a counter.
    pub fn add(&self, family: &'static Family, labels: &[(&'static str, &str)], by: u64) {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        let by = by as f64;
        self.with(family, labels, |sample| sample.value += by);
    }

    /// Sets one sample of a gauge.
    pub fn set(&self, family: &'static Family, labels: &[(&'static str, &str)], value: f64) {
        self.with(family, labels, |sample| sample.value = value);
    }

    /// Sets all samples of a gauge: others that it had are gone.
    pub fn replace(
        &self,
        family: &'static Family,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| {
            let sample = Sample {
                value,
                ..Sample::default()
            };
            (labels, sample)
        });
        let samples = samples.collect();
        self.lock().insert(family.name, Kept { family, samples });
    }

    /// Observes how long something took.
    pub fn observe(
        &self,
        family: &'static Family,
        labels: &[(&'static str, &str)],
        took: Duration,
    ) {
        let seconds = took.as_secs_f64();
        let bounds = family.bounds();
        self.with(family, labels, |sample| {
            sample.value += seconds;
            sample.count += 1;
            sample.below.resize(bounds.len(), 0);
            for (count, bound) in sample.below.iter_mut().zip(bounds) {
                *count += u64::from(seconds <= *bound);
            }
        });
    }

    /// The whole page.
    pub fn render(&self) -> String {
        let mut text = Text::default();
        text.family("dogwatch_build_info", Kind::Gauge, "The program that runs.")
            .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
        for kept in self.lock().values() {
            kept.render(&mut text);
        }
        text.finish()
    }

    fn with(
        &self,
        family: &'static Family,
        labels: &[(&'static str, &str)],
        change: impl FnOnce(&mut Sample),
    ) {
        let labels: Labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let mut all = self.lock();
        let kept = all.entry(family.name).or_insert_with(|| Kept {
            family,
            samples: BTreeMap::new(),
        });
        change(kept.samples.entry(labels).or_default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Family {
    fn bounds(&self) -> &'static [f64] {
        match self.shape {
            Shape::Seconds(bounds) => bounds,
            Shape::Counter | Shape::Gauge => &[],
        }
    }
}

impl Kept {
    fn render(&self, text: &mut Text) {
        let kind = match self.family.shape {
            Shape::Counter => Kind::Counter,
            Shape::Gauge => Kind::Gauge,
            Shape::Seconds(_) => Kind::Histogram,
        };
        let mut family = text.family(self.family.name, kind, self.family.help);
        for (labels, sample) in &self.samples {
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            match self.family.shape {
                Shape::Counter | Shape::Gauge => family.sample(&labels, sample.value),
                Shape::Seconds(bounds) => {
                    for (count, bound) in sample.below.iter().zip(bounds) {
                        family.suffixed("_bucket", &with_bound(&labels, &bound.to_string()), count);
                    }
                    family.suffixed("_bucket", &with_bound(&labels, "+Inf"), sample.count);
                    family.suffixed("_sum", &labels, sample.value);
                    family.suffixed("_count", &labels, sample.count);
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

    static WAITERS: Family = Family {
        name: "x_waiters",
        help: "Who waits.",
        shape: Shape::Gauge,
    };
    static TOOK: Family = Family {
        name: "x_seconds",
        help: "How long.",
        shape: Shape::Seconds(&[0.1, 1.0]),
    };
    static CALLS: Family = Family {
        name: "x_total",
        help: "Calls.",
        shape: Shape::Counter,
    };

    #[test]
    fn every_family_of_the_leader_is_in_the_book() {
        const BOOK: &str = include_str!("../../../docs/controller.md");
        let sources = [
            include_str!("leader/run.rs"),
            include_str!("policy_status/mod.rs"),
            include_str!("power/tally.rs"),
            include_str!("remedy/tally.rs"),
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
        let metrics = Metrics::default();
        metrics.set(&WAITERS, &[("group", "a")], 1.0);
        metrics.replace(&WAITERS, [(vec![("group", "b".to_owned())], 2.0)]);
        let page = metrics.render();
        assert!(page.contains("x_waiters{group=\"b\"} 2\n"), "{page}");
        assert!(!page.contains("group=\"a\""), "{page}");
    }

    #[test]
    fn a_counter_grows_by_label() {
        let metrics = Metrics::default();
        metrics.add(&CALLS, &[("answer", "200")], 1);
        metrics.add(&CALLS, &[("answer", "200")], 2);
        let page = metrics.render();
        assert!(
            page.contains("# TYPE x_total counter\nx_total{answer=\"200\"} 3\n"),
            "{page}"
        );
    }

    #[test]
    fn durations_are_counted_below_each_bound() {
        let metrics = Metrics::default();
        metrics.observe(&TOOK, &[("p", "a")], Duration::from_millis(500));
        metrics.observe(&TOOK, &[("p", "a")], Duration::from_secs(2));
        let page = metrics.render();
        let expected = "# TYPE x_seconds histogram\n\
            x_seconds_bucket{p=\"a\",le=\"0.1\"} 0\n\
            x_seconds_bucket{p=\"a\",le=\"1\"} 1\n\
            x_seconds_bucket{p=\"a\",le=\"+Inf\"} 2\n\
            x_seconds_sum{p=\"a\"} 2.5\n\
            x_seconds_count{p=\"a\"} 2\n";
        assert!(page.contains(expected), "{page}");
    }
}
