//! What is watched: how its objects are listed and watched.

use std::fmt::Debug;
use std::future::Future;

use futures::stream::BoxStream;
use kube::Resource;
use kube::api::{Api, ListParams, ObjectList, PartialObjectMeta, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;

use super::event_lines;
use crate::readable_dates::ReadableApi as _;

pub trait WatchSource: Send + Sync + 'static {
    type Object: Resource + Clone + Send + 'static;

    fn list_objects(
        &self,
        params: &ListParams,
    ) -> impl Future<Output = kube::Result<ObjectList<Self::Object>>> + Send;

    /// The version of the store now, by [`read_store_version`].
    fn read_version(
        &self,
        params: &ListParams,
    ) -> impl Future<Output = kube::Result<String>> + Send;

    /// Watches from this version on.
    fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> impl Future<Output = kube::Result<ChangeStream<Self::Object>>> + Send;
}

pub type ChangeStream<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

#[derive(Debug, Clone)]
pub struct FullObjects<K>(pub Api<K>);

/// Only the metadata of objects: a Node has 10 KiB and more, its metadata 1 KiB.
#[derive(Debug, Clone)]
pub struct MetadataObjects<K>(pub Api<K>);

impl<K> WatchSource for FullObjects<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    type Object = K;

    async fn list_objects(&self, params: &ListParams) -> kube::Result<ObjectList<K>> {
        self.0.list_readable(params).await
    }

    async fn read_version(&self, params: &ListParams) -> kube::Result<String> {
        read_store_version(&self.0, params).await
    }

    async fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<ChangeStream<K>> {
        event_lines::watch_full_objects(&self.0, params, version).await
    }
}

impl<K> WatchSource for MetadataObjects<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    type Object = PartialObjectMeta<K>;

    async fn list_objects(
        &self,
        params: &ListParams,
    ) -> kube::Result<ObjectList<PartialObjectMeta<K>>> {
        self.0.list_readable_metadata(params).await
    }

    async fn read_version(&self, params: &ListParams) -> kube::Result<String> {
        read_store_version(&self.0, params).await
    }

    async fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<ChangeStream<PartialObjectMeta<K>>> {
        event_lines::watch_metadata(&self.0, params, version).await
    }
}

/// The version of the store now. A list of one object, read by quorum: a store that only goes
/// forward is never older than a version that was seen before.
pub(crate) async fn read_store_version<K>(api: &Api<K>, params: &ListParams) -> kube::Result<String>
where
    K: Resource + Clone + DeserializeOwned,
{
    let list = api.list_readable_metadata(&params.clone().limit(1)).await?;
    Ok(list.metadata.resource_version.unwrap_or_default())
}
