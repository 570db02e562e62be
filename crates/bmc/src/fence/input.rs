//! Writes the standard input of a fence agent: one option per line, as `name=value`.
//!
//! Source: ClusterLabs' Fence Agent API; `lib/fencing.py`, which strips spaces around a line, and
//! one pair of quotes around a value.

use dogwatch_core::power::{BmcFault, FaultClass};

use super::metadata::AgentMetadata;
use super::{FenceTarget, agents};
use crate::Credentials;

/// Names of the user's option, in order of preference; clouds have their own names.
const USER_OPTIONS: [&str; 3] = ["username", "login", "access_key"];
/// Names of the password's option, in order of preference.
const PASSWORD_OPTIONS: [&str; 5] = ["password", "passwd", "secret_key", "apikey", "token"];
const HOST_OPTIONS: [&str; 2] = ["ip", "ipaddr"];

/// Renders all lines. An option that the agent does not have is refused by name here: given an
/// unknown option, an agent prints the whole line, including the value.
pub(super) fn render_stdin(
    action: &str,
    target: &FenceTarget,
    credentials: &Credentials,
    verify: bool,
    metadata: &AgentMetadata,
) -> Result<String, BmcFault> {
    let agent = &target.agent;
    let mut options = vec![("action".to_owned(), action.to_owned())];
    let host = (!target.host.is_empty()).then_some(target.host.as_str());
    if let (Some(host), Some(name)) = (host, metadata.first_known_option(&HOST_OPTIONS)) {
        options.push((name.to_owned(), host.to_owned()));
    }
    if let Some(port) = target.port {
        let name = find_option_name(metadata, agent, "ipport")?;
        options.push((name, port.to_string()));
    }
    if let Some(name) = metadata.first_known_option(&USER_OPTIONS) {
        options.push((name.to_owned(), credentials.username.clone()));
    }
    if let Some(name) = metadata.first_known_option(&PASSWORD_OPTIONS) {
        options.push((name.to_owned(), credentials.password.reveal().to_owned()));
    }
    // Some agents check only whether the option is present, so it is never sent as 0.
    if !verify && metadata.has_option("ssl_insecure") {
        options.push(("ssl_insecure".to_owned(), "1".to_owned()));
    }
    for (name, value) in agents::default_overrides(agent) {
        if metadata.has_option(name) && !target.options.contains_key(name) {
            options.push((name.to_owned(), value.to_owned()));
        }
    }
    for (name, value) in &target.options {
        options.push((find_option_name(metadata, agent, name)?, value.clone()));
    }
    Ok(options
        .iter()
        .map(|(name, value)| render_option_line(name, value))
        .collect())
}

/// The option in the agent's spelling: with `_` in new names, with `-` in some old ones.
fn find_option_name(metadata: &AgentMetadata, agent: &str, name: &str) -> Result<String, BmcFault> {
    [name.to_owned(), name.replace('_', "-")]
        .into_iter()
        .find(|name| metadata.has_option(name))
        .ok_or_else(|| {
            let message = format!("{agent} has no option {name}");
            BmcFault::without_effect(FaultClass::Unsupported, message)
        })
}

fn render_option_line(name: &str, value: &str) -> String {
    let is_quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
    if is_quoted || value.trim() != value {
        format!("{name}=\"{value}\"\n")
    } else {
        format!("{name}={value}\n")
    }
}
