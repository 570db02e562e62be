//! Everything that is watched, once: for people.

use std::sync::Arc;

use dogwatch_core::remedy::{KeptBackup, MachineApi};
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};

use super::backup;
use super::kind::{Kind, METAL3_MACHINE, POWER_REMEDIATION};
use super::machine::{infra_machine, machine};
use super::request::request;
use super::view::RemedyView;
use crate::error::{Error, Kind as Meaning, ask};
use crate::paged::list;

/// Machines, what is between them and their hosts, requests, and what is kept in Dogwatch's `home`. A kind that
/// is not installed has none; nor is anything kept for whom may not read it.
pub(crate) async fn everything(client: &Client, home: &str) -> Result<RemedyView, Error> {
    let keep = |object: &_| Arc::new(request(object));
    let (mut view, requests) =
        futures::try_join!(links(client), all(client, POWER_REMEDIATION, keep))?;
    let kept = kept(client, home).await?.into_iter();
    view.backups = kept.map(|it| (it.host_uid.clone(), it)).collect();
    let requests = requests.into_iter();
    view.requests = requests.map(|it| (it.name.clone(), it)).collect();
    Ok(view)
}

/// Machines, and what is between them and their hosts.
pub(crate) async fn links(client: &Client) -> Result<RemedyView, Error> {
    let machines = |api: MachineApi| {
        let keep = move |object: &_| Arc::new(machine(object, api));
        all(client, Kind::of(api), keep)
    };
    let infra = |object: &_| Arc::new(infra_machine(object));
    let (openshift, cluster_api, infra) = futures::try_join!(
        machines(MachineApi::OpenShift),
        machines(MachineApi::ClusterApi),
        all(client, METAL3_MACHINE, infra),
    )?;
    let machines = openshift.into_iter().chain(cluster_api);
    Ok(RemedyView {
        machines: machines.map(|it| (it.name.clone(), it)).collect(),
        infra: infra.into_iter().map(|it| (it.name.clone(), it)).collect(),
        synced: true,
        ..RemedyView::default()
    })
}

async fn kept(client: &Client, home: &str) -> Result<Vec<Arc<KeptBackup>>, Error> {
    match backup::all(client, home).await {
        Err(error) if error.kind() == Meaning::Forbidden => Ok(Vec::new()),
        found => found,
    }
}

async fn all<T: Clone>(
    client: &Client,
    kind: Kind,
    keep: impl Fn(&DynamicObject) -> T,
) -> Result<Vec<T>, Error> {
    let Some(resource) = kind.served(client).await? else {
        return Ok(Vec::new());
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match ask(list(&api, ListParams::default(), keep)).await {
        Ok(list) => Ok(list.items),
        // It went between the two questions.
        Err(error) if error.kind() == Meaning::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
