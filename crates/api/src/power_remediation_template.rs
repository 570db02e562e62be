//! `PowerRemediationTemplate` (`dogwatch.dev/v1alpha1`, namespaced): what a health check makes
//! [`PowerRemediation`](crate::power_remediation)s of. Source: specification §4.2; Cluster API's
//! MachineHealthCheck; medik8s' NodeHealthCheck.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind};

use crate::power_remediation::PowerRemediationSpec;

mod crd;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::crd;

/// Its kind: that of a request, and `Template`, by which both contracts find the request's.
pub const KIND: &str = "PowerRemediationTemplate";
/// Its plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "powerremediationtemplates";
/// The name of its CustomResourceDefinition.
pub const CRD_NAME: &str = "powerremediationtemplates.dogwatch.dev";

/// One template, as the API server has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationTemplate {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<PowerRemediationTemplate>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<PowerRemediationTemplate>")]
    pub kind: String,
    /// Its name and namespace. Cluster API wants it where the Machines are; medik8s makes requests where
    /// it is.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What requests are made of.
    #[serde(default)]
    pub spec: PowerRemediationTemplateSpec,
    /// What the controller says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PowerRemediationTemplateStatus>,
}

/// `spec`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerRemediationTemplateSpec {
    /// A request.
    #[serde(default)]
    pub template: TemplateResource,
}

/// `template`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateResource {
    /// What goes onto each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Its spec.
    #[serde(default)]
    pub spec: PowerRemediationSpec,
}

/// `template.metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationTemplateStatus {
    /// What is said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

crate::is_sent_for!(
    PowerRemediationTemplate,
    crate::power_remediation_template,
    NamespaceResourceScope
);
