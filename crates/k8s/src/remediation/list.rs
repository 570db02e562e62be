//! Lists all objects of remediations once, for people's commands.

use std::sync::Arc;

use dogwatch_core::remediation::{MachineApi, StoredBackup};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};

use super::backup;
use super::kind::{CLUSTER_API_CLUSTER, METAL3_MACHINE, OptionalKind, POWER_REMEDIATION};
use super::machine::{ObservedCluster, parse_cluster, parse_infra_machine, parse_machine};
use super::request::parse_request;
use super::view::RemediationWatchView;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::paged::list_paged;

/// Lists Machines, Metal3Machines, requests, and the backups in Dogwatch's namespace `home`. A kind
/// that is not installed gives no objects, and neither do backups that the caller may not read.
pub(crate) async fn read_remediation_objects(
    client: &Client,
    home: &str,
) -> Result<RemediationWatchView, Error> {
    let keep = |object: &_| Arc::new(parse_request(object));
    let (mut view, requests, clusters) = futures::try_join!(
        read_machine_links(client),
        list_optional_kind(client, POWER_REMEDIATION, keep),
        list_permitted_clusters(client)
    )?;
    let paused = clusters.into_iter().filter(|it| it.paused);
    view.paused_clusters = paused.map(|it| it.name).collect();
    let kept = list_kept_backups(client, home).await?.into_iter();
    view.backups = kept.map(|it| (it.host_uid.clone(), it)).collect();
    let requests = requests.into_iter();
    view.requests = requests.map(|it| (it.name.clone(), it)).collect();
    Ok(view)
}

/// Machines and Metal3Machines.
pub(crate) async fn read_machine_links(client: &Client) -> Result<RemediationWatchView, Error> {
    let machines = |api: MachineApi| {
        let keep = move |object: &_| Arc::new(parse_machine(object, api));
        list_optional_kind(client, OptionalKind::of_machine_api(api), keep)
    };
    let infra = |object: &_| Arc::new(parse_infra_machine(object));
    let (openshift, cluster_api, infra) = futures::try_join!(
        machines(MachineApi::OpenShift),
        machines(MachineApi::ClusterApi),
        list_optional_kind(client, METAL3_MACHINE, infra),
    )?;
    let machines = openshift.into_iter().chain(cluster_api);
    Ok(RemediationWatchView {
        machines: machines.map(|it| (it.name.clone(), it)).collect(),
        infra: infra.into_iter().map(|it| (it.name.clone(), it)).collect(),
        synced: true,
        ..RemediationWatchView::default()
    })
}

/// Clusters that the caller may not list pause nothing.
async fn list_permitted_clusters(client: &Client) -> Result<Vec<ObservedCluster>, Error> {
    match list_optional_kind(client, CLUSTER_API_CLUSTER, parse_cluster).await {
        Err(error) if error.kind() == ApiErrorKind::Forbidden => Ok(Vec::new()),
        found => found,
    }
}

async fn list_kept_backups(client: &Client, home: &str) -> Result<Vec<Arc<StoredBackup>>, Error> {
    match backup::list_backups(client, home).await {
        Err(error) if error.kind() == ApiErrorKind::Forbidden => Ok(Vec::new()),
        found => found,
    }
}

async fn list_optional_kind<T: Clone>(
    client: &Client,
    kind: OptionalKind,
    keep: impl Fn(&DynamicObject) -> T,
) -> Result<Vec<T>, Error> {
    let Some(resource) = kind.find_served_version(client).await? else {
        return Ok(Vec::new());
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match with_timeout(list_paged(&api, ListParams::default(), keep)).await {
        Ok(list) => Ok(list.items),
        // The kind was removed between discovery and list.
        Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
