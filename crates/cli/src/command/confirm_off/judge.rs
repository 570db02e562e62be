//! Whether a person's word is wanted on a host as it stands.

use dogwatch_core::explain::age;
use dogwatch_core::power::{Confirmation, Host, State, requests};
use dogwatch_core::remedy::{Key, KeyOwner};

use crate::cluster::now;
use crate::command::hosts::No;

/// Whether it may be said of the host as it is now. `shown`: as the person saw it, for their word is for the
/// keys that stood there then.
pub fn judge(host: &Host, shown: &Host) -> Result<(), No> {
    let name = &host.name;
    if host.uid != shown.uid || keys(host) != keys(shown) {
        let text = "is held off by other keys than a moment ago";
        return Err(No::refused(
            text,
            format!("look again: dogwatch explain host/{name}"),
        ));
    }
    if host.deleting {
        return Err(No::deleting());
    }
    if !is_held_off(host) {
        let text = "carries no key of a remediation: there is nothing that your word would release";
        return Err(No::refused(text, "dogwatch status remediations"));
    }
    alive(host)?;
    said(host)
}

/// A key of a remediation stands there.
pub fn is_held_off(host: &Host) -> bool {
    Key::of(host).any(|key| key.owner != KeyOwner::Unnamed)
}

/// Their BMC answers, and says something else.
fn alive(host: &Host) -> Result<(), No> {
    let power = &host.status.power;
    match power.state {
        Some(state @ (State::On | State::PoweringOn)) => {
            let seen = power.observed_at.map(|at| age(now().since(at)));
            let seen = seen.map(|age| format!(", read {age} ago"));
            let text = format!(
                "is {} by its BMC{}: that is not off",
                state.as_str(),
                seen.unwrap_or_default()
            );
            let next = format!(
                "the power controller switches it off by itself: dogwatch explain host/{}",
                host.name
            );
            Err(No::refused(text, next))
        }
        Some(State::Off | State::PoweringOff | State::Unknown) | None => Ok(()),
    }
}

/// Somebody has said it of these keys.
fn said(host: &Host) -> Result<(), No> {
    match Confirmation::read(host) {
        Some(Ok(said)) if keys(host).iter().all(|key| said.keys.contains(key)) => {
            let (by, at, reason) = (&said.by, said.at, &said.reason);
            Err(No::Already(format!(
                "was confirmed off already by {by} at {at}: {reason}"
            )))
        }
        // For other keys, or worth nothing: this word takes its place.
        Some(Ok(_) | Err(_)) | None => Ok(()),
    }
}

/// What a word is for.
fn keys(host: &Host) -> Vec<String> {
    let requests = requests(host).into_iter();
    let keys = requests.filter(|request| request.key.is_some());
    keys.map(|request| request.id()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const KEY: &str = "reboot.metal3.io/machine-remediation";

    fn host(annotations: &Value, state: &str) -> Host {
        let object = json!({
            "metadata": { "namespace": "metal", "name": "h1", "uid": "u", "resourceVersion": "7",
                "annotations": annotations },
            "spec": { "online": true },
            "status": { "provisioning": { "state": "provisioned" }, "power": { "state": state } },
        });
        dogwatch_k8s::host::convert(&serde_json::from_value(object).unwrap())
    }

    fn keyed(state: &str) -> Host {
        host(
            &json!({ KEY: r#"{"mode":"hard","machineUID":"m"}"# }),
            state,
        )
    }

    fn why(host: &Host) -> String {
        match judge(host, host) {
            Ok(()) => String::new(),
            Err(No::Already(text) | No::Refused { text, .. }) => text,
        }
    }

    #[test]
    fn a_word_is_taken_of_a_host_that_we_hold_off_and_that_does_not_say_that_it_is_on() {
        assert_eq!(why(&keyed("Unknown")), "");
        assert_eq!(why(&keyed("PoweringOff")), "");
        assert!(why(&keyed("On")).starts_with("is On by its BMC"));
        assert!(why(&keyed("PoweringOn")).starts_with("is PoweringOn by its BMC"));
        for annotations in [
            json!({}),
            json!({ "reboot.metal3.io/repair": "" }),
            json!({ KEY: "somebody's" }),
        ] {
            let text = why(&host(&annotations, "Unknown"));
            assert!(text.starts_with("carries no key"), "{annotations}: {text}");
        }
    }

    #[test]
    fn what_came_after_the_person_looked_is_not_covered_by_their_word() {
        let shown = keyed("Unknown");
        let mut there = shown.clone();
        let name = "reboot.metal3.io/power-remediation-9".to_owned();
        there.annotations.insert(name, r#"{"mode":"hard"}"#.into());
        let no = judge(&there, &shown).unwrap_err();
        assert!(matches!(no, No::Refused { text, .. } if text.contains("other keys")));
    }

    #[test]
    fn what_was_said_of_the_same_keys_is_not_said_again() {
        let mut there = keyed("Unknown");
        let word = Confirmation::of(&there, "ann", jiff::Timestamp::UNIX_EPOCH, "unplugged");
        let name = dogwatch_core::power::CONFIRMED_OFF.to_owned();
        there.annotations.insert(name.clone(), word.value());
        assert!(why(&there).starts_with("was confirmed off already by ann"));
        let key = r#"{"mode":"hard","machineUID":"another"}"#;
        there.annotations.insert(KEY.into(), key.into());
        assert_eq!(why(&there), "", "that was for another key");
        there.annotations.insert(name, "{}".into());
        assert_eq!(why(&there), "", "that says nothing");
    }
}
