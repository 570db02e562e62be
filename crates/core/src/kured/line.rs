//! Parses kured's command line and environment as kured does.

use std::collections::BTreeMap;
use std::iter::Peekable;

use super::flags::{KURED_FLAGS, KuredFlag, KuredValueKind, SettingOutcome};
use super::translate::TranslatedSetting;

/// The settings of a kured DaemonSet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KuredInstallation {
    /// `command` and `args` of its container.
    pub arguments: Vec<String>,
    /// Its environment, in order; `None` if the value is defined elsewhere (for example in a
    /// Secret).
    pub environment: Vec<(String, Option<String>)>,
    /// Its hostPath mounts: path in the container, path on the host.
    pub mounts: Vec<(String, String)>,
    pub node_selector: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub(super) struct KuredSettings {
    values: BTreeMap<&'static str, Vec<String>>,
    /// Flags that kured does not have, or whose value could not be parsed.
    pub(super) not_understood: Vec<TranslatedSetting>,
    /// Whether an unknown setting may have held reboots back.
    pub(super) unsure: bool,
}

impl KuredSettings {
    /// Parses the settings. kured reads the environment after its flags, so the environment wins.
    pub(super) fn read_settings(kured: &KuredInstallation) -> Self {
        let mut settings = Self::default();
        let mut words = kured
            .arguments
            .iter()
            .map(|word| expand_variables(word, kured));
        // The program itself, if `command` is given.
        let mut first = words.next();
        if first.as_ref().is_some_and(|word| !word.starts_with('-')) {
            first = words.next();
        }
        let mut words = first.into_iter().chain(words).peekable();
        while let Some(word) = words.next() {
            settings.read_argument(&word, &mut words);
        }
        for (name, value) in &kured.environment {
            settings.read_variable(name, value.as_deref());
        }
        settings
    }

    fn read_argument(&mut self, word: &str, rest: &mut Peekable<impl Iterator<Item = String>>) {
        let Some(text) = word.strip_prefix("--").filter(|text| !text.is_empty()) else {
            self.record_not_understood(word, "kured does not know this argument");
            return;
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let Some(flag) = find_flag(name) else {
            // Its value may be a secret, and may be the next word.
            if value.is_none() {
                rest.next_if(|next| !next.starts_with('-'));
            }
            self.record_not_understood(&format!("--{name}"), "kured 1.23 does not know this flag");
            return;
        };
        match (value, flag.shape) {
            (Some(value), _) => self.set_flag(flag, value),
            (None, KuredValueKind::Bool) => self.set_flag(flag, "true".to_owned()),
            (None, KuredValueKind::One | KuredValueKind::Slice | KuredValueKind::Array) => {
                match rest.next() {
                    Some(value) => self.set_flag(flag, value),
                    None => self.record_not_understood(word, "its value is missing"),
                }
            }
        }
    }

    fn read_variable(&mut self, name: &str, value: Option<&str>) {
        let Some(rest) = name.strip_prefix("KURED_") else {
            return;
        };
        let Some(flag) = find_flag(&rest.to_lowercase().replace('_', "-")) else {
            self.record_not_understood(name, "kured 1.23 does not read this variable");
            return;
        };
        match (value, flag.shape) {
            (_, KuredValueKind::Array) => self.record_not_understood(
                name,
                "kured does not read this setting from its environment; it has no effect in kured either",
            ),
            // The name of one node, which a policy cannot contain.
            (None, _) if flag.name == "node-id" => {}
            (None, _) if flag.secret => self.set_flag(flag, String::new()),
            (None, _) => {
                self.unsure = true;
                self.record_not_understood(
                    name,
                    "its value is kept elsewhere (valueFrom) and was not read",
                );
            }
            (Some(value), KuredValueKind::Bool | KuredValueKind::One | KuredValueKind::Slice) => {
                self.set_flag(flag, value.to_owned());
            }
        }
    }

    fn set_flag(&mut self, flag: &'static KuredFlag, value: String) {
        let values = self.values.entry(flag.name).or_default();
        match flag.shape {
            KuredValueKind::Bool | KuredValueKind::One => *values = vec![value],
            KuredValueKind::Array => values.push(value),
            KuredValueKind::Slice => {
                values.extend(value.split(',').map(|part| part.trim().to_owned()));
            }
        }
    }

    fn record_not_understood(&mut self, what: &str, why: &str) {
        self.not_understood.push(TranslatedSetting {
            setting: what.to_owned(),
            outcome: SettingOutcome::NotUnderstood,
            becomes: why.to_owned(),
        });
    }

    pub(super) fn last_value(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// The values of a repeatable flag; `None` if it was not set.
    pub(super) fn all_values(&self, name: &str) -> Option<&[String]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// Whether a boolean flag is on, by the spellings that Go accepts.
    pub(super) fn is_switch_on(&self, name: &str) -> bool {
        matches!(
            self.last_value(name),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True")
        )
    }

    /// Every flag that was set, without secrets.
    pub(super) fn displayed_flags(&self) -> impl Iterator<Item = (&'static KuredFlag, String)> {
        let set = |flag: &'static KuredFlag| Some((flag, self.values.get(flag.name)?));
        KURED_FLAGS.iter().filter_map(set).map(|(flag, values)| {
            let name = flag.name;
            let text = if flag.secret {
                format!("--{name} (value not shown)")
            } else if flag.shape == KuredValueKind::Array {
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

fn find_flag(name: &str) -> Option<&'static KuredFlag> {
    KURED_FLAGS.iter().find(|flag| flag.name == name)
}

/// The text without a URL's user and password.
pub(super) fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}{}", &text[..scheme + 3], &text[at + 1..])
        }
        (_, _) => text.to_owned(),
    }
}

/// The text without the query of a URL, where some keep a token.
fn without_secrets(text: &str) -> String {
    let shown = without_password(text);
    match (shown.find("://"), shown.find('?')) {
        (Some(scheme), Some(query)) if scheme < query => shown[..query].to_owned(),
        (_, _) => shown,
    }
}

/// Replaces `$(NAME)` in a word as the kubelet does.
fn expand_variables(word: &str, kured: &KuredInstallation) -> String {
    let mut text = word.to_owned();
    for (name, value) in &kured.environment {
        if let Some(value) = value {
            text = text.replace(&format!("$({name})"), value);
        }
    }
    text
}
