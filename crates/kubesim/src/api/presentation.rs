//! The forms of an answer: whole objects, metadata only, tables.

use std::cell::Cell;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::columns;
use super::events;
use super::kinds::ServedResource;
use super::store::StoredObject;
use super::table;

/// What table rows carry besides their cells (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    Nothing,
    /// The object's metadata, the default.
    Metadata,
    /// The whole object.
    Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseView {
    Object,
    Metadata,
    Table(IncludeObject),
}

impl ResponseView {
    /// Parses `Accept`: the first form in it that we serve. None when none is JSON.
    pub(crate) fn negotiate_view(accept: &str, include: &str) -> Option<Self> {
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
                    "None" => IncludeObject::Nothing,
                    "Object" => IncludeObject::Object,
                    _ => IncludeObject::Metadata,
                })),
                Some(_) => None,
            }
        })
    }
}

/// Turns stored objects into the requested form.
#[derive(Debug)]
pub(crate) struct ObjectPresenter {
    pub(crate) resource: Arc<ServedResource>,
    pub(crate) view: ResponseView,
    /// Ages in tables are relative to this time.
    pub(crate) now: Timestamp,
    /// Whether the columns were sent; a watched table sends them once.
    headed: Cell<bool>,
}

/// `{"kind":…,"apiVersion":…` followed by the fields of `object`, which has neither.
pub(crate) fn render_document(kind: &str, api_version: &str, object: &Value) -> Bytes {
    render_document_bytes(kind, api_version, object.to_string().as_bytes())
}

fn render_document_bytes(kind: &str, api_version: &str, fields: &[u8]) -> Bytes {
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

fn render_partial_metadata(object: &Value) -> Bytes {
    render_document(
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        &json!({ "metadata": object["metadata"] }),
    )
}

impl ObjectPresenter {
    pub(crate) fn new(resource: Arc<ServedResource>, view: ResponseView, now: Timestamp) -> Self {
        Self {
            resource,
            view,
            now,
            headed: Cell::new(false),
        }
    }

    /// Whether the answer is whole objects, whose bytes watchers can share.
    pub(crate) fn shows_objects(&self) -> bool {
        self.view == ResponseView::Object
    }

    fn converts_events(&self) -> bool {
        self.resource.is_built_in_kind("events.k8s.io", "events")
    }

    fn render_whole_object(&self, stored: &StoredObject) -> Bytes {
        let (kind, version) = (&self.resource.kind, self.resource.api_version());
        if self.converts_events() {
            return render_document(kind, &version, &events::to_events_group(&stored.value));
        }
        render_document_bytes(kind, &version, &stored.to_json())
    }

    pub(crate) fn render_object(&self, stored: &StoredObject) -> Bytes {
        match self.view {
            ResponseView::Object => self.render_whole_object(stored),
            ResponseView::Metadata => render_partial_metadata(&stored.value),
            ResponseView::Table(include) => {
                let meta =
                    json!({ "resourceVersion": stored.value["metadata"]["resourceVersion"] });
                self.render_table(&[stored], include, &meta, true)
            }
        }
    }

    pub(crate) fn render_watched_object(&self, stored: &StoredObject) -> Bytes {
        match self.view {
            ResponseView::Object | ResponseView::Metadata => self.render_object(stored),
            ResponseView::Table(include) => {
                let meta =
                    json!({ "resourceVersion": stored.value["metadata"]["resourceVersion"] });
                self.render_table(&[stored], include, &meta, !self.headed.replace(true))
            }
        }
    }

    fn render_table(
        &self,
        rows: &[&StoredObject],
        include: IncludeObject,
        meta: &Value,
        headed: bool,
    ) -> Bytes {
        let rows: Vec<Value> = rows
            .iter()
            .map(|stored| {
                let mut row =
                    json!({ "cells": table::row_cells(&self.resource, &stored.value, self.now) });
                row["object"] = match include {
                    IncludeObject::Nothing => Value::Null,
                    IncludeObject::Metadata => json!({
                        "kind": "PartialObjectMetadata",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": stored.value["metadata"],
                    }),
                    IncludeObject::Object => {
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
            columns::column_definitions(&self.resource)
        } else {
            Value::Null
        };
        let body = json!({ "metadata": meta, "columnDefinitions": columns, "rows": rows });
        render_document("Table", "meta.k8s.io/v1", &body)
    }

    /// Renders a list. `meta` is the list's metadata.
    pub(crate) fn render_list(&self, objects: &[&StoredObject], meta: &Value) -> Bytes {
        let (kind, version) = match self.view {
            ResponseView::Table(include) => return self.render_table(objects, include, meta, true),
            ResponseView::Metadata => (
                "PartialObjectMetadataList".to_owned(),
                "meta.k8s.io/v1".to_owned(),
            ),
            ResponseView::Object => (self.resource.list_kind.clone(), self.resource.api_version()),
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
                ResponseView::Metadata => out.put_slice(&render_partial_metadata(&stored.value)),
                // Items of built-in lists carry neither kind nor version; items of custom lists
                // carry both.
                ResponseView::Object if self.converts_events() => {
                    out.put_slice(
                        events::to_events_group(&stored.value)
                            .to_string()
                            .as_bytes(),
                    );
                }
                ResponseView::Object if self.resource.custom.is_none() => {
                    out.put_slice(&stored.to_json());
                }
                ResponseView::Object | ResponseView::Table(_) => {
                    out.put_slice(&self.render_whole_object(stored));
                }
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
            ResponseView::negotiate_view(kubectl, "None"),
            Some(ResponseView::Table(IncludeObject::Nothing))
        );
        assert_eq!(
            ResponseView::negotiate_view(
                "application/vnd.kubernetes.protobuf,application/json",
                ""
            ),
            Some(ResponseView::Object)
        );
        assert_eq!(
            ResponseView::negotiate_view("application/vnd.kubernetes.protobuf", ""),
            None
        );
    }
}
