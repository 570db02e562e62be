//! Denials of rights, set by tests. RBAC is not simulated: a user may do everything that no test
//! denies.

use super::kinds::ServedResource;
use super::route::{ApiRequestTarget, ApiVerb};
use super::status::ApiError;

/// A denied right. A field that is None matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denial {
    pub user: Option<String>,
    pub verb: Option<ApiVerb>,
    /// For a subresource, for example `pods/eviction`.
    pub resource: Option<String>,
}

impl Denial {
    fn matches_request(&self, user: &str, verb: ApiVerb, resource: &str) -> bool {
        self.user.as_deref().is_none_or(|denied| denied == user)
            && self.verb.is_none_or(|denied| denied == verb)
            && self
                .resource
                .as_deref()
                .is_none_or(|denied| denied == resource)
    }
}

/// Whether a user may not do this; `resource` is for example `pods/eviction`, and a verb of no
/// request, like `impersonate`, is denied by denials of every verb only.
pub(crate) fn denies_action(denials: &[Denial], user: &str, verb: &str, resource: &str) -> bool {
    denials.iter().any(|denial| {
        denial.user.as_deref().is_none_or(|denied| denied == user)
            && denial.verb.is_none_or(|denied| denied.as_str() == verb)
            && denial
                .resource
                .as_deref()
                .is_none_or(|denied| denied == resource)
    })
}

/// Returns a 403 if a denial matches; the first one gives the message.
pub(crate) fn check_access(
    denials: &[Denial],
    user: &str,
    verb: ApiVerb,
    target: &ApiRequestTarget,
) -> Option<ApiError> {
    let path = match target.subresource {
        None => target.resource.plural.clone(),
        Some(subresource) => format!("{}/{}", target.resource.plural, subresource.as_str()),
    };
    let denied = denials
        .iter()
        .any(|denial| denial.matches_request(user, verb, &path));
    denied.then(|| forbidden_error(&target.resource, user, verb, &path, target))
}

fn forbidden_error(
    resource: &ServedResource,
    user: &str,
    verb: ApiVerb,
    path: &str,
    target: &ApiRequestTarget,
) -> ApiError {
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
