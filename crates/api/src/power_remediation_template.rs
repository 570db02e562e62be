//! `PowerRemediationTemplate` (`dogwatch.dev/v1alpha1`, namespaced): health checks create
//! [`PowerRemediation`](crate::power_remediation)s from it. Source: specification §4.2; Cluster
//! API's MachineHealthCheck; medik8s' NodeHealthCheck.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kind::{api_version, kind};
use crate::manifest::parse_manifest;
#[cfg(test)]
use crate::schema;

use crate::power_remediation::PowerRemediationSpec;

#[cfg(test)]
pub(crate) mod crd;
#[cfg(test)]
mod tests;

pub use crate::kind::{API_VERSION, GROUP, VERSION};

/// The kind of a request plus `Template`: both contracts derive the request's kind from it.
pub const KIND: &str = "PowerRemediationTemplate";
/// Plural, as in URLs and RBAC rules.
pub const PLURAL: &str = "powerremediationtemplates";
/// Name of the CustomResourceDefinition.
pub const CRD_NAME: &str = "powerremediationtemplates.dogwatch.dev";
/// The CustomResourceDefinition, a YAML document.
pub const CRD_MANIFEST: &str = include_str!("../../../deploy/crds/powerremediationtemplates.yaml");

/// A template from which a health check creates PowerRemediations. https://dogwatch.dev/remediation
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["spec"])))]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationTemplate {
    /// dogwatch.dev/v1alpha1
    #[serde(default = "api_version::<PowerRemediationTemplate>")]
    pub api_version: String,
    /// PowerRemediationTemplate
    #[serde(default = "kind::<PowerRemediationTemplate>")]
    pub kind: String,
    /// Name and namespace. Cluster API wants the template in the namespace of the Machines; medik8s
    /// creates requests in the template's namespace.
    #[cfg_attr(test, schemars(schema_with = "schema::object_metadata"))]
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The desired requests. A change applies to requests that are created after it.
    #[serde(default)]
    pub spec: PowerRemediationTemplateSpec,
    /// What the controller reports about the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PowerRemediationTemplateStatus>,
}

/// `spec` of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(extend("required" = ["template"])))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PowerRemediationTemplateSpec {
    /// A request.
    #[serde(default)]
    pub template: TemplateResource,
}

/// `spec.template`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateResource {
    /// What Cluster API adds to each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What a person or a health check requested.
    #[cfg_attr(test, schemars(extend("x-default" = {})))]
    #[serde(default)]
    pub spec: PowerRemediationSpec,
}

/// `spec.template.metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateMetadata {
    /// Labels.
    #[cfg_attr(test, schemars(schema_with = "schema::text_map"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[cfg_attr(test, schemars(schema_with = "schema::text_map"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// `status` of a template.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PowerRemediationTemplateStatus {
    /// The conditions of the template.
    #[cfg_attr(test, schemars(schema_with = "schema::condition_list"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The CustomResourceDefinition.
pub fn template_crd() -> Value {
    parse_manifest(CRD_MANIFEST)
}

crate::is_sent_for!(
    PowerRemediationTemplate,
    crate::power_remediation_template,
    NamespaceResourceScope
);
