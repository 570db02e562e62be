//! Writes Prometheus' text format 0.0.4. Source: prometheus.io, "Exposition formats".
//!
//! A family is one HELP and one TYPE line, then its samples, all together. In a label's value `\`,
//! `"` and line feed are escaped, in a help text `\` and line feed. A family without a sample is
//! left out.

use std::fmt::{self, Write as _};

use jiff::Timestamp;

#[derive(Debug, Clone, Copy)]
pub enum MetricKind {
    Counter,
    Gauge,
    /// Counts below bounds, a sum and a count; its samples have suffixes.
    Histogram,
}

#[derive(Default)]
pub struct MetricsPage(String);

pub struct MetricFamilyWriter<'a> {
    text: &'a mut String,
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    begun: bool,
}

impl MetricsPage {
    /// Begins a family; its head is written with its first sample.
    pub fn begin_family(
        &mut self,
        name: &'static str,
        kind: MetricKind,
        help: &'static str,
    ) -> MetricFamilyWriter<'_> {
        MetricFamilyWriter {
            text: &mut self.0,
            name,
            kind,
            help,
            begun: false,
        }
    }

    pub fn finish(self) -> String {
        self.0
    }
}

const STRING_WRITE_INVARIANT: &str = "a string takes every text";

impl MetricFamilyWriter<'_> {
    pub fn write_sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.write_suffixed_sample("", labels, value);
    }

    /// A sample whose name is the family's with a suffix (`_sum`).
    pub fn write_suffixed_sample(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        value: impl fmt::Display,
    ) {
        if !self.begun {
            self.begun = true;
            self.write_head();
        }
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (index, (name, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            write!(self.text, "{name}=\"{}\"", escape_text(value, true))
                .expect(STRING_WRITE_INVARIANT);
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        writeln!(self.text, " {value}").expect(STRING_WRITE_INVARIANT);
    }

    /// A moment as Unix time in seconds; no sample for `None`.
    pub fn write_timestamp(&mut self, labels: &[(&str, &str)], time: Option<Timestamp>) {
        if let Some(time) = time {
            let milliseconds = time.as_millisecond();
            let (seconds, rest) = (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000));
            self.write_sample(labels, format_args!("{seconds}.{rest:03}"));
        }
    }

    fn write_head(&mut self) {
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (name, help) = (self.name, escape_text(self.help, false));
        write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n")
            .expect(STRING_WRITE_INVARIANT);
    }
}

fn escape_text(text: &str, quotes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if quotes => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_help_are_escaped_as_the_format_says() {
        let mut text = MetricsPage::default();
        text.begin_family("x", MetricKind::Gauge, "a \"b\" \\ c\nd")
            .write_sample(&[("l", "a\"b\\c\nd"), ("m", "é")], 1.5);
        assert_eq!(
            text.finish(),
            "# HELP x a \"b\" \\\\ c\\nd\n# TYPE x gauge\nx{l=\"a\\\"b\\\\c\\nd\",m=\"é\"} 1.5\n"
        );
    }

    #[test]
    fn a_family_without_a_sample_is_left_out() {
        let mut text = MetricsPage::default();
        text.begin_family("x", MetricKind::Counter, "help")
            .write_timestamp(&[], None);
        assert_eq!(text.finish(), "");
    }

    #[test]
    fn times_are_unix_seconds() {
        let mut text = MetricsPage::default();
        text.begin_family("x", MetricKind::Gauge, "h")
            .write_timestamp(
                &[],
                Some(Timestamp::from_millisecond(1_700_000_000_042).unwrap()),
            );
        assert!(text.finish().ends_with("\nx 1700000000.042\n"));
    }
}
