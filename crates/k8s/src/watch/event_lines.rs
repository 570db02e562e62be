//! Reads the events of a watch, one from each line of the API server's answer.
//!
//! kube's own reader buffers each event as a tree, because `object` may come before `type`, and so
//! has code that builds each kind from such a tree. That is half a megabyte of the coordinator. This
//! one goes through a line twice: for the type, then for the object.

use std::error::Error;
use std::fmt::Debug;
use std::io::{self, ErrorKind};

use futures::io::AsyncBufReadExt as _;
use futures::stream::StreamExt as _;
use http::header::{ACCEPT_ENCODING, HeaderValue};
use kube::api::{Api, PartialObjectMeta, WatchEvent, WatchParams};
use kube::core::{Request, Status};
use kube::{Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ChangeStream;
use crate::readable_dates::decode_event;

/// Watches whole objects from this version on.
pub(crate) async fn watch_full_objects<K>(
    api: &Api<K>,
    params: &WatchParams,
    version: &str,
) -> kube::Result<ChangeStream<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let request = Request::new(api.resource_url()).watch(params, version);
    let request = request.map_err(kube::Error::BuildRequest)?;
    open_stream(&api.clone().into_client(), request).await
}

/// Watches only the metadata of objects.
pub(crate) async fn watch_metadata<K>(
    api: &Api<K>,
    params: &WatchParams,
    version: &str,
) -> kube::Result<ChangeStream<PartialObjectMeta<K>>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + 'static,
{
    let request = Request::new(api.resource_url()).watch_metadata(params, version);
    let request = request.map_err(kube::Error::BuildRequest)?;
    open_stream(&api.clone().into_client(), request).await
}

async fn open_stream<K: DeserializeOwned + Send + 'static>(
    client: &Client,
    mut request: http::Request<Vec<u8>>,
) -> kube::Result<ChangeStream<K>> {
    // Kubernetes 1.37 compresses each event by itself; kube's client decompresses only the first.
    let identity = HeaderValue::from_static("identity");
    request.headers_mut().insert(ACCEPT_ENCODING, identity);
    let lines = client.request_stream(request).await?.lines();
    Ok(lines.filter_map(async |line| read_line(line)).boxed())
}

/// `None` where the answer ends early: the watch continues from the last version.
fn read_line<K: DeserializeOwned>(line: io::Result<String>) -> Option<kube::Result<WatchEvent<K>>> {
    match line {
        Ok(line) => parse_event(&line).transpose(),
        Err(error) if is_early_end(&error) => None,
        Err(error) => Some(Err(kube::Error::ReadEvents(error))),
    }
}

/// An HTTP answer without its last chunk, or a connection that timed out.
fn is_early_end(error: &io::Error) -> bool {
    let is_end =
        |error: &io::Error| matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::TimedOut);
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io_error = error.downcast_ref::<io::Error>();
        if io_error.is_some_and(is_end) {
            return true;
        }
        // An `io::Error` names as its source that of the error inside it.
        let inside = io_error.and_then(io::Error::get_ref);
        cause = inside.map_or_else(|| error.source(), |inside| Some(inside));
    }
    false
}

