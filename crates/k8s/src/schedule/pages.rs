//! Lists objects page by page and trims each on arrival: a host of metal3 can have 20 KiB.

use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use kube::core::ObjectList;
use serde::de::DeserializeOwned;

use crate::error::{Error, with_timeout};
use crate::readable_dates::ReadableApi as _;

const OBJECTS_PER_PAGE: u32 = 500;

/// All objects, each trimmed by `trim`.
pub(super) async fn list_pages<K, T>(api: &Api<K>, trim: impl Fn(&K) -> T) -> Result<Vec<T>, Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    read_every_page(
        |params| async move { api.list_readable(&params).await },
        trim,
    )
    .await
}

/// Like [`list_pages`], for the objects with this label.
pub(super) async fn list_selected_pages<K, T>(
    api: &Api<K>,
    labels: &str,
    trim: impl Fn(&K) -> T,
) -> Result<Vec<T>, Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let list = |params: ListParams| async move { api.list_readable(&params.labels(labels)).await };
    read_every_page(list, trim).await
}

/// Like [`list_pages`], for metadata only.
pub(super) async fn list_metadata_pages<K, T>(
    api: &Api<K>,
    trim: impl Fn(&PartialObjectMeta<K>) -> T,
) -> Result<Vec<T>, Error>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    read_every_page(
        |params| async move { api.list_readable_metadata(&params).await },
        trim,
    )
    .await
}

async fn read_every_page<K, T, Listed>(
    list: impl Fn(ListParams) -> Listed,
    trim: impl Fn(&K) -> T,
) -> Result<Vec<T>, Error>
where
    K: Clone,
    Listed: Future<Output = kube::Result<ObjectList<K>>>,
{
    let mut all = Vec::new();
    let mut params = ListParams::default().limit(OBJECTS_PER_PAGE);
    loop {
        let page = with_timeout(list(params)).await?;
        all.extend(page.items.iter().map(&trim));
        match next_page_params(page.metadata.continue_) {
            Some(next) => params = next,
            None => return Ok(all),
        }
    }
}

fn next_page_params(token: Option<String>) -> Option<ListParams> {
    let token = token.filter(|token| !token.is_empty())?;
    Some(
        ListParams::default()
            .limit(OBJECTS_PER_PAGE)
            .continue_token(&token),
    )
}
