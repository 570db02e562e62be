//! Counts the ready pods and the templates of each application, at every change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::object_views::{PodView, text_at_pointer};

/// The label by which a Deployment tells the pods of its templates apart.
const TEMPLATE_LABEL: &str = "/metadata/labels/pod-template-hash";

#[derive(Debug, Default)]
pub(super) struct PodCounts {
    /// The application of each ready pod.
    ready: BTreeMap<String, String>,
    /// The fewest ready pods of each application since its first one.
    fewest: BTreeMap<String, usize>,
    templates: BTreeMap<String, BTreeSet<String>>,
}

impl PodCounts {
    pub(super) fn record_pod(&mut self, name: &str, after: Option<&Value>) {
        let known = self.ready.remove(name);
        let view = after.map(PodView::from_object);
        if let (Some(view), Some(pod)) = (&view, after) {
            let template = text_at_pointer(pod, TEMPLATE_LABEL).to_owned();
            let templates = self.templates.entry(view.app.clone()).or_default();
            templates.insert(template);
        }
        let ready = view.filter(|view| view.ready && !view.leaving);
        if let Some(view) = &ready {
            self.ready.insert(name.to_owned(), view.app.clone());
        }
        for app in known.into_iter().chain(ready.map(|view| view.app)) {
            let count = self.ready.values().filter(|other| **other == app).count();
            let fewest = self.fewest.entry(app).or_insert(count);
            *fewest = count.min(*fewest);
        }
    }

    pub(super) fn fewest_ready(&self, app: &str) -> usize {
        self.fewest.get(app).copied().unwrap_or_default()
    }

    pub(super) fn count_templates(&self, app: &str) -> usize {
        self.templates.get(app).map_or(0, BTreeSet::len)
    }
}
