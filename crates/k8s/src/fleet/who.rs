//! Who the caller is, and what they may do: the API server's answers about whoever asks.

use dogwatch_core::admission::{not_in_force, unknown_account};
use dogwatch_core::power::HostName;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::FleetClient;
use crate::Error;
use crate::admission;
use crate::error::ask;

impl FleetClient {
    /// The caller's own user name, as admission and audit know it; `None`: the API server names nobody.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn user(&self) -> Result<Option<String>, Error> {
        admission::user(&self.client).await
    }

    /// What keeps the admission policies from being in force for Dogwatch's accounts, each in a sentence.
    ///
    /// # Errors
    /// When policies or workloads cannot be listed.
    pub async fn admission_gaps(&self) -> Result<Vec<String>, Error> {
        let Some(seen) = admission::policies(&self.client).await? else {
            return Ok(Vec::new());
        };
        let mut gaps = not_in_force(&seen);
        for workload in self.workloads().await? {
            let (home, account) = (&workload.namespace, &workload.account);
            let user = format!("system:serviceaccount:{home}:{account}");
            gaps.extend(unknown_account(&user, &workload.program, &self.namespace));
        }
        Ok(gaps)
    }

    /// Whether the caller may say that this host is off: verb `update` on `baremetalhosts/confirm-off` of
    /// `metal3.io`. Where the admission policies are not installed nobody else asks for this right.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn may_confirm_off(&self, host: &HostName) -> Result<bool, Error> {
        self.may_update(host, "confirm-off").await
    }

    /// Whether the caller may put a reboot annotation on this host: verb `update` on `baremetalhosts/reboot`.
    ///
    /// # Errors
    /// A call that failed.
    pub async fn may_reboot_host(&self, host: &HostName) -> Result<bool, Error> {
        self.may_update(host, "reboot").await
    }

    async fn may_update(&self, host: &HostName, subresource: &str) -> Result<bool, Error> {
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
        let status = ask(api.create(&PostParams::default(), &review))
            .await?
            .status;
        let status = status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }
}
