//! `PowerRemediationTemplate` (`dogwatch.dev/v1alpha1`, namespaced): health checks create
//! [`PowerRemediation`](crate::power_remediation)s from it. Source: specification §4.2; Cluster
//! API's MachineHealthCheck; medik8s' NodeHealthCheck.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::kind::{api_version, kind};

use crate::power_remediation::PowerRemediationSpec;

mod crd;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};
pub use crd::template_crd;

/// The kind of a request plus `Template`: both contracts derive the request's kind from it.
pub const KIND: &str = "PowerRemediationTemplate";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "powerremediationtemplates";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "powerremediationtemplates.dogwatch.dev";

/// One template, as the API server stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationTemplate {
    /// [`API_VERSION`].
    #[serde(default = "api_version::<PowerRemediationTemplate>")]
    pub api_version: String,
    /// [`KIND`].
    #[serde(default = "kind::<PowerRemediationTemplate>")]
    pub kind: String,
    /// Name and namespace. Cluster API wants the template in the namespace of the Machines; medik8s
    /// creates requests in the template's namespace.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What requests are created from.
    #[serde(default)]
    pub spec: PowerRemediationTemplateSpec,
    /// Written by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PowerRemediationTemplateStatus>,
}

/// `spec` of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerRemediationTemplateSpec {
    /// The request to create.
    #[serde(default)]
    pub template: TemplateResource,
}

/// `spec.template`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateResource {
    /// Metadata of each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// `spec` of each request.
    #[serde(default)]
    pub spec: PowerRemediationSpec,
}

/// `spec.template.metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateMetadata {
    /// Labels of each request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of each request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// `status` of a template.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationTemplateStatus {
    /// The template's conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

crate::is_sent_for!(
    PowerRemediationTemplate,
    crate::power_remediation_template,
    NamespaceResourceScope
);
