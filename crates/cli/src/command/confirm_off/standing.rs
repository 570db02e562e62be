//! What stands on a host and beside it, before somebody gives their word on it.

use dogwatch_core::explain::age;
use dogwatch_core::power::{Host, State};
use dogwatch_core::remedy::{Case, Key, KeyOwner, cases, record_on};
use dogwatch_k8s::fleet::RemediesFound;

use super::judge::is_held_off;
use super::say;
use crate::cluster::{Connected, now};
use crate::exit::Failure;

/// What the host is linked to. Where a key stands the word can be given without knowing it.
pub async fn cases_of(connected: &Connected, host: &Host) -> Result<Vec<Case>, Failure> {
    match connected.fleet.remedies().await {
        Ok(RemediesFound::There(view)) => Ok(cases(&view.world)),
        Ok(RemediesFound::NoKind) => Ok(Vec::new()),
        Err(error) if is_held_off(host) => {
            let why = error.in_words();
            eprintln!("dogwatch: shown without what the host is linked to: {why}");
            Ok(Vec::new())
        }
        Err(error) => Err(connected.failed("look what the host is linked to", &error)),
    }
}

/// Shows it. `new`: the key that is put there with the word. The answer names what would be released.
pub fn show(host: &Host, cases: &[Case], new: Option<&KeyOwner>) -> Result<String, Failure> {
    let is_shown = |case: &&Case| is_of(case, host, new);
    let cases: Vec<&Case> = cases.iter().filter(is_shown).collect();
    for key in Key::of(host) {
        let mut cases = cases.iter();
        let case = cases.find(|case| case.key == key.owner);
        let whose = case.map(|case| format!(", of {}", case.subject));
        let is_new = new == Some(&key.owner);
        let when = if is_new {
            ", which your word puts there"
        } else {
            ""
        };
        let (name, whose) = (&key.name, whose.unwrap_or_default());
        say(&format!("  key    {name}{whose}{when}"))?;
    }
    say(&format!("  power  {}", power(host)))?;
    for case in &cases {
        say(&format!("  node   {}", node(case)))?;
    }
    Ok(lost(host, &cases))
}

fn is_of(case: &Case, host: &Host, new: Option<&KeyOwner>) -> bool {
    let its = case.host.as_ref().ok();
    let is_its = its.is_some_and(|its| its.name == host.name);
    is_its && (case.is_keyed() || new == Some(&case.key))
}

fn power(host: &Host) -> String {
    let power = &host.status.power;
    let state = power.state.map_or("never looked at", State::as_str);
    let seen = power.observed_at.map(|at| age(now().since(at)));
    let seen = seen.map(|age| format!(", last read {age} ago"));
    format!("{state}{}", seen.unwrap_or_default())
}

fn node(case: &Case) -> String {
    match (&case.node_name, &case.node) {
        (None, _) => "none".to_owned(),
        (Some(name), None) => format!("{name}, which is gone: nothing is left to release"),
        (Some(name), Some(node)) if node.ready => {
            format!("{name}, which is READY: its kubelet was heard a moment ago")
        }
        (Some(name), Some(_)) => format!("{name}, not Ready"),
    }
}

/// Whose workloads would start elsewhere.
fn lost(host: &Host, cases: &[&Case]) -> String {
    let mut names = cases.iter().filter_map(|case| case.node_name.as_ref());
    let node = names.next().map(|name| format!("Node {name}"));
    let recorded = || record_on(host)?.node.map(|name| format!("Node {name}"));
    node.or_else(recorded)
        .unwrap_or_else(|| "its Node".to_owned())
}
