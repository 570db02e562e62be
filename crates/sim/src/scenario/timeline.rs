//! The timeline of a script: its lines, grouped by moment.

use dogwatch_core::reason::ReasonSeverity;
use dogwatch_core::reboot::RebootReason;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Zoned;
use tokio::time::Instant;

use super::decision_log::{DecisionEntry, DecisionLog};
use crate::observer::{EntryText, ObserverEntry, ShortNames};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineLine {
    /// Time since the start; `None` for a remark.
    pub at: Option<Duration>,
    /// The subject; empty for commands of the script.
    pub about: String,
    pub text: String,
}

impl std::fmt::Display for TimelineLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.format_line(format_clock))
    }
}

impl TimelineLine {
    /// Formats the line; `stamp` formats its time.
    fn format_line(&self, stamp: impl Fn(Duration) -> String) -> String {
        let line = match (self.at.map(stamp), self.about.as_str()) {
            (None, _) => self.text.clone(),
            (Some(at), "") => format!("{at}  {}", self.text),
            (Some(at), about) => format!("{at}  {about:<14} {}", self.text),
        };
        line.trim_end().to_owned()
    }
}

/// Collects what happens at one moment and writes it together.
pub struct ScenarioTimeline {
    start: Instant,
    /// The clock's time at the start, if the script sets it.
    began: Option<Zoned>,
    /// The length of a moment.
    length: Duration,
    moment: Instant,
    entries: Vec<ObserverEntry>,
    thoughts: Vec<DecisionEntry>,
    told: BTreeMap<String, RebootReason>,
    lines: Vec<TimelineLine>,
}

impl ScenarioTimeline {
    /// Starts counting time now. Events within `length` form one moment; use zero if time stands
    /// still while events happen.
    pub fn new(length: Duration) -> Self {
        let now = Instant::now();
        Self {
            start: now,
            began: None,
            length,
            moment: now,
            entries: Vec::new(),
            thoughts: Vec::new(),
            told: BTreeMap::new(),
            lines: Vec::new(),
        }
    }

    /// Shows day and time of a clock that shows `began` at the start.
    #[must_use]
    pub fn with_clock(self, began: Option<Zoned>) -> Self {
        Self { began, ..self }
    }

    /// Adds an event of now.
    pub fn add_entry(&mut self, entry: ObserverEntry, names: &ShortNames) {
        self.advance_moment(Instant::now(), names);
        self.entries.push(entry);
    }

    /// Adds a coordinator's decision or note.
    pub fn add_decision(&mut self, thought: DecisionEntry, names: &ShortNames) {
        self.advance_moment(thought.at, names);
        match thought.reason {
            None => self
                .entries
                .push(ObserverEntry::from_line(thought.node, thought.text)),
            Some(_) => self.thoughts.push(thought),
        }
    }

    /// Adds a line without a subject, after all pending entries.
    pub fn add_line(&mut self, text: &str, names: &ShortNames) {
        self.flush_pending(names);
        // Later entries of the same moment get the present time; otherwise times would run
        // backwards.
        self.moment = self.moment.max(Instant::now());
        let at = Some(self.moment - self.start);
        self.lines.push(TimelineLine {
            at,
            about: String::new(),
            text: text.to_owned(),
        });
    }

    pub fn add_remark(&mut self, text: &str, names: &ShortNames) {
        self.flush_pending(names);
        self.lines.push(TimelineLine {
            at: None,
            about: String::new(),
            text: names.shorten_ids(text),
        });
    }

    pub fn flush_pending(&mut self, names: &ShortNames) {
        let at = Some(self.moment - self.start);
        let mut entries = group_pod_entries(std::mem::take(&mut self.entries));
        entries.extend(self.take_decisions(names));
        self.lines
            .extend(
                entries
                    .into_iter()
                    .map(|(about, text)| TimelineLine { at, about, text }),
            );
    }

    /// Writes the pending entries if their moment is over, and returns all lines since the last
    /// call.
    pub fn take_lines(&mut self, names: &ShortNames) -> Vec<TimelineLine> {
        if Instant::now() > self.moment + self.length {
            self.flush_pending(names);
        }
        std::mem::take(&mut self.lines)
    }

