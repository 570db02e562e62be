//! The volumes of the drained pods, until they are detached from the node.

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
use crate::error::ask;
use crate::watch::{self as objects, Event, Full, Selection};

/// How soon a volume that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// A watch on the attachments that must go. It stops when this is dropped.
#[derive(Debug)]
pub struct AttachmentsHandle {
    /// Those still there, each as `NAME (claim NAMESPACE/NAME)`; `None` until they were listed.
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
/// An attachment names its node and a PersistentVolume, not a claim. Whose it is stands in the
/// volume's `claimRef`, which outlives the claim; so one GET for each attachment of this node tells
/// which of them belong to drained pods, and no claim has to be looked up before its pod goes.
/// There is no field selector for a VolumeAttachment's node: all of the cluster's are watched, and
/// only this node's are kept. Inline volumes (without a PersistentVolume) have no claim and are not
/// waited for. A volume that cannot be read counts as one of ours: the caller's deadline ends that.
pub struct Attachments {
    client: Client,
    node: String,
    claims: BTreeSet<String>,
    events: BoxStream<'static, Event<VolumeAttachment>>,
    /// This node's, by name.
    here: BTreeMap<String, Attachment>,
    left: watch::Sender<Option<Vec<String>>>,
}

struct Attachment {
    volume: String,
    /// `None`: not known yet, or not to be found out.
    claim: Option<Claim>,
}

/// Whom a volume belongs to.
enum Claim {
    /// `namespace/name`.
    Of(String),
    /// Nobody.
    None,
}

impl Attachments {
    /// Starts to watch. `claims` are those of [`Progress`](dogwatch_core::drain::Progress).
    pub fn start(
        client: Client,
        node: &str,
        claims: impl IntoIterator<Item = String>,
    ) -> AttachmentsHandle {
        let (left, seen) = watch::channel(None);
        let api: Api<VolumeAttachment> = Api::all(client.clone());
        let watching = Self {
            events: objects::watch(Full(api), Selection::default(), super::runner::middle).boxed(),
            client,
            node: node.to_owned(),
            claims: claims.into_iter().collect(),
            here: BTreeMap::new(),
            left,
        };
        AttachmentsHandle {
            left: seen,
            task: tokio::spawn(watching.run()),
        }
    }

    async fn run(mut self) {
        loop {
            let unknown = self
                .here
                .values()
                .any(|attachment| attachment.claim.is_none());
            tokio::select! {
                biased;
                Some(event) = self.events.next() => {
                    if !self.take(event) {
                        continue;
                    }
                }
                () = tokio::time::sleep(READ_AGAIN), if unknown => {}
            }
            self.find_claims().await;
            self.publish();
        }
    }

    /// Takes an event in; answers whether it told anything.
    fn take(&mut self, event: Event<VolumeAttachment>) -> bool {
        match event {
            Event::Restarted(all) => {
                self.here.clear();
                for attachment in all {
                    self.applied(attachment);
                }
            }
            Event::Applied(attachment) => self.applied(attachment),
            Event::Deleted(attachment) => {
                self.here.remove(&attachment.name_any());
            }
            Event::Trouble(error) => {
                tracing::warn!(
                    error = error.in_words(),
                    "volume attachments cannot be watched"
                );
                return false;
            }
        }
        true
    }

    fn applied(&mut self, attachment: VolumeAttachment) {
        let name = attachment.name_any();
        let Some(volume) = attachment.spec.source.persistent_volume_name else {
            return;
        };
        if attachment.spec.node_name == self.node && !self.here.contains_key(&name) {
            self.here.insert(
                name,
                Attachment {
                    volume,
                    claim: None,
                },
            );
        }
    }

    async fn find_claims(&mut self) {
        for attachment in self
            .here
            .values_mut()
            .filter(|attachment| attachment.claim.is_none())
        {
            match claim_of(&self.client, &attachment.volume).await {
                Ok(claim) => attachment.claim = Some(claim),
                Err(error) => {
                    let volume = &attachment.volume;
                    tracing::warn!(volume, error = error.in_words(), "a volume cannot be read");
                }
            }
        }
    }

    fn publish(&self) {
        let left = self
            .here
            .iter()
            .filter_map(|(name, attachment)| match &attachment.claim {
                None => Some(format!("{name} (volume {})", attachment.volume)),
                Some(Claim::Of(claim)) => self
                    .claims
                    .contains(claim)
                    .then(|| format!("{name} (claim {claim})")),
                Some(Claim::None) => None,
            });
        let left = Some(left.collect());
        self.left
            .send_if_modified(|published| std::mem::replace(published, left.clone()) != left);
    }
}

async fn claim_of(client: &Client, volume: &str) -> Result<Claim, Error> {
    if !is_dns_name(volume) {
        return Ok(Claim::None);
    }
    let api: Api<PersistentVolume> = Api::all(client.clone());
    let volume = ask(api.get(volume)).await?;
    let claim = volume.spec.and_then(|spec| spec.claim_ref);
    Ok(claim.map_or(Claim::None, |claim| {
        Claim::Of(format!(
            "{}/{}",
            claim.namespace.unwrap_or_default(),
            claim.name.unwrap_or_default()
        ))
    }))
}
