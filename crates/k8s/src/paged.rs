//! Objects listed page by page, each trimmed as it comes: 10,000 whole hosts at once would be some
//! 100 MiB, and what is kept of them a tenth.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, ObjectList, TypeMeta, WatchEvent, WatchParams};
use kube::core::DynamicResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::watch::{Changes, Watched};

/// How many come at once.
const PAGE: u32 = 250;

/// All objects that `api` shows, and what is kept of one.
pub(crate) struct Paged<K, T> {
    pub(crate) api: Api<K>,
    pub(crate) keep: Arc<dyn Fn(&K) -> T + Send + Sync>,
}

/// Lists them all; only what `keep` makes of them is ever held together.
pub(crate) async fn list<K, T>(
    api: &Api<K>,
    params: ListParams,
    keep: impl Fn(&K) -> T,
) -> kube::Result<ObjectList<T>>
where
    K: Clone + DeserializeOwned + Debug,
    T: Clone,
{
    let mut params = params.limit(PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list(&params).await?;
        items.extend(page.items.iter().map(&keep));
        let next = page.metadata.continue_.clone();
        match next.filter(|next| !next.is_empty()) {
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

/// What is kept of one, with what a watch needs.
#[derive(Debug, Clone)]
pub(crate) struct Trimmed<T> {
    metadata: ObjectMeta,
    pub(crate) kept: T,
}

impl<K, T> Watched for Paged<K, T>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    T: Clone + Send + 'static,
{
    type Object = Trimmed<T>;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<Trimmed<T>>> {
        let keep = |object: &K| trimmed(object, &*self.keep);
        list(&self.api, params.clone(), keep).await
    }

    async fn watch(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<Changes<Trimmed<T>>> {
        let changes = self.api.watch(params, version).await?;
        let keep = Arc::clone(&self.keep);
        Ok(changes
            .map(move |change| change.map(|change| trimmed_change(change, &*keep)))
            .boxed())
    }
}

fn trimmed<K: Resource, T>(object: &K, keep: &dyn Fn(&K) -> T) -> Trimmed<T> {
    let metadata = ObjectMeta {
        name: object.meta().name.clone(),
        namespace: object.meta().namespace.clone(),
        resource_version: object.resource_version(),
        ..ObjectMeta::default()
    };
    let kept = keep(object);
    Trimmed { metadata, kept }
}

fn trimmed_change<K: Resource, T>(
    change: WatchEvent<K>,
    keep: &dyn Fn(&K) -> T,
) -> WatchEvent<Trimmed<T>> {
    match change {
        WatchEvent::Added(object) => WatchEvent::Added(trimmed(&object, keep)),
        WatchEvent::Modified(object) => WatchEvent::Modified(trimmed(&object, keep)),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(trimmed(&object, keep)),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

/// Only its metadata is ever asked for: of what kind it was is the source's affair.
impl<T> Resource for Trimmed<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group((): &()) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn version((): &()) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn plural((): &()) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
