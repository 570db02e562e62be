//! A host as it came, with a `spec` and a `status` of any form.

use dogwatch_api::bare_metal_host::{API_VERSION, GROUP, KIND, PLURAL, VERSION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One object of the kind. It is read field by field ([`super::convert`]), so that one which does not
/// have the expected form neither vanishes nor spoils the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostObject {
    /// Name, UID, annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Whatever stands there.
    #[serde(default)]
    pub spec: Value,
    /// Whatever stands there.
    #[serde(default)]
    pub status: Value,
}

impl k8s_openapi::Resource for HostObject {
    const API_VERSION: &'static str = API_VERSION;
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = KIND;
    const VERSION: &'static str = VERSION;
    const URL_PATH_SEGMENT: &'static str = PLURAL;
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for HostObject {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
