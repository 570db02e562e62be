//! Lists by the page, of which each object is trimmed as it comes: a host of metal3 can be 20 KiB.

use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use serde::de::DeserializeOwned;

use crate::error::{Error, ask};

/// How many objects are read at a time.
const PAGE: u32 = 500;

/// What `trim` leaves of all objects.
pub(super) async fn of<K, T>(api: &Api<K>, trim: impl Fn(&K) -> T) -> Result<Vec<T>, Error>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut all = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = ask(api.list(&params)).await?;
        all.extend(page.items.iter().map(&trim));
        match next(page.metadata.continue_) {
            Some(next) => params = next,
            None => return Ok(all),
        }
    }
}

/// The same of their metadata.
pub(super) async fn of_metadata<K, T>(
    api: &Api<K>,
    trim: impl Fn(&PartialObjectMeta<K>) -> T,
) -> Result<Vec<T>, Error>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut all = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = ask(api.list_metadata(&params)).await?;
        all.extend(page.items.iter().map(&trim));
        match next(page.metadata.continue_) {
            Some(next) => params = next,
            None => return Ok(all),
        }
    }
}

fn next(token: Option<String>) -> Option<ListParams> {
    let token = token.filter(|token| !token.is_empty())?;
    Some(ListParams::default().limit(PAGE).continue_token(&token))
}
