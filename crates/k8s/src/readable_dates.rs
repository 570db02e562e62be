//! Reads objects that have a date which jiff cannot hold.
//!
//! Kubernetes stores dates up to the last second of the year 9999 and does not check the times of
//! Nodes, Leases and `managedFields`. jiff ends a day earlier, and a list or a watch that fails
//! because of one object would hide all objects of its kind. So an answer that cannot be decoded is
//! decoded again with the nearest date that can be read in place of each one that cannot. The field
//! stays: a held Lease still counts as held, and leftovers of a free one are still cleared.
//!
//! Nothing is built as a tree unless an answer cannot be decoded, and then one object at a time.

mod clamp;

use std::future::Future;

use kube::api::{GetParams, ListParams, ObjectList, PartialObjectMeta, Patch, PatchParams};
use kube::core::Request;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::clamp::{clamp_list_dates, clamp_object_dates};

/// The calls of [`Api`] with answers that are decoded by [`decode_object`].
pub(crate) trait ReadableApi<K: Clone> {
    fn list_readable(
        &self,
        params: &ListParams,
    ) -> impl Future<Output = kube::Result<ObjectList<K>>> + Send;

    fn list_readable_metadata(
        &self,
        params: &ListParams,
    ) -> impl Future<Output = kube::Result<ObjectList<PartialObjectMeta<K>>>> + Send;

    fn get_readable(&self, name: &str) -> impl Future<Output = kube::Result<K>> + Send;

    /// `None`: there is no such object.
    fn get_readable_opt(&self, name: &str) -> impl Future<Output = kube::Result<Option<K>>> + Send;

    fn patch_readable<P: Serialize + Sync>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> impl Future<Output = kube::Result<K>> + Send;

    fn patch_readable_status<P: Serialize + Sync>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> impl Future<Output = kube::Result<K>> + Send;
}

impl<K> ReadableApi<K> for Api<K>
where
    K: Resource + Clone + DeserializeOwned,
{
    async fn list_readable(&self, params: &ListParams) -> kube::Result<ObjectList<K>> {
        let request = Request::new(self.resource_url()).list(params);
        decode_list(&send_request(self, request).await?)
    }

    async fn list_readable_metadata(
        &self,
        params: &ListParams,
    ) -> kube::Result<ObjectList<PartialObjectMeta<K>>> {
        let request = Request::new(self.resource_url()).list_metadata(params);
        decode_list(&send_request(self, request).await?)
    }

    async fn get_readable(&self, name: &str) -> kube::Result<K> {
        let request = Request::new(self.resource_url()).get(name, &GetParams::default());
        decode_object(&send_request(self, request).await?)
    }

    async fn get_readable_opt(&self, name: &str) -> kube::Result<Option<K>> {
        match self.get_readable(name).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn patch_readable<P: Serialize + Sync>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let request = Request::new(self.resource_url()).patch(name, params, patch);
        decode_object(&send_request(self, request).await?)
    }

    async fn patch_readable_status<P: Serialize + Sync>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K> {
        let request = Request::new(self.resource_url());
        let request = request.patch_subresource("status", name, params, patch);
        decode_object(&send_request(self, request).await?)
    }
}

async fn send_request<K: Resource + Clone>(
    api: &Api<K>,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> kube::Result<String> {
    let request = request.map_err(kube::Error::BuildRequest)?;
    api.clone().into_client().request_text(request).await
}

fn decode_object<K: DeserializeOwned>(answer: &str) -> kube::Result<K> {
    decode_clamped(answer, clamp_object_dates).map_err(kube::Error::SerdeError)
}

fn decode_list<T: Clone + DeserializeOwned>(answer: &str) -> kube::Result<ObjectList<T>> {
    decode_clamped(answer, clamp_list_dates).map_err(kube::Error::SerdeError)
}

/// Decodes one object, or one event of a watch with its object inside.
pub(crate) fn decode_event<T: DeserializeOwned>(line: &str) -> serde_json::Result<T> {
    decode_clamped(line, clamp_object_dates)
}

fn decode_clamped<T: DeserializeOwned>(
    text: &str,
    clamp: fn(&str) -> Option<String>,
) -> serde_json::Result<T> {
    let error = match serde_json::from_str(text) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    let clamped = if error.is_data() { clamp(text) } else { None };
    match clamped {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    }
}

#[cfg(test)]
mod tests;
