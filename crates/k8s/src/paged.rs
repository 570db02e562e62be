//! Lists objects page by page and trims each on arrival: 10,000 whole hosts at once would take some
//! 100 MiB, the trimmed ones a tenth of that.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use futures::stream::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, ObjectList, TypeMeta, WatchEvent, WatchParams};
use kube::core::DynamicResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::readable_dates::ReadableApi as _;
use crate::watch::event_lines::watch_full_objects;
use crate::watch::{ChangeStream, WatchSource, read_store_version};

const OBJECTS_PER_PAGE: u32 = 250;

/// All objects that `api` lists, each trimmed by `keep`.
pub(crate) struct PagedObjects<K, T> {
    pub(crate) api: Api<K>,
    pub(crate) keep: Arc<dyn Fn(&K) -> T + Send + Sync>,
}

impl<K: Clone, T> Clone for PagedObjects<K, T> {
    fn clone(&self) -> Self {
        Self {
            api: self.api.clone(),
            keep: Arc::clone(&self.keep),
        }
    }
}

/// Lists all objects; only the trimmed ones are all in memory at once.
pub(crate) async fn list_paged<K, T>(
    api: &Api<K>,
    params: ListParams,
    keep: impl Fn(&K) -> T,
) -> kube::Result<ObjectList<T>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    T: Clone,
{
    let mut params = params.limit(OBJECTS_PER_PAGE);
    let mut items = Vec::new();
    loop {
        let page = api.list_readable(&params).await?;
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

/// The trimmed object, with the metadata that a watch needs.
#[derive(Debug, Clone)]
pub(crate) struct TrimmedObject<T> {
    metadata: ObjectMeta,
    pub(crate) kept: T,
}

impl<K, T> WatchSource for PagedObjects<K, T>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    T: Clone + Send + 'static,
{
    type Object = TrimmedObject<T>;

    async fn list_objects(
        &self,
        params: &ListParams,
    ) -> kube::Result<ObjectList<TrimmedObject<T>>> {
        let keep = |object: &K| trim_object(object, &*self.keep);
        list_paged(&self.api, params.clone(), keep).await
    }

    async fn read_version(&self, params: &ListParams) -> kube::Result<String> {
        read_store_version(&self.api, params).await
    }

    async fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<ChangeStream<TrimmedObject<T>>> {
        let changes = watch_full_objects(&self.api, params, version).await?;
        let keep = Arc::clone(&self.keep);
        Ok(changes
            .map(move |change| change.map(|change| trim_change(change, &*keep)))
            .boxed())
    }
}

fn trim_object<K: Resource, T>(object: &K, keep: &dyn Fn(&K) -> T) -> TrimmedObject<T> {
    let metadata = ObjectMeta {
        name: object.meta().name.clone(),
        namespace: object.meta().namespace.clone(),
        resource_version: object.resource_version(),
        ..ObjectMeta::default()
    };
    let kept = keep(object);
    TrimmedObject { metadata, kept }
}

fn trim_change<K: Resource, T>(
    change: WatchEvent<K>,
    keep: &dyn Fn(&K) -> T,
) -> WatchEvent<TrimmedObject<T>> {
    match change {
        WatchEvent::Added(object) => WatchEvent::Added(trim_object(&object, keep)),
        WatchEvent::Modified(object) => WatchEvent::Modified(trim_object(&object, keep)),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(trim_object(&object, keep)),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

/// Only its metadata is used; the source knows the kind.
impl<T> Resource for TrimmedObject<T> {
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
