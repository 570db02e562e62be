//! Who refuses an eviction at admission, which runs before the API server looks at the pod.

use std::fmt;

/// A webhook or a policy that refuses evictions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refuser {
    /// A webhook of a ValidatingWebhookConfiguration or MutatingWebhookConfiguration, by its own
    /// name in there.
    Webhook(String),
    /// A ValidatingAdmissionPolicy, by its name.
    Policy(String),
}

impl Refuser {
    /// What it is, in one word, as metrics have it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "AdmissionWebhook",
            Self::Policy(_) => "ValidatingAdmissionPolicy",
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Webhook(name) | Self::Policy(name) => name,
        }
    }
}

impl fmt::Display for Refuser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(name) => write!(f, "admission webhook {name}"),
            Self::Policy(name) => write!(f, "ValidatingAdmissionPolicy {name}"),
        }
    }
}

/// Dogwatch's own policy: who has a coordinator's token shall not evict Dogwatch's controller onto a
/// node of his. Kustomize may put something before and behind. Source: `deploy/policies/coordinators.yaml`, specification §6.
pub const OWN_PODS_POLICY: &str = "coordinator-evictions.dogwatch.dev";

/// A refusal by admission: not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Who refuses.
    pub by: Refuser,
    /// Its own words; empty if it gave none.
    pub said: String,
}

impl Refusal {
    /// Whether it is said of a pod of Dogwatch's own namespace, which a coordinator never evicts.
    pub(super) fn keeps_own_pods(&self) -> bool {
        matches!(&self.by, Refuser::Policy(name) if name.contains(OWN_PODS_POLICY))
    }

    /// Reads the API server's message. `None`: it is no refusal by admission.
    ///
    /// Told by the words: a webhook chooses its code itself (Strimzi's answers 500, `KubeVirt`'s
    /// 429), and a policy's default is the code of a malformed request. Source:
    /// `apiserver/pkg/admission/plugin/webhook` and `…/policy/validating` of Kubernetes 1.36.1.
    pub fn read(message: &str) -> Option<Self> {
        denied_by_webhook(message)
            .or_else(|| failed_webhook(message))
            .or_else(|| denied_by_policy(message))
    }
}

fn denied_by_webhook(message: &str) -> Option<Refusal> {
    let rest = message.strip_prefix("admission webhook \"")?;
    let (name, said) = rest.split_once("\" denied the request")?;
    Some(Refusal {
        by: Refuser::Webhook(name.to_owned()),
        said: said.trim_start_matches([':', ' ']).to_owned(),
    })
}

fn failed_webhook(message: &str) -> Option<Refusal> {
    let message = message
        .strip_prefix("Internal error occurred: ")
        .unwrap_or(message);
    let rest = message.strip_prefix("failed calling webhook \"")?;
    let (name, said) = rest.split_once("\": ")?;
    Some(Refusal {
        by: Refuser::Webhook(name.to_owned()),
        said: format!("it cannot be called: {said}"),
    })
}

fn denied_by_policy(message: &str) -> Option<Refusal> {
    let (_, rest) = message.split_once(" is forbidden: ValidatingAdmissionPolicy '")?;
    let (name, rest) = rest.split_once('\'')?;
    let (_, said) = rest.split_once("denied request")?;
    Some(Refusal {
        by: Refuser::Policy(name.to_owned()),
        said: said.trim_start_matches([':', ' ']).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
    fn webhook(name: &str, said: &str) -> Option<Refusal> {
        let by = Refuser::Webhook(name.into());
        let said = said.into();
        Some(Refusal { by, said })
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
    fn policy(name: &str, said: &str) -> Option<Refusal> {
        let by = Refuser::Policy(name.into());
        let said = said.into();
        Some(Refusal { by, said })
    }

    #[test]
    fn who_refuses_at_admission_is_read_from_the_servers_words() {
        for (message, expected) in [
            (
                r#"admission webhook "strimzi-drain-cleaner.strimzi.io" denied the request: The pod will be rolled by the Strimzi Cluster Operator"#,
                webhook(
                    "strimzi-drain-cleaner.strimzi.io",
                    "The pod will be rolled by the Strimzi Cluster Operator",
                ),
            ),
            (
                r#"admission webhook "a.b" denied the request without explanation"#,
                webhook("a.b", "without explanation"),
            ),
            (
                r#"Internal error occurred: failed calling webhook "a.b": failed to call webhook: Post "https://a.b.svc:443/evict": dial tcp: connection refused"#,
                webhook(
                    "a.b",
                    r#"it cannot be called: failed to call webhook: Post "https://a.b.svc:443/evict": dial tcp: connection refused"#,
                ),
            ),
            (
                r#"pods "web-1" is forbidden: ValidatingAdmissionPolicy 'keep-web' with binding 'keep-web-all' denied request: not before noon"#,
                policy("keep-web", "not before noon"),
            ),
            (
                r#"pods "web-1" is forbidden: ValidatingAdmissionPolicy 'keep-web' denied request: failed to configure policy: no params"#,
                policy("keep-web", "failed to configure policy: no params"),
            ),
        ] {
            assert_eq!(Refusal::read(message), expected, "{message}");
        }
    }

    #[test]
    fn what_is_no_refusal_by_admission_is_not_taken_for_one() {
        for message in [
            r#"pods "web-1" is forbidden: User "u" cannot create resource "pods/eviction" in API group "" in the namespace "shop""#,
            r#"pods "web-1" is forbidden: node "n1" can only evict pods with spec.nodeName set to itself"#,
            "Cannot evict pod as it would violate the pod's disruption budget.",
            "admission webhook",
            "",
        ] {
            assert_eq!(Refusal::read(message), None, "{message}");
        }
    }
}
