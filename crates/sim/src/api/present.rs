//! The forms of an answer: whole objects, metadata only, tables.

use std::cell::Cell;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::columns;
use super::events;
use super::kinds::Resource;
use super::store::Stored;
use super::table;

/// What rows of a table carry besides their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    Nothing,
    /// The object's metadata, the default.
    Metadata,
    /// The object.
    Object,
}

/// The form that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Object,
    Metadata,
    Table(Include),
}

impl View {
    /// Reads `Accept`: the first of its forms that we know. None when none is JSON.
    pub(crate) fn negotiate(accept: &str, include: &str) -> Option<Self> {
        if accept.trim().is_empty() {
            return Some(Self::Object);
        }
        accept.split(',').find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            if !matches!(
                parts.next(),
                Some("application/json" | "*/*" | "application/*")
            ) {
                return None;
            }
            let parameters: Vec<&str> = parts.collect();
            let form = parameters
                .iter()
                .find_map(|parameter| parameter.strip_prefix("as="));
            let version = parameters
                .iter()
                .find_map(|parameter| parameter.strip_prefix("v="));
            match form {
                None => Some(Self::Object),
                Some(_) if version != Some("v1") => None,
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Self::Metadata),
                Some("Table") => Some(Self::Table(match include {
                    "None" => Include::Nothing,
                    "Object" => Include::Object,
                    _ => Include::Metadata,
                })),
                Some(_) => None,
            }
        })
    }
}

/// Turns what is stored into what was asked for.
#[derive(Debug)]
pub(crate) struct Presenter {
    pub(crate) resource: Arc<Resource>,
    pub(crate) view: View,
    /// Ages in tables count from here.
    pub(crate) now: Timestamp,
    /// A watched table shows its columns once.
    headed: Cell<bool>,
}

/// `{"kind":…,"apiVersion":…` and then the fields of `object`, which has neither.
pub(crate) fn document(kind: &str, api_version: &str, object: &Value) -> Bytes {
    spliced(kind, api_version, object.to_string().as_bytes())
}

fn spliced(kind: &str, api_version: &str, fields: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(fields.len() + kind.len() + api_version.len() + 32);
    out.put_slice(b"{\"kind\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"apiVersion\":\"");
    out.put_slice(api_version.as_bytes());
    out.put_slice(b"\"");
    if fields.len() > 2 {
        out.put_slice(b",");
    }
    out.put_slice(&fields[1..]);
    out.freeze()
}

fn partial(object: &Value) -> Bytes {
    document(
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        &json!({ "metadata": object["metadata"] }),
    )
}

impl Presenter {
    pub(crate) fn new(resource: Arc<Resource>, view: View, now: Timestamp) -> Self {
        Self {
            resource,
            view,
            now,
            headed: Cell::new(false),
        }
    }

    /// Whether whole objects are asked for, whose bytes can be shared.
    pub(crate) fn shows_objects(&self) -> bool {
        self.view == View::Object
    }

    fn converts(&self) -> bool {
        self.resource.is("events.k8s.io", "events")
    }

    /// The object, whole.
    fn whole(&self, stored: &Stored) -> Bytes {
        let (kind, version) = (&self.resource.kind, self.resource.api_version());
        if self.converts() {
            return document(kind, &version, &events::outward(&stored.value));
        }
        spliced(kind, &version, &stored.json())
    }

    /// One object.
    pub(crate) fn one(&self, stored: &Stored) -> Bytes {
        match self.view {
            View::Object => self.whole(stored),
            View::Metadata => partial(&stored.value),
            View::Table(include) => {
                let meta =
                    json!({ "resourceVersion": stored.value["metadata"]["resourceVersion"] });
                self.table(&[stored], include, &meta, true)
            }
        }
    }

    /// One object in a watch.
    pub(crate) fn watched(&self, stored: &Stored) -> Bytes {
        match self.view {
            View::Object | View::Metadata => self.one(stored),
            View::Table(include) => {
                let meta =
                    json!({ "resourceVersion": stored.value["metadata"]["resourceVersion"] });
                self.table(&[stored], include, &meta, !self.headed.replace(true))
            }
        }
    }

    fn table(&self, rows: &[&Stored], include: Include, meta: &Value, headed: bool) -> Bytes {
        let rows: Vec<Value> = rows
            .iter()
            .map(|stored| {
                let mut row =
                    json!({ "cells": table::cells(&self.resource, &stored.value, self.now) });
                row["object"] = match include {
                    Include::Nothing => Value::Null,
                    Include::Metadata => json!({
                        "kind": "PartialObjectMetadata",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": stored.value["metadata"],
                    }),
                    Include::Object => {
                        let mut object = stored.value.clone();
                        object["kind"] = self.resource.kind.as_str().into();
                        object["apiVersion"] = self.resource.api_version().into();
                        object
                    }
                };
                row
            })
            .collect();
        let columns = if headed {
            columns::columns(&self.resource)
        } else {
            Value::Null
        };
        let body = json!({ "metadata": meta, "columnDefinitions": columns, "rows": rows });
        document("Table", "meta.k8s.io/v1", &body)
    }

    /// Many objects. `meta` is the list's metadata.
    pub(crate) fn many(&self, objects: &[&Stored], meta: &Value) -> Bytes {
        let (kind, version) = match self.view {
            View::Table(include) => return self.table(objects, include, meta, true),
            View::Metadata => (
                "PartialObjectMetadataList".to_owned(),
                "meta.k8s.io/v1".to_owned(),
            ),
            View::Object => (self.resource.list_kind.clone(), self.resource.api_version()),
        };
        let head = format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{meta},\"items\":["
        );
        let mut out = BytesMut::with_capacity(head.len() + objects.len() * 1024);
        out.put_slice(head.as_bytes());
        for (index, stored) in objects.iter().enumerate() {
            if index > 0 {
                out.put_slice(b",");
            }
            match self.view {
                View::Metadata => out.put_slice(&partial(&stored.value)),
                // Items of built-in lists say neither kind nor version, those of custom ones do.
                View::Object if self.converts() => {
                    out.put_slice(events::outward(&stored.value).to_string().as_bytes());
                }
                View::Object if self.resource.custom.is_none() => out.put_slice(&stored.json()),
                View::Object | View::Table(_) => out.put_slice(&self.whole(stored)),
            }
        }
        out.put_slice(b"]}");
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_known_is_served() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(
            View::negotiate(kubectl, "None"),
            Some(View::Table(Include::Nothing))
        );
        assert_eq!(
            View::negotiate("application/vnd.kubernetes.protobuf,application/json", ""),
            Some(View::Object)
        );
        assert_eq!(
            View::negotiate("application/vnd.kubernetes.protobuf", ""),
            None
        );
    }
}
