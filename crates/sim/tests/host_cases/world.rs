//! One server, and its BareMetalHosts as the power controller sees and writes them.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_api::bare_metal_host::{CRD_NAME, host_crd};
use dogwatch_core::power::{HostName, HostOwner, HostSnapshot, OwnerRules, StatusWrite};
use dogwatch_k8s::host::{HostClient, HostObject, HostRecheckIntervals, HostWatch, HostWatchView};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::support::{PATIENCE, objects};

/// Short, because a real server has a real clock.
const CADENCE: HostRecheckIntervals = HostRecheckIntervals {
    not_installed: Duration::from_millis(300),
    look_failed: Duration::from_millis(300),
};

const RENEWED_EVERY: Duration = Duration::from_millis(300);

pub struct World {
    /// A client with all rights.
    pub people: Client,
    /// The power controller's client.
    pub controller: Client,
    pub namespace: String,
}

impl World {
    /// A new namespace, on a server that has the kind and no hosts. `controller` is a client with
    /// the controller's rights.
    pub async fn on(people: Client, controller: Client) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let world = Self {
            people,
            controller,
            namespace: format!("hosts-{number}"),
        };
        objects::make_namespace(&world.people, &world.namespace).await;
        world.install(&host_crd()).await;
        let all: Api<HostObject> = Api::all(world.people.clone());
        for host in all.list(&ListParams::default()).await.unwrap() {
            let hosts: Api<HostObject> =
                Api::namespaced(world.people.clone(), &host.namespace().unwrap());
            hosts
                .delete(&host.name_any(), &DeleteParams::default())
                .await
                .unwrap();
        }
        let leases: Api<Lease> = Api::all(world.people.clone());
        let leaders = ListParams::default().fields("metadata.name=baremetal-operator");
        for lease in leases.list(&leaders).await.unwrap() {
            let leases: Api<Lease> =
                Api::namespaced(world.people.clone(), &lease.namespace().unwrap());
            leases
                .delete(&lease.name_any(), &DeleteParams::default())
                .await
                .unwrap();
        }
        world
    }

    pub fn hosts(&self) -> HostClient {
        HostClient::new(self.controller.clone())
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.people.clone(), &self.namespace)
    }

    pub fn name(&self, host: &str) -> HostName {
        HostName::new(&self.namespace, host)
    }

    /// Installs the kind unless it exists.
    pub async fn install(&self, crd: &Value) {
        objects::install(&self.people, [crd.clone()]).await;
        let hosts = self.api::<HostObject>();
        objects::until_served(&hosts).await;
    }

    pub async fn take_the_kind_out(&self) {
        objects::take_out(&self.people, CRD_NAME).await;
        let hosts = self.api::<HostObject>();
        objects::until_unknown(&hosts).await;
    }

    pub async fn host(&self, name: &str, address: &str) -> HostSnapshot {
        self.host_of(name, &json!({ "online": true, "bmc": bmc(address) }))
            .await
    }

    pub async fn host_of(&self, name: &str, spec: &Value) -> HostSnapshot {
        let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name }, "spec": spec });
        // As clients send it: with kind and version.
        let request = http::Request::post(self.path("")).header("content-type", "application/json");
        let request = request.body(host.to_string().into_bytes()).unwrap();
        let _: Value = self.people.request(request).await.unwrap();
        self.hosts()
            .read_host(&self.name(name))
            .await
            .unwrap()
            .unwrap()
    }

    fn path(&self, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        let namespace = &self.namespace;
        format!("/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts{slash}{name}")
    }

    pub async fn change(&self, name: &str, change: &Value) {
        objects::change(&self.api::<HostObject>(), name, change.clone()).await;
    }

    /// Writes the status as metal3's controller would.
    pub async fn change_status(&self, name: &str, change: &Value) {
        objects::change_status(&self.api::<HostObject>(), name, change.clone()).await;
    }

    pub async fn object(&self, name: &str) -> HostObject {
        self.api().get(name).await.unwrap()
    }

    pub async fn delete(&self, name: &str) {
        let hosts = self.api::<HostObject>();
        hosts.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// `data` is plain text.
    pub async fn secret(&self, name: &str, data: &Value) {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name }, "data": data });
        let params = PatchParams::apply("people").force();
        let secrets = self.api::<Secret>();
        secrets
            .patch(name, &params, &Patch::Apply(&secret))
            .await
            .unwrap();
    }

    /// metal3's leader renews its Lease.
    pub async fn operator_lease(&self, holder: &str, renewed: &str) {
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "baremetal-operator" },
            "spec": { "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 1 } });
        let params = PatchParams::apply("operator").force();
        let leases = self.api::<Lease>();
        leases
            .patch("baremetal-operator", &params, &Patch::Apply(&lease))
            .await
            .unwrap();
    }

    pub async fn change_operator_lease(&self, change: &Value) {
        objects::change(&self.api::<Lease>(), "baremetal-operator", change.clone()).await;
    }

    /// Renews metal3's Lease until `what` has finished: a controller may have listed the Lease at
    /// any moment, and only a renewal after that proves that the leader is alive.
    pub async fn while_renewed<T>(&self, holder: &str, what: impl Future<Output = T>) -> T {
        let ended = Notify::new();
        let renewing = async {
            let first: Timestamp = "2026-01-01T00:00:01Z".parse().unwrap();
            for second in 0.. {
                let renewed = first + SignedDuration::from_secs(second);
                self.operator_lease(holder, &format!("{renewed:.6}")).await;
                if timeout(RENEWED_EVERY, ended.notified()).await.is_ok() {
                    break;
                }
            }
        };
        let what = async {
            let came = what.await;
            ended.notify_one();
            came
        };
        tokio::join!(what, renewing).0
    }

    pub async fn events(&self) -> Vec<Event> {
        let events = self.api::<Event>();
        events.list(&ListParams::default()).await.unwrap().items
    }

    pub fn sight(&self) -> Sight {
        self.sight_with(&[])
    }

    /// A host watch that treats these namespaces as its own.
    pub fn sight_with(&self, ours: &[&str]) -> Sight {
        let ours = ours.iter().map(|name| (*name).to_owned()).collect();
        self.sight_by(OwnerRules {
            host_namespaces: ours,
            metal3_namespaces: [self.namespace.clone()].into(),
        })
    }

    /// A host watch with these owner rules.
    pub fn sight_by(&self, rules: OwnerRules) -> Sight {
        Sight(HostWatch::with_intervals(
            self.controller.clone(),
            rules,
            CADENCE,
            || 0.5,
        ))
    }
}

