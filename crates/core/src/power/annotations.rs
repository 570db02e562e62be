//! The reboot annotations of a host. Source: specification §3.2; metal3's reboot-interface design.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::host::Host;
use super::provisioning;

/// The set-and-forget annotation, and the prefix of those that hold a host off.
pub const REBOOT: &str = "reboot.metal3.io";

/// Metal3's: the host is dropped from its controller, which does nothing until it goes.
pub(super) const DETACHED: &str = "baremetalhost.metal3.io/detached";

/// One reboot annotation as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The annotation's name.
    pub name: String,
    /// What follows the slash; `None`: set and forget.
    pub key: Option<String>,
    /// Whether the power is cut without asking the operating system.
    pub is_hard: bool,
    /// Whether it is obeyed on a host that is not provisioned as well.
    pub is_forced: bool,
    /// What is wrong with its value. It is kept, and means soft.
    pub problem: Option<String>,
    /// Of the value: another value is another request.
    digest: String,
}

impl Request {
    /// How [`super::PowerStatus::confirmed_for`] names it.
    pub fn id(&self) -> String {
        format!("{}={}", self.name, self.digest)
    }
}

/// All reboot annotations of a host, by name.
pub fn requests(host: &Host) -> Vec<Request> {
    host.annotations
        .iter()
        .filter_map(|(name, value)| request(name, value))
        .collect()
}

/// Whether it is obeyed in the provisioning state that the host is in, or that the power controller will
/// give it.
pub fn is_obeyed(host: &Host, request: &Request) -> bool {
    request.is_forced || provisioning::is_provisioned(provisioning::state(host).as_deref())
}

fn request(name: &str, value: &str) -> Option<Request> {
    let key = match name.strip_prefix(REBOOT)? {
        "" => None,
        rest => Some(rest.strip_prefix('/')?.to_owned()),
    };
    let meaning = meaning(value);
    let problem = meaning.as_ref().err().cloned();
    let (is_hard, is_forced) = meaning.unwrap_or_default();
    Some(Request {
        name: name.to_owned(),
        key,
        is_hard,
        is_forced,
        problem,
        digest: digest(value),
    })
}

/// Whether it is hard, and whether it is forced.
fn meaning(value: &str) -> Result<(bool, bool), String> {
    let value = value.trim();
    let looks_like_an_attempt = value.contains(['{', ':', '"', '\'', '=']) || is_mode(value);
    let Some(Value::Object(fields)) = json(value) else {
        // A tracing mark such as a UID is what the design invites people to write.
        return if looks_like_an_attempt {
            Err(r#"is no JSON object like {"mode":"hard"}"#.to_owned())
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

/// JSON, or what the design document writes: the same in single quotes.
fn json(value: &str) -> Option<Value> {
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

/// How many names a sentence has.
const NAMED: usize = 8;

/// The names, or the first of them: anybody may set thousands, and sentences go into conditions and Events.
pub(super) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Enough of a hash to tell two values apart.
pub(super) fn digest(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes())
        .iter()
        .take(8)
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("a string takes what is written");
            hex
        })
}
