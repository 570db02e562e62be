//! One server, and its RebootPolicies as a coordinator watches them.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::time::Duration;

use dogwatch_api::reboot_policy::{CRD_NAME, RebootPolicy, RebootPolicySpec, policy_crd};
use dogwatch_core::policy::{ClusterPolicies, Policy};
use dogwatch_k8s::policy::{
    PolicyRecheckIntervals, PolicyWatchView, list_policies, watch_policies_with_intervals,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::{PATIENCE, objects};

/// Short, because a real server has a real clock.
const CADENCE: PolicyRecheckIntervals = PolicyRecheckIntervals {
    not_installed: Duration::from_millis(300),
    not_allowed: Duration::from_millis(300),
};

pub struct World {
    pub client: Client,
}

impl World {
    /// A server without the kind.
    pub async fn without_the_kind(client: Client) -> Self {
        let world = Self { client };
        world.take_the_kind_out().await;
        world
    }

    pub async fn install_the_kind(&self) {
        objects::install(&self.client, [policy_crd()]).await;
        objects::until_served(&self.objects()).await;
    }

    pub async fn take_the_kind_out(&self) {
        objects::take_out(&self.client, CRD_NAME).await;
        objects::until_unknown(&self.objects()).await;
    }

    pub fn objects(&self) -> Api<RebootPolicy> {
        Api::all(self.client.clone())
    }

    pub async fn create(&self, name: &str, spec: &Value) {
        let spec: RebootPolicySpec = serde_json::from_value(spec.clone()).unwrap();
        let policy = RebootPolicy::new(name, spec);
        self.objects()
            .create(&PostParams::default(), &policy)
            .await
            .unwrap();
    }

    pub async fn change(&self, name: &str, change: &Value) {
        objects::change(&self.objects(), name, json!({ "spec": change })).await;
    }

    pub async fn write_status(&self, name: &str, status: &Value) {
        objects::change_status(&self.objects(), name, status.clone()).await;
    }

    pub async fn delete(&self, name: &str) {
        self.objects()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub async fn read(&self) -> ClusterPolicies {
        list_policies(&self.client).await.unwrap()
    }

    pub fn sight(&self) -> Sight {
        sight_of(self.client.clone())
    }
}

/// The policy watch of one coordinator.
pub struct Sight(BoxStream<'static, PolicyWatchView>);

pub fn sight_of(client: Client) -> Sight {
    Sight(watch_policies_with_intervals(client, CADENCE, || 0.5).boxed())
}

impl Sight {
    pub async fn next(&mut self) -> PolicyWatchView {
        timeout(PATIENCE, self.0.next()).await.unwrap().unwrap()
    }

    pub async fn until(&mut self, is_so: impl Fn(&PolicyWatchView) -> bool) -> PolicyWatchView {
        let deadline = Instant::now() + PATIENCE;
        let mut last = None;
        while let Ok(Some(seen)) = tokio::time::timeout_at(deadline, self.0.next()).await {
            if is_so(&seen) {
                return seen;
            }
            last = Some(seen);
        }
        panic!("not seen in time; last: {last:?}");
    }
}

pub fn names(policies: &ClusterPolicies) -> Vec<&str> {
    policies
        .known_policies()
        .iter()
        .map(|policy| policy.name.as_str())
        .collect()
}

pub fn is_known(seen: &PolicyWatchView, expected: &[&str]) -> bool {
    matches!(seen.policies, ClusterPolicies::Known(_)) && names(&seen.policies) == expected
}

pub fn only(policies: &ClusterPolicies) -> &Policy {
    let [policy] = policies.known_policies() else {
        panic!("{policies:?}");
    };
    policy
}
