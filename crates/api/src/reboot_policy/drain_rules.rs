//! `spec.drain.rules` and `spec.drain.honor`, with unparsed texts.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use crate::schema::{self, validation_rule};
use crate::selector::LabelSelector;

/// What the drain does with some pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [
    validation_rule(
        "has(self.timeout) == (self.do in ['WaitCompleted', 'RollFirst'])",
        "write timeout with do: WaitCompleted or RollFirst, and with nothing else",
    ),
    validation_rule(
        "self.do != 'Skip' || has(self.pods)",
        "write pods with do: Skip: without it every pod would stay",
    ),
    validation_rule(
        "self.do != 'Skip' || !has(self.order)",
        "leave order out with do: Skip: nothing is done with these pods",
    ),
])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainRuleSpec {
    /// Which pods. Default: every pod. Only the last rule may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<DrainRulePods>,
    /// What happens to them. Evict: as without a rule. WaitCompleted: they may end by themselves
    /// until the timeout, then they are evicted. RollFirst: their Deployment is restarted by rollout,
    /// so that new pods are ready elsewhere before they go; at the timeout they are evicted. Delete:
    /// they are deleted with their grace periods; no PodDisruptionBudget is asked. Skip: they stay,
    /// and the reboot stops them.
    #[serde(rename = "do")]
    pub action: DrainRuleAction,
    /// Pods of a lower order are gone before pods of a higher order are touched. Default: 0.
    #[cfg_attr(test, schemars(range(min = -1_000_000, max = 1_000_000)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
    /// How long after the beginning of the drain the pods may end by themselves, or be replaced by
    /// a rollout. drain.timeout begins after it.
    #[cfg_attr(test, schemars(schema_with = "schema::time_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
}

/// `spec.drain.rules[].pods`: both must match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("x-kubernetes-validations" = [
    validation_rule(
        "has(self.selector) || has(self.namespaceSelector)",
        "write selector or namespaceSelector; for every pod, leave pods out",
    ),
])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrainRulePods {
    /// Matches the pod's labels. Default: every pod.
    #[cfg_attr(test, schemars(extend("x-kubernetes-validations" = [schema::names_a_label()])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Matches the labels of the pod's namespace, like kubernetes.io/metadata.name. Default: every
    /// namespace.
    #[cfg_attr(test, schemars(extend("x-kubernetes-validations" = [schema::names_a_label()])))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// `spec.drain.rules[].do`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum DrainRuleAction {
    /// As without a rule.
    Evict,
    /// The pods may end by themselves; then they are evicted.
    WaitCompleted,
    /// Their Deployment is restarted by rollout first; then they are evicted.
    RollFirst,
    /// The pods are deleted; no budget is asked.
    Delete,
    /// The pods stay.
    Skip,
}

/// A label or annotation by which other tools protect a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum HonoredMark {
    /// Label of Cluster API: skip, wait-completed.
    #[serde(rename = "cluster.x-k8s.io/drain")]
    ClusterApiDrain,
    /// Annotation of Karpenter: true, or a duration from the pod's start.
    #[serde(rename = "karpenter.sh/do-not-disrupt")]
    DoNotDisrupt,
    /// Annotation of the cluster autoscaler: false.
    #[serde(rename = "cluster-autoscaler.kubernetes.io/safe-to-evict")]
    SafeToEvict,
}

/// A rule for every pod hides the rules after it.
#[cfg(test)]
pub(super) fn only_the_last_rule_matches_all() -> serde_json::Value {
    validation_rule(
        "self.all(rule, has(rule.pods)) || (self.filter(rule, !has(rule.pods)).size() == 1 && \
         !has(self[self.size() - 1].pods))",
        "write pods in every rule but the last: a rule without it matches every pod, and hides \
         the rules after it",
    )
}