    pub fn into_text(self) -> String {
        let stamp = |passed| match &self.began {
            None => format_clock(passed),
            Some(began) => began
                .saturating_add(passed)
                .strftime("%a %H:%M:%S%.3f")
                .to_string(),
        };
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|told| told.format_line(stamp))
            .collect();
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }

    fn advance_moment(&mut self, at: Instant, names: &ShortNames) {
        if at > self.moment + self.length {
            self.flush_pending(names);
            self.moment = at;
        }
    }

    /// Each coordinator's decision at the end of the moment, if it differs from the one before.
    fn take_decisions(&mut self, names: &ShortNames) -> Vec<(String, String)> {
        let mut last: BTreeMap<String, DecisionEntry> = BTreeMap::new();
        for thought in self.thoughts.drain(..) {
            last.insert(thought.node.clone(), thought);
        }
        let mut told = Vec::new();
        for (node, thought) in last {
            let Some(reason) = thought.reason else {
                continue;
            };
            if DecisionLog::is_new_start(reason) {
                self.told.remove(&node);
            }
            if reason.severity() == ReasonSeverity::Progress {
                continue;
            }
            if self.told.insert(node.clone(), reason) != Some(reason) {
                told.push((
                    node,
                    format!("· {reason}: {}", names.shorten_ids(&thought.text)),
                ));
            }
        }
        told
    }
}

/// Groups pods with the same event on the same node at the same moment.
fn group_pod_entries(entries: Vec<ObserverEntry>) -> Vec<(String, String)> {
    let mut told: Vec<(String, Option<&'static str>, Vec<String>)> = Vec::new();
    for entry in entries {
        match entry.text {
            EntryText::Line(text) => told.push((entry.about, None, vec![text])),
            EntryText::Pod { what, pod } => {
                let same = told
                    .iter_mut()
                    .find(|(about, other, _)| *about == entry.about && *other == Some(what));
                match same {
                    Some((.., pods)) => pods.push(pod),
                    None => told.push((entry.about, Some(what), vec![pod])),
                }
            }
        }
    }
    let words = |(about, what, texts): (String, Option<&'static str>, Vec<String>)| match what {
        None => (about, texts.concat()),
        Some(what) => (about, format!("{what}: {}", texts.join(", "))),
    };
    told.into_iter().map(words).collect()
}

/// `h:mm:ss.mmm`.
pub fn format_clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let mut text = String::new();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "{hours}:{minutes:02}:{:02}.{:03}",
        seconds % 60,
        time.subsec_millis()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_people_write_it() {
        assert_eq!(
            format_clock(Duration::from_millis(3_723_045)),
            "1:02:03.045"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn times_never_run_backwards() {
        let names = ShortNames::default();
        let mut timeline = ScenarioTimeline::new(Duration::from_millis(120));
        let pass = async |millis| tokio::time::advance(Duration::from_millis(millis)).await;
        pass(500).await;
        timeline.add_entry(ObserverEntry::from_line("s1", "off is proved"), &names);
        pass(50).await;
        timeline.add_line("> s2 writes", &names);
        timeline.add_entry(ObserverEntry::from_line("s1", "powers on"), &names);
        pass(200).await;
        let told = timeline.take_lines(&names);
        let times: Vec<Option<Duration>> = told.iter().map(|told| told.at).collect();
        assert_eq!(told.len(), 3);
        assert!(times.is_sorted(), "{told:?}");
    }

    #[test]
    fn pods_that_leave_together_are_told_together() {
        let pod = |about: &str, what, pod: &str| ObserverEntry {
            about: about.into(),
            text: EntryText::Pod {
                what,
                pod: pod.into(),
            },
        };
        let told = group_pod_entries(vec![
            pod("n1", "leaves", "a"),
            ObserverEntry::from_line("n1", "x"),
            pod("n1", "leaves", "b"),
            pod("n2", "leaves", "c"),
        ]);
        let expected = [("n1", "leaves: a, b"), ("n1", "x"), ("n2", "leaves: c")];
        assert_eq!(
            told,
            expected.map(|(about, text)| (about.to_owned(), text.to_owned()))
        );
    }
}
