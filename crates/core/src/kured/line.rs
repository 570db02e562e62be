//! kured's command line and environment, read as kured reads them.

use std::collections::BTreeMap;
use std::iter::Peekable;

use super::flags::{FLAGS, Fate, Flag, Shape};
use super::translate::Row;

/// A kured DaemonSet, as far as its settings go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kured {
    /// `command` and `args` of its container.
    pub words: Vec<String>,
    /// Its environment, in order; `None` where the value is elsewhere (a Secret, say).
    pub environment: Vec<(String, Option<String>)>,
    /// Its host folders: where the container has them, and where the host has.
    pub mounts: Vec<(String, String)>,
    /// The nodes that it runs on.
    pub node_selector: BTreeMap<String, String>,
}

/// What was set.
#[derive(Debug, Default)]
pub(super) struct Settings {
    values: BTreeMap<&'static str, Vec<String>>,
    /// What is no setting of kured, or has no value that could be read.
    pub(super) strange: Vec<Row>,
    /// Whether something strange may have held reboots back.
    pub(super) unsure: bool,
}

impl Settings {
    /// Reads them. kured reads the environment after its flags, so the environment wins.
    pub(super) fn of(kured: &Kured) -> Self {
        let mut settings = Self::default();
        let mut words = kured.words.iter().map(|word| expanded(word, kured));
        // The program itself, where `command` is given.
        let mut first = words.next();
        if first.as_ref().is_some_and(|word| !word.starts_with('-')) {
            first = words.next();
        }
        let mut words = first.into_iter().chain(words).peekable();
        while let Some(word) = words.next() {
            settings.word(&word, &mut words);
        }
        for (name, value) in &kured.environment {
            settings.variable(name, value.as_deref());
        }
        settings
    }

    fn word(&mut self, word: &str, rest: &mut Peekable<impl Iterator<Item = String>>) {
        let Some(text) = word.strip_prefix("--").filter(|text| !text.is_empty()) else {
            self.strange(word, "kured takes no such argument");
            return;
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let Some(flag) = known(name) else {
            // Its value may be a secret as well as not, and may be the next word.
            if value.is_none() {
                rest.next_if(|next| !next.starts_with('-'));
            }
            self.strange(&format!("--{name}"), "kured 1.23 has no such flag");
            return;
        };
        match (value, flag.shape) {
            (Some(value), _) => self.set(flag, value),
            (None, Shape::Bool) => self.set(flag, "true".to_owned()),
            (None, Shape::One | Shape::Slice | Shape::Array) => match rest.next() {
                Some(value) => self.set(flag, value),
                None => self.strange(word, "its value is missing"),
            },
        }
    }

    fn variable(&mut self, name: &str, value: Option<&str>) {
        let Some(rest) = name.strip_prefix("KURED_") else {
            return;
        };
        let Some(flag) = known(&rest.to_lowercase().replace('_', "-")) else {
            self.strange(name, "kured 1.23 reads no such variable");
            return;
        };
        match (value, flag.shape) {
            (_, Shape::Array) => self.strange(
                name,
                "kured does not read this one from its environment; it is without effect there too",
            ),
            // A node's name, and nothing that a policy could hold.
            (None, _) if flag.name == "node-id" => {}
            (None, _) if flag.secret => self.set(flag, String::new()),
            (None, _) => {
                self.unsure = true;
                self.strange(
                    name,
                    "its value is kept elsewhere (valueFrom) and was not read",
                );
            }
            (Some(value), Shape::Bool | Shape::One | Shape::Slice) => {
                self.set(flag, value.to_owned());
            }
        }
    }

    fn set(&mut self, flag: &'static Flag, value: String) {
        let values = self.values.entry(flag.name).or_default();
        match flag.shape {
            Shape::Bool | Shape::One => *values = vec![value],
            Shape::Array => values.push(value),
            Shape::Slice => values.extend(value.split(',').map(|part| part.trim().to_owned())),
        }
    }

    fn strange(&mut self, what: &str, why: &str) {
        self.strange.push(Row {
            setting: what.to_owned(),
            fate: Fate::NotUnderstood,
            becomes: why.to_owned(),
        });
    }

    /// The value of a flag that was set.
    pub(super) fn one(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// The values of one that takes several; `None` where it was not set.
    pub(super) fn all(&self, name: &str) -> Option<&[String]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// Whether a switch is on; Go's own words for it.
    pub(super) fn is_on(&self, name: &str) -> bool {
        matches!(
            self.one(name),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True")
        )
    }

    /// Every flag that was set, as it may be shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&'static Flag, String)> {
        let set = |flag: &'static Flag| Some((flag, self.values.get(flag.name)?));
        FLAGS.iter().filter_map(set).map(|(flag, values)| {
            let name = flag.name;
            let text = if flag.secret {
                format!("--{name} (value not shown)")
            } else if flag.shape == Shape::Array {
                let each: Vec<String> =
                    values.iter().map(|one| format!("--{name}={one}")).collect();
                each.join(" ")
            } else {
                format!("--{name}={}", without_secrets(&values.join(",")))
            };
            (flag, text)
        })
    }
}

fn known(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// A URL's user and password are no part of what is shown.
pub(super) fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}{}", &text[..scheme + 3], &text[at + 1..])
        }
        (_, _) => text.to_owned(),
    }
}

/// Nor is what follows an address, where some keep a token.
fn without_secrets(text: &str) -> String {
    let shown = without_password(text);
    match (shown.find("://"), shown.find('?')) {
        (Some(scheme), Some(query)) if scheme < query => shown[..query].to_owned(),
        (_, _) => shown,
    }
}

/// `$(NAME)` in a word, as the kubelet replaces it.
fn expanded(word: &str, kured: &Kured) -> String {
    let mut text = word.to_owned();
    for (name, value) in &kured.environment {
        if let Some(value) = value {
            text = text.replace(&format!("$({name})"), value);
        }
    }
    text
}
