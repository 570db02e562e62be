//! One server, and its RebootPolicies as a coordinator keeps them in sight.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::time::Duration;

use dogwatch_api::reboot_policy::{CRD_NAME, RebootPolicy, RebootPolicySpec, crd};
use dogwatch_core::policy::{Policies, Policy};
use dogwatch_k8s::policy::{Cadence, PoliciesSeen, policies, watch_policies_at};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::support::{PATIENCE, objects};

/// Short, for a real server has a real clock.
const CADENCE: Cadence = Cadence {
    not_installed: Duration::from_millis(300),
    not_allowed: Duration::from_millis(300),
};

/// One server.
pub struct World {
    pub client: Client,
}

impl World {
    /// One where the kind is not installed.
    pub async fn without_the_kind(client: Client) -> Self {
        let world = Self { client };
        world.take_the_kind_out().await;
        world
    }

    pub async fn install_the_kind(&self) {
        objects::install(&self.client, [crd()]).await;
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

    pub async fn read(&self) -> Policies {
        policies(&self.client).await.unwrap()
    }

    pub fn sight(&self) -> Sight {
        sight_of(self.client.clone())
    }
}

/// What one coordinator sees.
pub struct Sight(BoxStream<'static, PoliciesSeen>);

pub fn sight_of(client: Client) -> Sight {
    Sight(watch_policies_at(client, CADENCE, || 0.5).boxed())
}

impl Sight {
    pub async fn next(&mut self) -> PoliciesSeen {
        timeout(PATIENCE, self.0.next()).await.unwrap().unwrap()
    }

    pub async fn until(&mut self, is_so: impl Fn(&PoliciesSeen) -> bool) -> PoliciesSeen {
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

pub fn names(policies: &Policies) -> Vec<&str> {
    policies
        .known()
        .iter()
        .map(|policy| policy.name.as_str())
        .collect()
}

pub fn is_known(seen: &PoliciesSeen, expected: &[&str]) -> bool {
    matches!(seen.policies, Policies::Known(_)) && names(&seen.policies) == expected
}

pub fn only(policies: &Policies) -> &Policy {
    let [policy] = policies.known() else {
        panic!("{policies:?}");
    };
    policy
}
