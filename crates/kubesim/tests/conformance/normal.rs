//! Normalises what two servers may answer differently: times, uids, versions, ages.
//!
//! A uid becomes the number of its first appearance, and so does an object's resourceVersion. So
//! the comparison still sees whether two answers show the same one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::servers::Answer;

/// A later time was written by a server; requests contain only earlier times.
const SERVERS_TIME: &str = "2025-01-01T00:00:00Z";

/// The uids and versions that one server has shown so far.
#[derive(Debug, Default)]
pub struct Normal {
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
}

impl Normal {
    /// Normalises an answer.
    pub fn answer(&mut self, mut answer: Answer) -> Answer {
        self.value("", &mut answer.body);
        answer
    }

    fn value(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::Object(map) => {
                let collection = map.contains_key("items") || map.contains_key("rows");
                if collection {
                    list_meta(map.get_mut("metadata"));
                }
                let mut fields: Vec<(&String, &mut Value)> = map.iter_mut().collect();
                fields.sort_by(|one, other| one.0.cmp(other.0));
                for (key, value) in fields {
                    self.value(key, value);
                }
            }
            Value::Array(list) => {
                for value in &mut *list {
                    self.value(key, value);
                }
                if key == "managedFields" {
                    // Sorted without their times: two entries may fall into one second or into two.
                    list.sort_by_key(|entry| without_time(entry).to_string());
                }
            }
            Value::String(text) => *text = self.text(key, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, key: &str, text: &str) -> String {
        match key {
            "resourceVersion" => number("version", &mut self.versions, text),
            "cells" if is_age(text) => "AGE".to_owned(),
            "message"
                if text.contains("ResourceVersion in") || text.contains("resource version") =>
            {
                let versions: String = text.chars().filter(|char| !char.is_ascii_digit()).collect();
                self.uids_in(&versions)
            }
            _ if is_servers_time(text) => "TIME".to_owned(),
            _ => self.uids_in(text),
        }
    }

    /// Replaces every uid in a text by its number.
    fn uids_in(&mut self, text: &str) -> String {
        let mut out = text.to_owned();
        let mut from = 0;
        while let Some(found) = out.get(from..).and_then(next_uid) {
            let at = from + found;
            let uid = out[at..at + UID_LENGTH].to_owned();
            let name = number("uid", &mut self.uids, &uid);
            out.replace_range(at..at + UID_LENGTH, &name);
            from = at + name.len();
        }
        out
    }
}

fn number(what: &str, seen: &mut BTreeMap<String, usize>, text: &str) -> String {
    let next = seen.len();
    format!("{what}-{}", seen.entry(text.to_owned()).or_insert(next))
}

/// A list's version is the store's, which other cases change too; its continue token is opaque.
fn list_meta(meta: Option<&mut Value>) {
    let Some(meta) = meta.and_then(Value::as_object_mut) else {
        return;
    };
    for (field, shown) in [("resourceVersion", "NOW"), ("continue", "TOKEN")] {
        match meta.get_mut(field) {
            Some(Value::String(text)) if !text.is_empty() => shown.clone_into(text),
            Some(_) | None => {}
        }
    }
}

fn without_time(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(map) = entry.as_object_mut() {
        map.remove("time");
    }
    entry
}

fn is_servers_time(text: &str) -> bool {
    let limit: Timestamp = SERVERS_TIME.parse().expect("a time");
    text.parse::<Timestamp>().is_ok_and(|time| time > limit)
}

/// An age as kubectl shows it: `12s`, `3m`.
fn is_age(text: &str) -> bool {
    let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
    number.len() + 1 == text.len() && number.parse::<u32>().is_ok()
}

const UID_LENGTH: usize = 36;

fn next_uid(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_uid = |window: &[u8]| {
        window.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    bytes.windows(UID_LENGTH).position(is_uid)
}
