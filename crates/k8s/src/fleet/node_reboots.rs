//! Lists, creates, cancels and deletes NodeReboots for a person. Source: specification §10.1.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::node_reboot::{NodeReboot, NodeRebootSpec};
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::ObservedNodeReboot;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, Preconditions};
use serde_json::json;

use super::request::FIELD_MANAGER;
use super::{FleetClient, OPTIONAL_KIND_RECHECK};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::{patch_params_for, post_params_for};
use crate::informer::{KindInformer, fixed_jitter};
use crate::node_reboot::{NodeRebootObject, NodeRebootWatch, convert_node_reboot};
use crate::watch::{FullObjects, ObjectSelection};

/// All NodeReboots of a cluster that may not have the kind.
pub struct FleetNodeRebootsWatch {
    informer: KindInformer<String, Arc<ObservedNodeReboot>>,
    reboots: BTreeMap<String, Arc<ObservedNodeReboot>>,
}

/// The API server throttles the lists of a kind for the first seconds after its installation.
const MAX_LIST_TRIES: u32 = 20;
const LIST_RETRY_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq)]
pub enum NodeRebootsFound {
    There(Vec<ObservedNodeReboot>),
    /// The kind NodeReboot is not installed.
    NoKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum NodeRebootFound {
    There(Box<ObservedNodeReboot>),
    /// No NodeReboot has this name. These have.
    NoNodeReboot {
        existing: Vec<String>,
    },
    /// The kind NodeReboot is not installed.
    NoKind,
}

impl FleetClient {
    pub async fn list_node_reboots(&self) -> Result<NodeRebootsFound, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            match with_timeout(self.node_reboot_api().list(&ListParams::default())).await {
                Ok(list) => {
                    let all = list.items.iter().map(convert_node_reboot);
                    return Ok(NodeRebootsFound::There(all.collect()));
                }
                // Only a missing kind makes a list fail with 404.
                Err(error) if error.kind() == ApiErrorKind::NotFound => {
                    return Ok(NodeRebootsFound::NoKind);
                }
                // The kind was installed a moment ago.
                Err(error) if is_throttled(&error) && tries < MAX_LIST_TRIES => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(LIST_RETRY_PAUSE).await;
        }
    }

    pub async fn find_node_reboot(&self, name: &str) -> Result<NodeRebootFound, Error> {
        match with_timeout(self.node_reboot_api().get(name)).await {
            Ok(object) => {
                let reboot = Box::new(convert_node_reboot(&object));
                return Ok(NodeRebootFound::There(reboot));
            }
            // The object is missing, or its kind.
            Err(error) if error.kind() == ApiErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(match self.list_node_reboots().await? {
            NodeRebootsFound::There(all) => NodeRebootFound::NoNodeReboot {
                existing: all.into_iter().map(|one| one.name).collect(),
            },
            NodeRebootsFound::NoKind => NodeRebootFound::NoKind,
        })
    }

    /// A cluster without the kind has no NodeReboots. Sends nothing before
    /// [`FleetNodeRebootsWatch::wait_for_change`] is awaited.
    pub fn watch_node_reboots_if_installed(&self) -> FleetNodeRebootsWatch {
        let entry = |object: &NodeRebootObject| {
            let reboot = convert_node_reboot(object);
            Some((reboot.name.clone(), Arc::new(reboot)))
        };
        FleetNodeRebootsWatch {
            informer: KindInformer::new(
                FullObjects(self.node_reboot_api()),
                ObjectSelection::default(),
                OPTIONAL_KIND_RECHECK,
                &fixed_jitter(),
                entry,
            ),
            reboots: BTreeMap::new(),
        }
    }

    /// Sends nothing before its first wait.
    pub fn watch_node_reboots(&self) -> NodeRebootWatch {
        let jitter = fixed_jitter();
        NodeRebootWatch::new(self.client.clone(), move || jitter())
    }

    pub async fn create_node_reboot(&self, name: &str, spec: NodeRebootSpec) -> Result<(), Error> {
        let api = Api::<NodeReboot>::all(self.client.clone());
        let params = post_params_for(FIELD_MANAGER);
        with_timeout(api.create(&params, &NodeReboot::new(name, spec))).await?;
        Ok(())
    }

    /// Sets `spec.cancel`. One that is gone already is no error.
    pub async fn cancel_node_reboot(&self, reboot: &ObservedNodeReboot) -> Result<(), Error> {
        let body = json!({ "metadata": { "uid": reboot.uid }, "spec": { "cancel": true } });
        let (api, params) = (self.node_reboot_api(), patch_params_for(FIELD_MANAGER));
        allow_gone(with_timeout(api.patch(&reboot.name, &params, &Patch::Merge(body))).await)
    }

    /// One that is gone already is no error.
    pub async fn delete_node_reboot(&self, reboot: &ObservedNodeReboot) -> Result<(), Error> {
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(reboot.uid.clone()),
            resource_version: None,
        });
        let api = self.node_reboot_api();
        allow_gone(with_timeout(api.delete(&reboot.name, &params)).await)
    }

    fn node_reboot_api(&self) -> Api<NodeRebootObject> {
        Api::all(self.client.clone())
    }
}

impl FleetNodeRebootsWatch {
    /// Whether the watch has not failed since it was last answered.
    pub fn is_connected(&self) -> bool {
        self.informer.is_connected()
    }

    /// Waits for the next change or failure.
    ///
    /// # Errors
    /// A temporary failure of the watch: await the next change.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        let event = self.informer.next_event().await;
        event.apply_to(&mut self.reboots).map_or(Ok(()), Err)
    }

    /// Whether the list has arrived, or the kind was found missing or forbidden.
    pub fn is_synced(&self) -> bool {
        self.informer.is_synced()
    }

    /// Those that are known; none before the list has arrived.
    pub fn current_reboots(&self) -> Vec<Arc<ObservedNodeReboot>> {
        self.reboots.values().cloned().collect()
    }
}

impl NodeRebootsFound {
    /// All of them; none without the kind.
    pub fn into_reboots(self) -> Vec<Arc<ObservedNodeReboot>> {
        match self {
            NodeRebootsFound::There(all) => all.into_iter().map(Arc::new).collect(),
            NodeRebootsFound::NoKind => Vec::new(),
        }
    }

    /// Those of this node that have not ended and are not being deleted; `None` without the kind.
    pub fn open_of_node(&self, node: &NodeName) -> Option<Vec<ObservedNodeReboot>> {
        let NodeRebootsFound::There(all) = self else {
            return None;
        };
        let open = all.iter().filter(|one| {
            let is_of_node = one.plan.as_ref().is_ok_and(|plan| plan.node == *node);
            is_of_node && !one.is_final() && !one.deleting
        });
        Some(open.cloned().collect())
    }
}

fn is_throttled(error: &Error) -> bool {
    matches!(error.kind(), ApiErrorKind::Throttled { .. })
}

fn allow_gone<T>(done: Result<T, Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(()),
        done => done.map(|_| ()),
    }
}
