//! Whom a person's word on a host is for, where no key stands there. Source: specification §4.2, manual
//! confirmation.

use super::case::Case;
use super::key::{Key, KeyOwner};
use crate::power::{Host, is_obeyed, requests};

/// What a host that died with its BMC is to be released for. By the table nothing is begun on an unknown power:
/// the person who says that it is off puts the key there as well. Its [`Case::key`] is that key.
///
/// # Errors
/// It is not one thing, or one that may not begin; a sentence that follows the host's name.
pub fn wanting<'a>(cases: &'a [Case], host: &Host) -> Result<&'a Case, String> {
    let is_its = |case: &&Case| {
        let its = case.host.as_ref().ok();
        case.needs && its.is_some_and(|its| its.name == host.name)
    };
    let mut wanting = cases.iter().filter(is_its);
    let case = match (wanting.next(), wanting.next()) {
        (Some(case), None) => case,
        (None, _) => {
            return Err(
                "is wanted off by nobody: no Machine, Node or request of it needs remediation"
                    .to_owned(),
            );
        }
        (Some(one), Some(other)) => {
            let (one, other) = (&one.subject, &other.subject);
            return Err(format!(
                "is wanted off by {one} and by {other}: take one of them back"
            ));
        }
    };
    may_begin(case, host)?;
    Ok(case)
}

fn may_begin(case: &Case, host: &Host) -> Result<(), String> {
    let subject = &case.subject;
    if let Some((_, text)) = &case.trouble {
        return Err(format!(
            "is wanted off by {subject}, and nothing is released for it: {text}"
        ));
    }
    let name = case.key.key();
    let is_foreign = case.key == KeyOwner::Unnamed || Key::of(host).any(|key| key.name == name);
    if is_foreign {
        return Err(format!(
            "carries annotation {name} with another value than {subject} would have"
        ));
    }
    if case.machine.as_ref().is_some_and(|machine| machine.paused) {
        return Err(format!(
            "is that of {subject}, which is paused (annotation cluster.x-k8s.io/paused)"
        ));
    }
    let keyed = case.key.put_on(host);
    let mut keys = requests(&keyed).into_iter();
    if keys.any(|key| key.name == name && is_obeyed(&keyed, &key)) {
        return Ok(());
    }
    Err("is not provisioned: reboot annotations are not obeyed there".to_owned())
}
