//! Watches the volumes of the drained pods until they are detached from the node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::name::is_dns_name;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Error;
use crate::error::with_timeout;
use crate::watch::{self as objects, FullObjects, ObjectEvent, ObjectSelection};

/// Pause before a volume that could not be read is read again.
const VOLUME_READ_INTERVAL: Duration = Duration::from_secs(5);

/// A running watch on the attachments that must be detached. Dropping it stops the watch.
#[derive(Debug)]
pub struct AttachmentsHandle {
    /// Attachments that remain, each as `NAME (claim NAMESPACE/NAME)`; `None` until they were
    /// listed.
    pub left: watch::Receiver<Option<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for AttachmentsHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches the node's VolumeAttachments.
///
/// An attachment names its node and a PersistentVolume, not a claim. The claim is in the volume's
/// `claimRef`, which outlives the claim. So one GET per attachment of this node tells which
/// attachments belong to drained pods, and no claim has to be read before its pod is evicted.
/// VolumeAttachments have no field selector for the node: all attachments of the cluster are
/// watched, and only this node's are kept. Inline volumes (without a PersistentVolume) have no
/// claim and are not waited for. A volume that cannot be read counts as a drained pod's: the
/// caller's deadline ends the wait.
pub struct AttachmentWatch {
    client: Client,
    node: String,
    claims: BTreeSet<String>,
    events: BoxStream<'static, ObjectEvent<VolumeAttachment>>,
    /// This node's attachments, by name.
    here: BTreeMap<String, NodeAttachment>,
    left: watch::Sender<Option<Vec<String>>>,
}

struct NodeAttachment {
    volume: String,
    /// `None`: not known yet, or the volume cannot be read.
    claim: Option<VolumeClaim>,
}

/// The claim that a volume is bound to.
enum VolumeClaim {
    Of(String),
    None,
}

impl AttachmentWatch {
    /// `claims` are those of [`DrainProgress`](dogwatch_core::drain::DrainProgress).
    pub fn start_watching(
        client: Client,
        node: &str,
        claims: impl IntoIterator<Item = String>,
    ) -> AttachmentsHandle {
        let (left, seen) = watch::channel(None);
        let api: Api<VolumeAttachment> = Api::all(client.clone());
        let watching = Self {
            events: objects::list_and_watch(
                FullObjects(api),
                ObjectSelection::default(),
                super::runner::fixed_jitter,
            )
            .boxed(),
            client,
            node: node.to_owned(),
            claims: claims.into_iter().collect(),
            here: BTreeMap::new(),
            left,
        };
        AttachmentsHandle {
            left: seen,
            task: tokio::spawn(watching.run_watch()),
        }
    }

    async fn run_watch(mut self) {
        loop {
            let unknown = self
                .here
                .values()
                .any(|attachment| attachment.claim.is_none());
            tokio::select! {
                biased;
                Some(event) = self.events.next() => {
                    if !self.apply_event(event) {
                        continue;
                    }
                }
                () = tokio::time::sleep(VOLUME_READ_INTERVAL), if unknown => {}
            }
            self.read_missing_claims().await;
            self.publish_remaining();
        }
    }

    /// Returns whether the event changed anything.
    fn apply_event(&mut self, event: ObjectEvent<VolumeAttachment>) -> bool {
        match event {
            ObjectEvent::Restarted(all) => {
                self.here.clear();
                for attachment in all {
                    self.add_attachment(attachment);
                }
            }
            ObjectEvent::Applied(attachment) => self.add_attachment(attachment),
            ObjectEvent::Deleted(attachment) => {
                self.here.remove(&attachment.name_any());
            }
            ObjectEvent::Failed(error) => {
                tracing::warn!(
                    error = error.error_chain(),
                    "volume attachments cannot be watched"
                );
                return false;
            }
        }
        true
    }

    fn add_attachment(&mut self, attachment: VolumeAttachment) {
        let name = attachment.name_any();
        let Some(volume) = attachment.spec.source.persistent_volume_name else {
            return;
        };
        if attachment.spec.node_name == self.node && !self.here.contains_key(&name) {
            self.here.insert(
                name,
                NodeAttachment {
                    volume,
                    claim: None,
                },
            );
        }
    }

    async fn read_missing_claims(&mut self) {
        for attachment in self
            .here
            .values_mut()
            .filter(|attachment| attachment.claim.is_none())
        {
            match read_volume_claim(&self.client, &attachment.volume).await {
                Ok(claim) => attachment.claim = Some(claim),
                Err(error) => {
                    let volume = &attachment.volume;
                    tracing::warn!(
                        volume,
                        error = error.error_chain(),
                        "a volume cannot be read"
                    );
                }
            }
        }
    }

    fn publish_remaining(&self) {
        let left = self
            .here
            .iter()
            .filter_map(|(name, attachment)| match &attachment.claim {
                None => Some(format!("{name} (volume {})", attachment.volume)),
                Some(VolumeClaim::Of(claim)) => self
                    .claims
                    .contains(claim)
                    .then(|| format!("{name} (claim {claim})")),
                Some(VolumeClaim::None) => None,
            });
        let left = Some(left.collect());
        self.left
            .send_if_modified(|published| std::mem::replace(published, left.clone()) != left);
    }
}

async fn read_volume_claim(client: &Client, volume: &str) -> Result<VolumeClaim, Error> {
    if !is_dns_name(volume) {
        return Ok(VolumeClaim::None);
    }
    let api: Api<PersistentVolume> = Api::all(client.clone());
    let volume = with_timeout(api.get(volume)).await?;
    let claim = volume.spec.and_then(|spec| spec.claim_ref);
    Ok(claim.map_or(VolumeClaim::None, |claim| {
        VolumeClaim::Of(format!(
            "{}/{}",
            claim.namespace.unwrap_or_default(),
            claim.name.unwrap_or_default()
        ))
    }))
}
