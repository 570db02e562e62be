//! What happened, line by line, moment by moment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Zoned;
use tokio::time::Instant;

use super::minds::{Minds, Thought};
use crate::chronicle::{Entry, Names, Text};

/// One line of what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// When, from the start; `None` for a remark.
    pub at: Option<Duration>,
    /// About what; empty for what a script does.
    pub about: String,
    /// What.
    pub text: String,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line(clock))
    }
}

impl Told {
    /// As a person reads it, with its time written by `stamp`.
    fn line(&self, stamp: impl Fn(Duration) -> String) -> String {
        let line = match (self.at.map(stamp), self.about.as_str()) {
            (None, _) => self.text.clone(),
            (Some(at), "") => format!("{at}  {}", self.text),
            (Some(at), about) => format!("{at}  {about:<14} {}", self.text),
        };
        line.trim_end().to_owned()
    }
}

/// Gathers what happens at one moment and tells it together.
pub struct Timeline {
    start: Instant,
    /// What the clock showed then, where the script says so.
    began: Option<Zoned>,
    /// How long a moment is.
    length: Duration,
    moment: Instant,
    entries: Vec<Entry>,
    thoughts: Vec<Thought>,
    told: BTreeMap<String, &'static str>,
    lines: Vec<Told>,
}

impl Timeline {
    /// Time is counted from now. What happens within `length` counts as one moment: nothing, where
    /// time stands still while things happen.
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

    /// Tells day and time on a clock that shows `began` at the start.
    #[must_use]
    pub fn by_clock(self, began: Option<Zoned>) -> Self {
        Self { began, ..self }
    }

    /// Adds what happens now.
    pub fn add(&mut self, entry: Entry, names: &Names) {
        self.moment_is(Instant::now(), names);
        self.entries.push(entry);
    }

    /// Adds what came to a coordinator's mind.
    pub fn think(&mut self, thought: Thought, names: &Names) {
        self.moment_is(thought.at, names);
        match thought.reason {
            None => self.entries.push(Entry::line(thought.node, thought.text)),
            Some(_) => self.thoughts.push(thought),
        }
    }

    /// Adds a line about nothing, after everything until now.
    pub fn say(&mut self, text: &str, names: &Names) {
        self.flush(names);
        // What follows within the same moment is told as of now, or times would run backwards.
        self.moment = self.moment.max(Instant::now());
        let at = Some(self.moment - self.start);
        self.lines.push(Told {
            at,
            about: String::new(),
            text: text.to_owned(),
        });
    }

    /// Adds a line without a time.
    pub fn remark(&mut self, text: &str, names: &Names) {
        self.flush(names);
        self.lines.push(Told {
            at: None,
            about: String::new(),
            text: names.shorten(text),
        });
    }

    /// Tells what is pending.
    pub fn flush(&mut self, names: &Names) {
        let at = Some(self.moment - self.start);
        let mut entries = together(std::mem::take(&mut self.entries));
        entries.extend(self.conclusions(names));
        self.lines.extend(
            entries
                .into_iter()
                .map(|(about, text)| Told { at, about, text }),
        );
    }

    /// Tells what is pending if its moment is over, and takes all that was told since the last time.
    pub fn fresh(&mut self, names: &Names) -> Vec<Told> {
        if Instant::now() > self.moment + self.length {
            self.flush(names);
        }
        std::mem::take(&mut self.lines)
    }

    /// Everything, as text.
    pub fn into_text(self) -> String {
        let stamp = |passed| match &self.began {
            None => clock(passed),
            Some(began) => began
                .saturating_add(passed)
                .strftime("%a %H:%M:%S%.3f")
                .to_string(),
        };
        let lines: Vec<String> = self.lines.iter().map(|told| told.line(stamp)).collect();
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }

    fn moment_is(&mut self, at: Instant, names: &Names) {
        if at > self.moment + self.length {
            self.flush(names);
            self.moment = at;
        }
    }

    /// What each coordinator thinks at the end of the moment, where it is another thing than before.
    fn conclusions(&mut self, names: &Names) -> Vec<(String, String)> {
        let mut last: BTreeMap<String, Thought> = BTreeMap::new();
        for thought in self.thoughts.drain(..) {
            last.insert(thought.node.clone(), thought);
        }
        let mut told = Vec::new();
        for (node, thought) in last {
            let Some(reason) = thought.reason else {
                continue;
            };
            if Minds::is_new_start(reason) {
                self.told.remove(&node);
            }
            if Minds::is_passing(reason) {
                continue;
            }
            if self.told.insert(node.clone(), reason) != Some(reason) {
                told.push((
                    node,
                    format!("· {reason}: {}", names.shorten(&thought.text)),
                ));
            }
        }
        told
    }
}

/// Pods to which the same happened on the same node at the same moment are told together.
fn together(entries: Vec<Entry>) -> Vec<(String, String)> {
    let mut told: Vec<(String, Option<&'static str>, Vec<String>)> = Vec::new();
    for entry in entries {
        match entry.text {
            Text::Line(text) => told.push((entry.about, None, vec![text])),
            Text::Pod { what, pod } => {
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
pub fn clock(time: Duration) -> String {
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
        assert_eq!(clock(Duration::from_millis(3_723_045)), "1:02:03.045");
    }

    #[tokio::test(start_paused = true)]
    async fn times_never_run_backwards() {
        let names = Names::default();
        let mut timeline = Timeline::new(Duration::from_millis(120));
        let pass = async |millis| tokio::time::advance(Duration::from_millis(millis)).await;
        pass(500).await;
        timeline.add(Entry::line("s1", "off is proved"), &names);
        pass(50).await;
        timeline.say("> s2 writes", &names);
        timeline.add(Entry::line("s1", "powers on"), &names);
        pass(200).await;
        let told = timeline.fresh(&names);
        let times: Vec<Option<Duration>> = told.iter().map(|told| told.at).collect();
        assert_eq!(told.len(), 3);
        assert!(times.is_sorted(), "{told:?}");
    }

    #[test]
    fn pods_that_leave_together_are_told_together() {
        let pod = |about: &str, what, pod: &str| Entry {
            about: about.into(),
            text: Text::Pod {
                what,
                pod: pod.into(),
            },
        };
        let told = together(vec![
            pod("n1", "leaves", "a"),
            Entry::line("n1", "x"),
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
