//! Reads from the API server who the caller is and what the caller may do.

use dogwatch_core::admission::{
    LockNamespace, describe_unknown_account, list_unenforced_policies, protects_own_pods,
};
use dogwatch_core::power::HostName;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::FleetClient;
use crate::Error;
use crate::admission;
use crate::error::with_timeout;

/// What the admission policies do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdmissionFindings {
    /// Why they do not restrict Dogwatch's accounts, one sentence per gap. Empty if they do.
    pub gaps: Vec<String>,
    /// The namespace whose pods no coordinator may evict: Dogwatch's own.
    pub protected_namespace: Option<String>,
}

impl FleetClient {
    /// The caller's own user name, as admission and audit log spell it. `None`: the API server
    /// returns no name.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn read_caller(&self) -> Result<Option<String>, Error> {
        admission::read_own_user(&self.client).await
    }

    /// # Errors
    /// When policies, namespaces or workloads cannot be listed.
    pub async fn read_admission(&self) -> Result<AdmissionFindings, Error> {
        let Some(mut seen) = admission::list_admission_policies(&self.client).await? else {
            return Ok(AdmissionFindings::default());
        };
        let labels = self.list_namespaces().await?.labels.remove(&self.namespace);
        seen.namespace = labels.map(|labels| LockNamespace {
            name: self.namespace.clone(),
            labels,
        });
        let mut gaps = list_unenforced_policies(&seen);
        for workload in self.list_workloads().await? {
            let (home, account) = (&workload.namespace, &workload.account);
            let user = format!("system:serviceaccount:{home}:{account}");
            gaps.extend(describe_unknown_account(
                &user,
                &workload.program,
                &self.namespace,
            ));
        }
        Ok(AdmissionFindings {
            gaps,
            protected_namespace: protects_own_pods(&seen).then(|| self.namespace.clone()),
        })
    }

    /// Whether the caller may confirm that this host is off: verb `update` on
    /// `baremetalhosts/confirm-off` of `metal3.io`. Without the admission policies, nothing else
    /// checks this right.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn can_confirm_off(&self, host: &HostName) -> Result<bool, Error> {
        self.can_update(host, "confirm-off").await
    }

    /// Whether the caller may put a reboot annotation on this host: verb `update` on
    /// `baremetalhosts/reboot`.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn can_reboot_host(&self, host: &HostName) -> Result<bool, Error> {
        self.can_update(host, "reboot").await
    }

    async fn can_update(&self, host: &HostName, subresource: &str) -> Result<bool, Error> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some("metal3.io".to_owned()),
                    resource: Some("baremetalhosts".to_owned()),
                    subresource: Some(subresource.to_owned()),
                    verb: Some("update".to_owned()),
                    namespace: Some(host.namespace.clone()),
                    name: Some(host.name.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let status = with_timeout(api.create(&PostParams::default(), &review))
            .await?
            .status;
        let status = status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }
}
