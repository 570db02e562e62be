//! Prometheus' text format 0.0.4. Source: prometheus.io, "Exposition formats".
//!
//! A family is one HELP and one TYPE line, then its samples, all together; a label's value has
//! `\`, `"` and line feed escaped, a help text `\` and line feed. A family without a sample is left
//! out.

use std::fmt::{self, Write as _};

use jiff::Timestamp;

/// What a family counts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts below bounds, a sum and a count; its samples have suffixes.
    Histogram,
}

/// The page as it grows.
#[derive(Default)]
pub struct Text(String);

/// A family as it grows.
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    kind: Kind,
    help: &'static str,
    begun: bool,
}

impl Text {
    /// Begins a family; its head is written with its first sample.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) -> Family<'_> {
        Family {
            text: &mut self.0,
            name,
            kind,
            help,
            begun: false,
        }
    }

    /// The page.
    pub fn finish(self) -> String {
        self.0
    }
}

/// Writing to a `String` cannot fail.
const NEVER: &str = "a string takes every text";

impl Family<'_> {
    /// One sample of this family.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.suffixed("", labels, value);
    }

    /// One sample of a series whose name is the family's and this (`_sum`).
    pub fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        if !self.begun {
            self.begun = true;
            self.begin();
        }
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (index, (name, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            write!(self.text, "{name}=\"{}\"", escaped(value, true)).expect(NEVER);
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        writeln!(self.text, " {value}").expect(NEVER);
    }

    /// A moment as Unix time in seconds; no sample without one.
    pub fn time(&mut self, labels: &[(&str, &str)], time: Option<Timestamp>) {
        if let Some(time) = time {
            let milliseconds = time.as_millisecond();
            let (seconds, rest) = (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000));
            self.sample(labels, format_args!("{seconds}.{rest:03}"));
        }
    }

    fn begin(&mut self) {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let (name, help) = (self.name, escaped(self.help, false));
        write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n").expect(NEVER);
    }
}

fn escaped(text: &str, quotes: bool) -> String {
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
        let mut text = Text::default();
        text.family("x", Kind::Gauge, "a \"b\" \\ c\nd")
            .sample(&[("l", "a\"b\\c\nd"), ("m", "é")], 1.5);
        assert_eq!(
            text.finish(),
            "# HELP x a \"b\" \\\\ c\\nd\n# TYPE x gauge\nx{l=\"a\\\"b\\\\c\\nd\",m=\"é\"} 1.5\n"
        );
    }

    #[test]
    fn a_family_without_a_sample_is_left_out() {
        let mut text = Text::default();
        text.family("x", Kind::Counter, "help").time(&[], None);
        assert_eq!(text.finish(), "");
    }

    #[test]
    fn times_are_unix_seconds() {
        let mut text = Text::default();
        text.family("x", Kind::Gauge, "h").time(
            &[],
            Some(Timestamp::from_millisecond(1_700_000_000_042).unwrap()),
        );
        assert!(text.finish().ends_with("\nx 1700000000.042\n"));
    }
}
