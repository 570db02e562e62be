//! Decides whether a host in its present state may be confirmed off.

use dogwatch_core::explain::format_age;
use dogwatch_core::power::{HostSnapshot, OffConfirmation, PowerState, reboot_annotations};
use dogwatch_core::remediation::{KeyOwner, RemediationKey};

use crate::cluster::current_time;
use crate::command::hosts::HostUnchanged;

/// Checks the current state. `shown` is the host as the person saw it: the confirmation holds for
/// the keys of that moment only.
pub fn check_confirmable(host: &HostSnapshot, shown: &HostSnapshot) -> Result<(), HostUnchanged> {
    let name = &host.name;
    if host.uid != shown.uid || remediation_key_ids(host) != remediation_key_ids(shown) {
        let text = "has other keys now than a moment ago";
        return Err(HostUnchanged::refuse_change(
            text,
            format!("check the host again: dogwatch explain host/{name}"),
        ));
    }
    if host.deleting {
        return Err(HostUnchanged::host_is_deleting());
    }
    if !is_held_off(host) {
        let text = "has no key of a remediation, so a confirmation would release nothing";
        return Err(HostUnchanged::refuse_change(
            text,
            "dogwatch status remediations",
        ));
    }
    refuse_powered_on(host)?;
    refuse_already_confirmed(host)
}

/// Whether the host carries a key of a remediation.
pub fn is_held_off(host: &HostSnapshot) -> bool {
    RemediationKey::keys_on_host(host).any(|key| key.owner != KeyOwner::Foreign)
}

/// Refuses when the BMC reports that the host is on.
fn refuse_powered_on(host: &HostSnapshot) -> Result<(), HostUnchanged> {
    let power = &host.status.power;
    match power.state {
        Some(state @ (PowerState::On | PowerState::PoweringOn)) => {
            let seen = power
                .observed_at
                .map(|at| format_age(current_time().elapsed_since(at)));
            let seen = seen.map(|age| format!(", read {age} ago"));
            let text = format!(
                "is {} as its BMC reports{}, so it is not off",
                state.as_str(),
                seen.unwrap_or_default()
            );
            let next = format!(
                "the power controller switches the host off without your confirmation: dogwatch explain host/{}",
                host.name
            );
            Err(HostUnchanged::refuse_change(text, next))
        }
        Some(PowerState::Off | PowerState::PoweringOff | PowerState::Unknown) | None => Ok(()),
    }
}

/// Refuses when all keys of the host are confirmed already.
fn refuse_already_confirmed(host: &HostSnapshot) -> Result<(), HostUnchanged> {
    match OffConfirmation::read_from_host(host) {
        Some(Ok(said))
            if remediation_key_ids(host)
                .iter()
                .all(|key| said.keys.contains(key)) =>
        {
            let (by, at, reason) = (&said.by, said.at, &said.reason);
            Err(HostUnchanged::AlreadySet(format!(
                "was confirmed off already by {by} at {at}: {reason}"
            )))
        }
        // The new confirmation replaces one for other keys or one that cannot be read.
        Some(Ok(_) | Err(_)) | None => Ok(()),
    }
}

/// The ids of the keys that a confirmation covers.
fn remediation_key_ids(host: &HostSnapshot) -> Vec<String> {
    let requests = reboot_annotations(host).into_iter();
    let keys = requests.filter(|request| request.key.is_some());
    keys.map(|request| request.id()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const KEY: &str = "reboot.metal3.io/machine-remediation";

    fn host(annotations: &Value, state: &str) -> HostSnapshot {
        let object = json!({
            "metadata": { "namespace": "metal", "name": "h1", "uid": "u", "resourceVersion": "7",
                "annotations": annotations },
            "spec": { "online": true },
            "status": { "provisioning": { "state": "provisioned" }, "power": { "state": state } },
        });
        dogwatch_k8s::host::convert_host(&serde_json::from_value(object).unwrap())
    }

    fn keyed(state: &str) -> HostSnapshot {
        host(
            &json!({ KEY: r#"{"mode":"hard","machineUID":"m"}"# }),
            state,
        )
    }

    fn why(host: &HostSnapshot) -> String {
        match check_confirmable(host, host) {
            Ok(()) => String::new(),
            Err(HostUnchanged::AlreadySet(text) | HostUnchanged::Refused { text, .. }) => text,
        }
    }

    #[test]
    fn a_word_is_taken_of_a_host_that_we_hold_off_and_that_does_not_say_that_it_is_on() {
        assert_eq!(why(&keyed("Unknown")), "");
        assert_eq!(why(&keyed("PoweringOff")), "");
        assert!(why(&keyed("On")).starts_with("is On as its BMC reports"));
        assert!(why(&keyed("PoweringOn")).starts_with("is PoweringOn as its BMC reports"));
        for annotations in [
            json!({}),
            json!({ "reboot.metal3.io/repair": "" }),
            json!({ KEY: "somebody's" }),
        ] {
            let text = why(&host(&annotations, "Unknown"));
            assert!(text.starts_with("has no key"), "{annotations}: {text}");
        }
    }

    #[test]
    fn what_came_after_the_person_looked_is_not_covered_by_their_word() {
        let shown = keyed("Unknown");
        let mut there = shown.clone();
        let name = "reboot.metal3.io/power-remediation-9".to_owned();
        there.annotations.insert(name, r#"{"mode":"hard"}"#.into());
        let no = check_confirmable(&there, &shown).unwrap_err();
        assert!(matches!(no, HostUnchanged::Refused { text, .. } if text.contains("other keys")));
    }

    #[test]
    fn what_was_said_of_the_same_keys_is_not_said_again() {
        let mut there = keyed("Unknown");
        let word =
            OffConfirmation::for_host(&there, "ann", jiff::Timestamp::UNIX_EPOCH, "unplugged");
        let name = dogwatch_core::power::CONFIRMED_OFF_ANNOTATION.to_owned();
        there
            .annotations
            .insert(name.clone(), word.annotation_value());
        assert!(why(&there).starts_with("was confirmed off already by ann"));
        let key = r#"{"mode":"hard","machineUID":"another"}"#;
        there.annotations.insert(KEY.into(), key.into());
        assert_eq!(why(&there), "", "that was for another key");
        there.annotations.insert(name, "{}".into());
        assert_eq!(why(&there), "", "that says nothing");
    }
}
