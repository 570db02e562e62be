//! Hosts listed page by page, each page trimmed as it comes: 10,000 whole hosts at once would be some
//! 100 MiB, and what is kept of them a tenth.

use std::sync::Arc;

use dogwatch_core::power::Host;
use futures::stream::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, ObjectList, TypeMeta, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};

use super::convert::convert;
use super::object::HostObject;
use crate::watch::{Changes, Watched};

/// How many come at once.
const PAGE: u32 = 250;

/// All hosts of the cluster.
pub(super) struct Paged(pub(super) Api<HostObject>);

/// What is kept of one.
#[derive(Debug, Clone)]
pub(super) struct Trimmed {
    metadata: ObjectMeta,
    pub(super) host: Arc<Host>,
}

impl Trimmed {
    fn of(object: &HostObject) -> Self {
        let metadata = ObjectMeta {
            name: object.metadata.name.clone(),
            namespace: object.metadata.namespace.clone(),
            resource_version: object.resource_version(),
            ..ObjectMeta::default()
        };
        let host = Arc::new(convert(object));
        Self { metadata, host }
    }
}

impl Watched for Paged {
    type Object = Trimmed;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<Trimmed>> {
        let mut params = params.clone().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = self.0.list(&params).await?;
            items.extend(page.items.iter().map(Trimmed::of));
            match page
                .metadata
                .continue_
                .clone()
                .filter(|next| !next.is_empty())
            {
                Some(next) => params.continue_token = Some(next),
                None => {
                    return Ok(ObjectList {
                        types: TypeMeta::default(),
                        metadata: page.metadata,
                        items,
                    });
                }
            }
        }
    }

    async fn watch(&self, params: &WatchParams, version: &str) -> kube::Result<Changes<Trimmed>> {
        let changes = self.0.watch(params, version).await?;
        Ok(changes.map(|change| change.map(trimmed)).boxed())
    }
}

fn trimmed(change: WatchEvent<HostObject>) -> WatchEvent<Trimmed> {
    match change {
        WatchEvent::Added(object) => WatchEvent::Added(Trimmed::of(&object)),
        WatchEvent::Modified(object) => WatchEvent::Modified(Trimmed::of(&object)),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(Trimmed::of(&object)),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

impl k8s_openapi::Resource for Trimmed {
    const API_VERSION: &'static str = HostObject::API_VERSION;
    const GROUP: &'static str = HostObject::GROUP;
    const KIND: &'static str = HostObject::KIND;
    const VERSION: &'static str = HostObject::VERSION;
    const URL_PATH_SEGMENT: &'static str = HostObject::URL_PATH_SEGMENT;
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for Trimmed {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
