//! Who may not do what. RBAC is not simulated: everybody may do everything but what a test forbids.

use super::kinds::Resource;
use super::route::{Target, Verb};
use super::status::ApiError;

/// A right that is withheld. None matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denial {
    /// Of this user.
    pub user: Option<String>,
    /// For this verb.
    pub verb: Option<Verb>,
    /// On this resource, `pods/eviction` for a subresource.
    pub resource: Option<String>,
}

impl Denial {
    fn matches(&self, user: &str, verb: Verb, resource: &str) -> bool {
        self.user.as_deref().is_none_or(|denied| denied == user)
            && self.verb.is_none_or(|denied| denied == verb)
            && self
                .resource
                .as_deref()
                .is_none_or(|denied| denied == resource)
    }
}

/// The refusal of the first denial that matches.
pub(crate) fn check(
    denials: &[Denial],
    user: &str,
    verb: Verb,
    target: &Target,
) -> Option<ApiError> {
    let path = match target.subresource {
        None => target.resource.plural.clone(),
        Some(subresource) => format!("{}/{}", target.resource.plural, subresource.as_str()),
    };
    let denied = denials
        .iter()
        .any(|denial| denial.matches(user, verb, &path));
    denied.then(|| refusal(&target.resource, user, verb, &path, target))
}

fn refusal(resource: &Resource, user: &str, verb: Verb, path: &str, target: &Target) -> ApiError {
    let place = if target.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", target.namespace)
    };
    let why = format!(
        "User \"{user}\" cannot {} resource \"{path}\" in API group \"{}\" {place}",
        verb.as_str(),
        resource.group
    );
    ApiError::forbidden(&resource.group, &resource.plural, &target.name, &why)
}
