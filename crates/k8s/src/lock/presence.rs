//! The Lease that shows that a replica of the lock API lives, and who waits there.
//!
//! A run id names its process (`api/PROCESS/N`). While the process lives, its Lease is renewed; who
//! finds it gone, or not renewed for long, may take away what nobody was told. Its label and one
//! annotation let the one who leaves a lock find who waits, with the list that it makes anyway.

use std::collections::BTreeMap;

use dogwatch_api::{CONTROLLER, annotation, label, lease as lease_name};
use dogwatch_core::lock::api_lock::{self, WaitingHost};
use dogwatch_core::lock::{HolderId, Waiter};
use dogwatch_core::name::GroupName;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::trim;
use crate::error::{Error, Kind, ask};
use crate::manager::{made_by, patched_by};

/// Says of itself how long after its last renewal it should be missed, in seconds. Whoever acts on
/// it goes by what it saw itself, not by these times.
const MISSED_AFTER: i32 = 60;

/// One who waits at a lock API, as its replica tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingHere {
    /// Who would bid.
    pub holder: HolderId,
    /// Since when.
    pub since: Timestamp,
    /// A control-plane node: it goes last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    /// Its zone, where its policy goes by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// The hand on one process' own Lease.
#[derive(Clone)]
pub struct Presence {
    leases: Api<Lease>,
    process: String,
}

impl Presence {
    /// The Lease of `process` (letters, digits and dashes) in Dogwatch's `namespace`.
    pub fn new(client: Client, namespace: &str, process: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            process: process.to_owned(),
        }
    }

    /// Renews it, and tells who waits: the first few of each group to whoever leaves a lock, and `hosts` with
    /// their reasons to people. Makes it where there is none.
    pub async fn renew(
        &self,
        waiting: &BTreeMap<GroupName, Vec<WaitingHere>>,
        hosts: &[WaitingHost],
        now: Timestamp,
    ) -> Result<(), Error> {
        let name = lease_name::presence_name(&self.process);
        let marks = marks(waiting);
        let body = json!({
            "metadata": {
                "labels": { label::REBOOT: marks.as_ref().map(|_| label::WAITING) },
                "annotations": {
                    annotation::WAITING: marks,
                    annotation::WAITING_HOSTS: api_lock::tell(hosts),
                },
            },
            "spec": { "renewTime": MicroTime(now) },
        });
        let params = patched_by(CONTROLLER);
        let patched = ask(self.leases.patch(&name, &params, &Patch::Merge(&body))).await;
        match patched {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::NotFound => {
                self.make(name, waiting, hosts, now).await
            }
            Err(error) => Err(error),
        }
    }

    /// Takes it away: from now on what this process has left behind is the healer's.
    pub async fn end(&self) -> Result<(), Error> {
        let name = lease_name::presence_name(&self.process);
        match ask(self.leases.delete(&name, &DeleteParams::default())).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn make(
        &self,
        name: String,
        waiting: &BTreeMap<GroupName, Vec<WaitingHere>>,
        hosts: &[WaitingHost],
        now: Timestamp,
    ) -> Result<(), Error> {
        let marks = marks(waiting);
        let labels = marks
            .as_ref()
            .map(|_| BTreeMap::from([(label::REBOOT.to_owned(), label::WAITING.to_owned())]));
        let texts = [
            (annotation::WAITING, marks),
            (annotation::WAITING_HOSTS, api_lock::tell(hosts)),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), text?)));
        let annotations = Some(texts.collect());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name),
                labels,
                annotations,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.process.clone()),
                lease_duration_seconds: Some(MISSED_AFTER),
                acquire_time: Some(MicroTime(now)),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        };
        let params = made_by(CONTROLLER);
        ask(self.leases.create(&params, &lease)).await.map(|_| ())
    }
}

/// The annotation's text; `None` if nobody waits.
fn marks(waiting: &BTreeMap<GroupName, Vec<WaitingHere>>) -> Option<String> {
    let waiting: BTreeMap<&str, &Vec<WaitingHere>> = waiting
        .iter()
        .filter(|(_, hosts)| !hosts.is_empty())
        .map(|(group, hosts)| (group.as_str(), hosts))
        .collect();
    let text = || serde_json::to_string(&waiting).expect("names and times serialise");
    (!waiting.is_empty()).then(text)
}

/// Those of the group who wait at any replica of the lock API but this one.
pub(super) async fn waiters(
    leases: &Api<Lease>,
    group: &GroupName,
    not_at: Option<&str>,
) -> Result<Vec<Waiter>, Error> {
    let waiting = ListParams::default().labels(&format!("{}={}", label::REBOOT, label::WAITING));
    let list = trim::list(leases, waiting).await?;
    let left_out = not_at.map(lease_name::presence_name);
    Ok(list
        .iter()
        .filter(|lease| left_out.as_deref() != Some(lease.name_any().as_str()))
        .flat_map(|lease| told(lease, group))
        .collect())
}

fn told(lease: &Lease, group: &GroupName) -> Vec<Waiter> {
    let told = told_by_group(lease).into_iter();
    told.filter(|(of, _)| of == group)
        .map(|(_, waiter)| waiter)
        .collect()
}

/// Everybody who waits at this replica, with the reason.
pub(crate) fn waiting_hosts<K: Resource>(lease: &K) -> Vec<WaitingHost> {
    let text = lease.meta().annotations.as_ref();
    let text = text.and_then(|all| all.get(annotation::WAITING_HOSTS));
    text.map(|text| api_lock::told(text)).unwrap_or_default()
}

/// Everybody of whom this Lease of a replica tells, by group. What cannot be read calls nobody: the
/// lock is safe and live without.
pub(crate) fn told_by_group<K: Resource>(lease: &K) -> Vec<(GroupName, Waiter)> {
    let text = lease.meta().annotations.as_ref();
    let text = text.and_then(|all| all.get(annotation::WAITING));
    let all =
        text.and_then(|text| serde_json::from_str::<BTreeMap<String, Vec<WaitingHere>>>(text).ok());
    let waiter = |host: WaitingHere| Waiter {
        holder: host.holder,
        control_plane: host.control_plane,
        zone: host.zone,
        since: Some(host.since),
    };
    let groups = all.unwrap_or_default().into_iter();
    let known = groups.filter_map(|(group, hosts)| Some((GroupName::new(group).ok()?, hosts)));
    known
        .flat_map(|(group, hosts)| {
            hosts
                .into_iter()
                .map(move |host| (group.clone(), waiter(host)))
        })
        .collect()
}