pub fn bmc(address: &str) -> Value {
    json!({ "address": address, "credentialsName": "bmc" })
}

pub fn writing(
    host: &HostSnapshot,
    change: impl FnOnce(&mut dogwatch_core::power::HostStatus),
) -> StatusWrite {
    let mut status = host.status.clone();
    change(&mut status);
    StatusWrite {
        status,
        why: "test",
    }
}

/// The host watch of one controller.
pub struct Sight(HostWatch);

impl Sight {
    pub fn view(&self) -> &HostWatchView {
        self.0.current_view()
    }

    pub async fn next(&mut self) -> BTreeSet<HostName> {
        tokio::time::timeout(PATIENCE, self.0.wait_for_changes())
            .await
            .unwrap()
    }

    /// The next change, if one comes in time.
    pub async fn within(&mut self, long: Duration) -> BTreeSet<HostName> {
        let changed = tokio::time::timeout(long, self.0.wait_for_changes()).await;
        changed.unwrap_or_default()
    }

    /// Calls `look` on every change for this time.
    pub async fn during(&mut self, long: Duration, look: impl Fn(&HostWatchView)) {
        let end = Instant::now() + long;
        while timeout_at(end, self.0.wait_for_changes()).await.is_ok() {
            look(self.0.current_view());
        }
        look(self.0.current_view());
    }

    /// Waits until these hosts and their owners are known: hosts and Leases are listed separately,
    /// and the later list changes all hosts.
    pub async fn until_known(&mut self, names: &[&HostName]) {
        let is_known = |view: &HostWatchView, name: &HostName| {
            let host = view.hosts.get(name);
            host.is_some_and(|host| view.owner_of(host) != HostOwner::NotYetKnown)
        };
        self.until(|view| names.iter().all(|name| is_known(view, name)))
            .await;
    }

    /// Waits until `is_so`, and returns the names of all hosts that changed.
    pub async fn until(&mut self, is_so: impl Fn(&HostWatchView) -> bool) -> BTreeSet<HostName> {
        let deadline = Instant::now() + PATIENCE;
        let mut names = BTreeSet::new();
        while !is_so(self.0.current_view()) {
            let Ok(changed) = timeout_at(deadline, self.0.wait_for_changes()).await else {
                panic!("not seen in time: {:?}", self.0.current_view());
            };
            names.extend(changed);
        }
        names
    }
}