#[derive(Deserialize)]
struct TypedLine {
    #[serde(rename = "type")]
    event_type: EventType,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

#[derive(Deserialize)]
struct LineObject<T> {
    object: T,
}

/// `None` for the beginning of a line whose rest did not arrive.
fn parse_event<K: DeserializeOwned>(line: &str) -> kube::Result<Option<WatchEvent<K>>> {
    match parse_complete_event(line) {
        Ok(event) => Ok(Some(event)),
        Err(error) if error.is_eof() => Ok(None),
        Err(error) => Err(match serde_json::from_str::<Status>(line) {
            Ok(status) => kube::Error::Api(status.boxed()),
            Err(_) => kube::Error::SerdeError(error),
        }),
    }
}

fn parse_complete_event<K: DeserializeOwned>(line: &str) -> serde_json::Result<WatchEvent<K>> {
    let TypedLine { event_type } = serde_json::from_str(line)?;
    Ok(match event_type {
        EventType::Added => WatchEvent::Added(parse_object(line)?),
        EventType::Modified => WatchEvent::Modified(parse_object(line)?),
        EventType::Deleted => WatchEvent::Deleted(parse_object(line)?),
        EventType::Bookmark => WatchEvent::Bookmark(parse_object(line)?),
        EventType::Error => WatchEvent::Error(parse_object(line)?),
    })
}

fn parse_object<T: DeserializeOwned>(line: &str) -> serde_json::Result<T> {
    let LineObject { object } = decode_event(line)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;

    use super::*;

    /// What kube's reader and ours make of a line: type and object, no event, or an error.
    fn describe(event: kube::Result<Option<WatchEvent<Node>>>) -> String {
        match event {
            Ok(Some(event)) => serde_json::to_string(&event).unwrap(),
            Ok(None) => "no event".to_owned(),
            Err(kube::Error::Api(status)) => format!("status {}", status.code),
            Err(kube::Error::SerdeError(_)) => "not an event".to_owned(),
            Err(other) => panic!("{other}"),
        }
    }

    /// As `kube::Client::request_events` reads a line.
    fn read_by_kube(line: &str) -> kube::Result<Option<WatchEvent<Node>>> {
        match serde_json::from_str(line) {
            Ok(event) => Ok(Some(event)),
            Err(error) if error.is_eof() => Ok(None),
            Err(error) => Err(match serde_json::from_str::<Status>(line) {
                Ok(status) => kube::Error::Api(status.boxed()),
                Err(_) => kube::Error::SerdeError(error),
            }),
        }
    }

    const NODE: &str = r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"spec":{"unschedulable":true}}"#;

    #[test]
    fn each_line_is_read_as_kube_reads_it() {
        let gone = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}"#;
        let lines = [
            format!(r#"{{"type":"ADDED","object":{NODE}}}"#),
            format!(r#"{{"type":"MODIFIED","object":{NODE}}}"#),
            format!(r#"{{"object":{NODE},"type":"DELETED"}}"#),
            format!(r#"{{"type":"BOOKMARK","object":{NODE}}}"#),
            format!(r#"{{"type":"ERROR","object":{gone}}}"#),
            gone.to_owned(),
            format!(r#"{{"type":"ADDED","object":{}"#, &NODE[..40]),
            r#"{"type":"ADD"#.to_owned(),
            String::new(),
            format!(r#"{{"type":"RENAMED","object":{NODE}}}"#),
            r#"{"type":"ADDED","object":7}"#.to_owned(),
            r#"{"type":"ADDED"}"#.to_owned(),
            "[]".to_owned(),
            "<html>".to_owned(),
        ];
        for line in lines {
            let ours = describe(parse_event(&line));
            assert_eq!(ours, describe(read_by_kube(&line)), "{line}");
        }
    }

    #[test]
    fn every_cut_of_a_line_is_no_event() {
        let line = format!(r#"{{"type":"ADDED","object":{NODE}}}"#);
        for length in 0..line.len() {
            assert_eq!(describe(parse_event(&line[..length])), "no event");
        }
    }

    #[test]
    fn an_answer_that_ends_early_is_no_failure() {
        let early = || io::Error::new(ErrorKind::UnexpectedEof, "no last chunk");
        let wrapped = io::Error::other(io::Error::other(early()));
        for error in [early(), wrapped, ErrorKind::TimedOut.into()] {
            assert!(read_line::<Node>(Err(error)).is_none());
        }
        let reset = read_line::<Node>(Err(ErrorKind::ConnectionReset.into()));
        assert!(matches!(reset, Some(Err(kube::Error::ReadEvents(_)))));
    }
}
