//! Everything that is watched, once: for people.

use std::sync::Arc;

use dogwatch_core::remedy::MachineApi;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};

use super::kind::{Kind, METAL3_MACHINE, POWER_REMEDIATION};
use super::machine::{infra_machine, machine};
use super::request::request;
use super::view::RemedyView;
use crate::error::{Error, Kind as Meaning, ask};
use crate::paged::list;

/// Machines, what is between them and their hosts, and requests. A kind that is not installed has none.
pub(crate) async fn everything(client: &Client) -> Result<RemedyView, Error> {
    let machines = |api: MachineApi| {
        let keep = move |object: &_| Arc::new(machine(object, api));
        all(client, Kind::of(api), keep)
    };
    let (openshift, cluster_api, infra, requests) = futures::try_join!(
        machines(MachineApi::OpenShift),
        machines(MachineApi::ClusterApi),
        all(client, METAL3_MACHINE, |object| Arc::new(infra_machine(
            object
        ))),
        all(client, POWER_REMEDIATION, |object| Arc::new(request(
            object
        ))),
    )?;
    let mut view = RemedyView {
        synced: true,
        ..RemedyView::default()
    };
    for found in openshift.into_iter().chain(cluster_api) {
        view.machines.insert(found.name.clone(), found);
    }
    view.infra = infra.into_iter().map(|it| (it.name.clone(), it)).collect();
    let requests = requests.into_iter();
    view.requests = requests.map(|it| (it.name.clone(), it)).collect();
    Ok(view)
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
