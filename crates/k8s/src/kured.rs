//! Lists kured's DaemonSets for `dogwatch migrate kured`.
//!
//! **May touch:** DaemonSets (read).

use k8s_openapi::api::apps::v1::DaemonSet;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::Error;
use crate::error::with_timeout;

/// The DaemonSets of a namespace (`None`: of all), in the form of `kubectl get -o json`.
pub async fn list_daemonsets(client: Client, namespace: Option<&str>) -> Result<Vec<Value>, Error> {
    let api: Api<DaemonSet> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let list = with_timeout(api.list(&ListParams::default())).await?;
    let shown = |set: DaemonSet| {
        let name = set.name_any();
        serde_json::to_value(set)
            .unwrap_or_else(|_| serde_json::json!({ "metadata": { "name": name } }))
    };
    Ok(list.items.into_iter().map(shown).collect())
}
