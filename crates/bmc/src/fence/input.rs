//! What an agent reads on its standard input: one option a line, as `name=value`.
//!
//! Source: ClusterLabs' Fence Agent API; `lib/fencing.py`, which strips blanks around a line, and one pair of quotes around a
//! value.

use dogwatch_core::power::{Class, Fault};

use super::metadata::Metadata;
use super::{Target, agents};
use crate::Credentials;

/// The user's option, in the order of choice; clouds have names of their own.
const USER: [&str; 3] = ["username", "login", "access_key"];
/// The password's.
const PASSWORD: [&str; 5] = ["password", "passwd", "secret_key", "apikey", "token"];
const HOST: [&str; 2] = ["ip", "ipaddr"];

/// All lines. An option that the agent does not have is refused by name: an agent prints the whole line of one that it does
/// not know, value and all.
pub(super) fn lines(
    action: &str,
    target: &Target,
    credentials: &Credentials,
    verify: bool,
    metadata: &Metadata,
) -> Result<String, Fault> {
    let agent = &target.agent;
    let mut options = vec![("action".to_owned(), action.to_owned())];
    let host = (!target.host.is_empty()).then_some(target.host.as_str());
    if let (Some(host), Some(name)) = (host, metadata.first_of(&HOST)) {
        options.push((name.to_owned(), host.to_owned()));
    }
    if let Some(port) = target.port {
        let name = known(metadata, agent, "ipport")?;
        options.push((name, port.to_string()));
    }
    if let Some(name) = metadata.first_of(&USER) {
        options.push((name.to_owned(), credentials.username.clone()));
    }
    if let Some(name) = metadata.first_of(&PASSWORD) {
        options.push((name.to_owned(), credentials.password.reveal().to_owned()));
    }
    // An agent may look only at whether it is there: it is never sent as 0.
    if !verify && metadata.has("ssl_insecure") {
        options.push(("ssl_insecure".to_owned(), "1".to_owned()));
    }
    for (name, value) in agents::defaults(agent) {
        if metadata.has(name) && !target.options.contains_key(name) {
            options.push((name.to_owned(), value.to_owned()));
        }
    }
    for (name, value) in &target.options {
        options.push((known(metadata, agent, name)?, value.clone()));
    }
    Ok(options
        .iter()
        .map(|(name, value)| line(name, value))
        .collect())
}

/// The option as the agent spells it: with `_` in new names, with `-` in some old ones.
fn known(metadata: &Metadata, agent: &str, name: &str) -> Result<String, Fault> {
    [name.to_owned(), name.replace('_', "-")]
        .into_iter()
        .find(|name| metadata.has(name))
        .ok_or_else(|| {
            let message = format!("{agent} has no option {name}");
            Fault::harmless(Class::Unsupported, message)
        })
}

fn line(name: &str, value: &str) -> String {
    let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
    if is_quoted || value.trim() != value {
        format!("{name}=\"{value}\"\n")
    } else {
        format!("{name}={value}\n")
    }
}
