//! Everything that the API server shows during a test: the current state, and every change.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::watch;

use super::api::Api;
use super::objects::POLICIES;
use super::{PATIENCE, read};

/// The watched kinds, with the plural that the tests use.
const WATCHED: [(&str, &str); 5] = [
    ("nodes", "/api/v1/nodes"),
    (
        "leases",
        "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases",
    ),
    ("events", "/api/v1/namespaces/default/events"),
    ("pods", "/api/v1/pods"),
    ("rebootpolicies", POLICIES),
];

#[derive(Default)]
pub struct Seen {
    present: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// Every state of every object, for each kind in the order of the API server's versions.
    pub history: Vec<Change>,
}

/// One change of an object; `Seen` replays the changes in order.
pub struct Change {
    pub kind: &'static str,
    pub name: String,
    /// `None`: the object was deleted.
    pub object: Option<Value>,
}

impl Seen {
    pub fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.present
            .get(kind)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    pub fn node(&self, name: &str) -> Option<&Value> {
        self.present.get("nodes")?.get(name)
    }

    pub fn lease(&self, name: &str) -> Option<&Value> {
        self.present.get("leases")?.get(name)
    }

    pub fn pod(&self, name: &str) -> Option<&Value> {
        self.present.get("pods")?.get(name)
    }

    pub fn policy(&self, name: &str) -> Option<&Value> {
        self.present.get("rebootpolicies")?.get(name)
    }

    /// Every state of every object of these kinds, in the order in which they were written: etcd's
    /// revisions are one sequence for all kinds.
    pub fn in_order(&self, kinds: &[&str]) -> Vec<&Change> {
        let changes = self.history.iter();
        let mut changes: Vec<&Change> = changes
            .filter(|change| kinds.contains(&change.kind) && change.object.is_some())
            .collect();
        changes.sort_by_key(|change| change.object.as_ref().map(read::object_version));
        changes
    }

    /// Reason and message of each Event about this Node.
    pub fn events_of(&self, node: &str) -> Vec<(String, String)> {
        let text =
            |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        self.all("events")
            .filter(|event| event["involvedObject"]["name"] == node)
            .map(|event| (text(event, "reason"), text(event, "message")))
            .collect()
    }

    fn apply(&mut self, kind: &'static str, object: Value, deleted: bool) {
        let Some(name) = object["metadata"]["name"].as_str().map(str::to_owned) else {
            return;
        };
        let present = self.present.entry(kind).or_default();
        let object = (!deleted).then_some(object);
        match object.clone() {
            Some(object) => present.insert(name.clone(), object),
            None => present.remove(&name),
        };
        self.history.push(Change { kind, name, object });
    }
}

#[derive(Clone)]
pub struct World(Arc<watch::Sender<Seen>>);

impl World {
    /// Watches from now on, until the test's runtime ends.
    pub fn watch(api: &Api) -> Self {
        let seen = Arc::new(watch::Sender::new(Seen::default()));
        for (kind, path) in WATCHED {
            tokio::spawn(follow(api.clone(), kind, path, Arc::clone(&seen)));
        }
        Self(seen)
    }

    /// Waits until `found` returns a value, and returns it.
    pub async fn until<T>(&self, what: &str, mut found: impl FnMut(&Seen) -> Option<T>) -> T {
        let mut receiver = self.0.subscribe();
        let wait = async {
            loop {
                if let Some(answer) = found(&receiver.borrow_and_update()) {
                    return answer;
                }
                receiver
                    .changed()
                    .await
                    .expect("the sender lives as long as self");
            }
        };
        let Ok(answer) = tokio::time::timeout(PATIENCE, wait).await else {
            panic!("not seen within {PATIENCE:?}: {what}\n{}", self.dump());
        };
        answer
    }

    /// The current state, as far as the watches have delivered it.
    pub fn now<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.0.borrow())
    }

    /// For a failing test: the Nodes and Leases in short, and all Events.
    pub fn dump(&self) -> String {
        let seen = self.0.borrow();
        let nodes = seen.all("nodes").map(|node| {
            format!(
                "node {} unschedulable={} annotations={} conditions={}\n",
                node["metadata"]["name"],
                node["spec"]["unschedulable"],
                node["metadata"]["annotations"],
                node["status"]["conditions"]
            )
        });
        let leases = seen.all("leases").map(|lease| {
            let meta = &lease["metadata"];
            format!(
                "lease {} spec={} annotations={}\n",
                meta["name"], lease["spec"], meta["annotations"]
            )
        });
        let events = seen.all("events").map(|event| {
            format!(
                "event {} {} {}\n",
                event["involvedObject"]["name"], event["reason"], event["message"]
            )
        });
        nodes.chain(leases).chain(events).collect()
    }
}

async fn follow(api: Api, kind: &'static str, path: &'static str, seen: Arc<watch::Sender<Seen>>) {
    loop {
        if let Some((items, version)) = api.list(path).await {
            seen.send_modify(|seen| relisted(seen, kind, items));
            if let Some(changes) = api.watch(path, &version).await {
                let mut changes = std::pin::pin!(changes);
                while let Some(mut change) = changes.next().await {
                    let deleted = change["type"] == "DELETED";
                    seen.send_modify(|seen| seen.apply(kind, change["object"].take(), deleted));
                }
            }
        }
        // The API server is down, so it is polled.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

fn relisted(seen: &mut Seen, kind: &'static str, items: Vec<Value>) {
    let names: Vec<String> = items
        .iter()
        .filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned()))
        .collect();
    let gone: Vec<Value> = seen
        .all(kind)
        .filter(|old| !names.iter().any(|name| old["metadata"]["name"] == **name))
        .cloned()
        .collect();
    for old in gone {
        seen.apply(kind, old, true);
    }
    for item in items {
        seen.apply(kind, item, false);
    }
}
