//! Finds the remediation that a person's confirmation on a host without a key is for. Source:
//! specification §4.2, manual confirmation.

use super::key::{KeyOwner, RemediationKey};
use super::types::Remediation;
use crate::power::{HostSnapshot, is_annotation_obeyed, reboot_annotations};

/// The remediation for which a host that died together with its BMC is to be released. The truth
/// table begins nothing while the power is unknown, so the person who confirms "off" adds the key
/// as well: [`Remediation::key`] of the result.
///
/// # Errors
/// There is not exactly one remediation, or it may not begin. The text follows the host's name.
pub fn remediation_to_confirm<'a>(
    cases: &'a [Remediation],
    host: &HostSnapshot,
) -> Result<&'a Remediation, String> {
    let is_its = |case: &&Remediation| {
        let its = case.host.as_ref().ok();
        case.needs_remediation && its.is_some_and(|its| its.name == host.name)
    };
    let mut wanting = cases.iter().filter(is_its);
    let case = match (wanting.next(), wanting.next()) {
        (Some(case), None) => case,
        (None, _) => {
            return Err(
                "does not need to be off: no Machine, Node or request of it needs remediation"
                    .to_owned(),
            );
        }
        (Some(one), Some(other)) => {
            let (one, other) = (&one.subject, &other.subject);
            return Err(format!(
                "must be off for {one} and for {other}: withdraw one of the two"
            ));
        }
    };
    check_may_begin(case, host)?;
    Ok(case)
}

fn check_may_begin(case: &Remediation, host: &HostSnapshot) -> Result<(), String> {
    let subject = &case.subject;
    if let Some((_, text)) = &case.problem {
        return Err(format!(
            "must be off for {subject}, and no Node is released for that: {text}"
        ));
    }
    let name = case.key.annotation_name();
    let is_foreign = case.key == KeyOwner::Foreign
        || RemediationKey::keys_on_host(host).any(|key| key.name == name);
    if is_foreign {
        return Err(format!(
            "has annotation {name} with another value than {subject} would write"
        ));
    }
    if let Some(pause) = case.describe_pause() {
        return Err(format!("must be off for {subject}, and {pause}"));
    }
    let keyed = case.key.with_key_on(host);
    let mut keys = reboot_annotations(&keyed).into_iter();
    if keys.any(|key| key.name == name && is_annotation_obeyed(&keyed, &key)) {
        return Ok(());
    }
    Err("is not provisioned: Dogwatch does not obey reboot annotations in this state".to_owned())
}
