//! What stands on a host and beside it, before somebody gives their word on it.

use dogwatch_core::explain::{RemedyView, age};
use dogwatch_core::power::{Host, State};
use dogwatch_core::remedy::{Case, Key, cases, record_on};
use dogwatch_k8s::fleet::RemediesFound;

use super::say;
use crate::cluster::{Connected, now};
use crate::exit::Failure;

/// Shows it. The answer names what would be released.
pub async fn show(connected: &Connected, host: &Host) -> Result<String, Failure> {
    let view = match connected.fleet.remedies().await {
        Ok(RemediesFound::There(view)) => Some(view),
        Ok(RemediesFound::NoKind) => None,
        Err(error) => {
            let why = error.in_words();
            eprintln!("dogwatch: shown without what the host is linked to: {why}");
            None
        }
    };
    let cases = view.as_deref().map(|view| of_host(view, host));
    let cases = cases.unwrap_or_default();
    for key in Key::of(host) {
        let mut cases = cases.iter();
        let case = cases.find(|case| case.key == key.owner);
        let whose = case.map(|case| format!(", of {}", case.subject));
        let (name, whose) = (&key.name, whose.unwrap_or_default());
        say(&format!("  key    {name}{whose}"))?;
    }
    say(&format!("  power  {}", power(host)))?;
    for case in &cases {
        say(&format!("  node   {}", node(case)))?;
    }
    Ok(lost(host, &cases))
}

fn of_host(view: &RemedyView, host: &Host) -> Vec<Case> {
    let is_its = |case: &Case| {
        let its = case.host.as_ref().ok();
        its.is_some_and(|its| its.name == host.name) && case.is_keyed()
    };
    cases(&view.world).into_iter().filter(is_its).collect()
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
fn lost(host: &Host, cases: &[Case]) -> String {
    let mut names = cases.iter().filter_map(|case| case.node_name.as_ref());
    let node = names.next().map(|name| format!("Node {name}"));
    let recorded = || record_on(host)?.node.map(|name| format!("Node {name}"));
    node.or_else(recorded)
        .unwrap_or_else(|| "its Node".to_owned())
}
