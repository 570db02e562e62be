//! Parses the reboot annotations of a host. Source: specification §3.2; metal3's reboot-interface
//! design.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::host::HostSnapshot;
use super::provisioning;

/// The annotation without a key, and the prefix of the annotations that hold a host off.
pub const REBOOT_ANNOTATION: &str = "reboot.metal3.io";

/// metal3's annotation: its controller drops the host and ignores it until the annotation goes.
pub(super) const DETACHED_ANNOTATION: &str = "baremetalhost.metal3.io/detached";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRebootAnnotation {
    pub name: String,
    /// The part after the slash. `None`: the annotation without a key.
    pub key: Option<String>,
    /// Whether the power is cut without a shutdown of the operating system.
    pub is_hard: bool,
    /// Whether it applies to hosts that are not provisioned as well.
    pub is_forced: bool,
    /// What is wrong with the value. Such an annotation is kept and means soft.
    pub problem: Option<String>,
    /// A digest of the value: another value is another request.
    digest: String,
}

impl HostRebootAnnotation {
    /// The form in which [`super::PowerStatus::confirmed_for`] names it.
    pub fn id(&self) -> String {
        format!("{}={}", self.name, self.digest)
    }
}

/// The reboot annotations of a host, sorted by name.
pub fn reboot_annotations(host: &HostSnapshot) -> Vec<HostRebootAnnotation> {
    host.annotations
        .iter()
        .filter_map(|(name, value)| parse_annotation(name, value))
        .collect()
}

/// Whether the annotation is obeyed in the host's provisioning state, be it the current one or the
/// one that the power controller will write.
pub fn is_annotation_obeyed(host: &HostSnapshot, request: &HostRebootAnnotation) -> bool {
    request.is_forced
        || provisioning::is_provisioned(provisioning::provisioning_state(host).as_deref())
}

fn parse_annotation(name: &str, value: &str) -> Option<HostRebootAnnotation> {
    let key = match name.strip_prefix(REBOOT_ANNOTATION)? {
        "" => None,
        rest => Some(rest.strip_prefix('/')?.to_owned()),
    };
    let meaning = parse_mode_and_force(value);
    let problem = meaning.as_ref().err().cloned();
    let (is_hard, is_forced) = meaning.unwrap_or_default();
    Some(HostRebootAnnotation {
        name: name.to_owned(),
        key,
        is_hard,
        is_forced,
        problem,
        digest: short_digest(value),
    })
}

/// Returns (hard, forced).
fn parse_mode_and_force(value: &str) -> Result<(bool, bool), String> {
    let value = value.trim();
    let looks_like_an_attempt = value.contains(['{', ':', '"', '\'', '=']) || is_mode(value);
    let Some(Value::Object(fields)) = parse_json(value) else {
        // The design invites people to write a value for tracing here, such as a UID.
        return if looks_like_an_attempt {
            Err(r#"is not a JSON object like {"mode":"hard"}"#.to_owned())
        } else {
            Ok((false, false))
        };
    };
    let is_hard = match fields.get("mode") {
        None | Some(Value::Null) => false,
        Some(Value::String(mode)) if mode.is_empty() || mode == "soft" => false,
        Some(Value::String(mode)) if mode == "hard" => true,
        Some(_) => return Err("has a mode that is neither soft nor hard".to_owned()),
    };
    match fields.get("force") {
        None | Some(Value::Null) => Ok((is_hard, false)),
        Some(Value::Bool(force)) => Ok((is_hard, *force)),
        Some(_) => Err("has a force that is neither true nor false".to_owned()),
    }
}

fn is_mode(value: &str) -> bool {
    ["hard", "soft"]
        .iter()
        .any(|mode| value.eq_ignore_ascii_case(mode))
}

/// Accepts JSON, and the form of metal3's design document: the same with single quotes.
fn parse_json(value: &str) -> Option<Value> {
    let is_object = |value: &Value| value.is_object();
    serde_json::from_str(value)
        .ok()
        .filter(is_object)
        .or_else(|| {
            let quoted = value.replace('\'', "\"");
            let is_single = value.contains('\'') && !value.contains('"');
            is_single.then(|| serde_json::from_str(&quoted).ok())?
        })
}

const MAX_LISTED_NAMES: usize = 8;

/// Joins the names, or the first few: anybody may set thousands, and the sentences go into
/// conditions and Events.
pub(super) fn format_names<T: AsRef<str>>(names: &[T]) -> String {
    let first: Vec<&str> = names
        .iter()
        .take(MAX_LISTED_NAMES)
        .map(AsRef::as_ref)
        .collect();
    let first = first.join(", ");
    match names.len().saturating_sub(MAX_LISTED_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// 16 hexadecimal digits of SHA-256: enough to tell two values apart.
pub(super) fn short_digest(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes())
        .iter()
        .take(8)
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes what is written");
            hex
        })
}
