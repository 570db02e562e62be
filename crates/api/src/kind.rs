//! Shared by the types of all kinds.

use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// API group of Dogwatch's own kinds.
pub const GROUP: &str = "dogwatch.dev";
/// Their only API version.
pub const VERSION: &str = "v1alpha1";
/// `GROUP/VERSION` of Dogwatch's own kinds.
pub const API_VERSION: &str = "dogwatch.dev/v1alpha1";

/// Implements the `k8s_openapi` traits for `$object`, the type of the kind that module `$words`
/// describes. `$scope` is a scope type of `k8s_openapi`; `metadata` is an `ObjectMeta`.
#[macro_export]
macro_rules! is_sent_for {
    ($object:ty, $words:ident :: $module:ident, $scope:ident) => {
        impl k8s_openapi::Resource for $object {
            const API_VERSION: &'static str = $words::$module::API_VERSION;
            const GROUP: &'static str = $words::$module::GROUP;
            const KIND: &'static str = $words::$module::KIND;
            const VERSION: &'static str = $words::$module::VERSION;
            const URL_PATH_SEGMENT: &'static str = $words::$module::PLURAL;
            type Scope = k8s_openapi::$scope;
        }

        impl k8s_openapi::Metadata for $object {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}

/// The `apiVersion` of `T`, as a default: items of a list do not contain it.
pub(crate) fn api_version<T: Resource>() -> String {
    T::API_VERSION.to_owned()
}

/// The `kind` of `T`, as a default: items of a list do not contain it.
pub(crate) fn kind<T: Resource>() -> String {
    T::KIND.to_owned()
}

pub(crate) fn namespaced_meta(namespace: impl Into<String>, name: impl Into<String>) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.into()),
        name: Some(name.into()),
        ..ObjectMeta::default()
    }
}
