//! Remarks for the person, printed beside the manifests.

use super::ManifestsArgs;
use super::parts::{ManifestPart, ManifestProgram};
use super::plan::{InstalledNamespace, requested_image};

impl InstalledNamespace<'_> {
    pub(super) fn describe_kept(
        &self,
        args: &ManifestsArgs,
        parts: &[ManifestPart],
    ) -> Vec<String> {
        let programs = [
            ManifestProgram::Coordinator,
            ManifestProgram::Controller,
            ManifestProgram::Lock,
            ManifestProgram::Web,
        ]
        .into_iter();
        let printed =
            programs.filter(|it| parts.iter().any(|part| part.image_program() == Some(*it)));
        let kept = printed.filter_map(|program| {
            let kept = self.find_container(program)?;
            let (workload, namespace) = (program.workload_name(), self.namespace);
            let image = match requested_image(program, args) {
                Some(image) => format!("runs {image} instead of {}", kept.image),
                None => format!("keeps {}", kept.image),
            };
            let flags = kept.args.join(" ");
            Some(format!(
                "{workload} is installed in namespace {namespace}: {image}, with {flags}"
            ))
        });
        kept.collect()
    }

    pub(super) fn policy_notes(
        &self,
        args: &ManifestsArgs,
        parts: &[ManifestPart],
        remediates: bool,
        has_policies: bool,
    ) -> Vec<String> {
        if has_policies {
            return self.new_policy_notes(args, parts);
        }
        if !args.only.is_empty() {
            return Vec::new();
        }
        vec![
            if remediates {
                GUARD_POLICIES_ONLY_NOTE
            } else {
                WITHOUT_POLICIES_NOTE
            }
            .to_owned(),
        ]
    }

    /// Notes that the policies are new to this installation, or that nobody has checked the
    /// Kubernetes version they need.
    fn new_policy_notes(&self, args: &ManifestsArgs, parts: &[ManifestPart]) -> Vec<String> {
        match self.cluster {
            None => vec!["the admission policies need Kubernetes 1.32 or later; for an older version add --without-policies".into()],
            Some(installed) => {
                let is_update = parts.contains(&ManifestPart::Coordinator)
                    && self.find_container(ManifestProgram::Coordinator).is_some()
                    && args.with_policies.is_none();
                let are_new = is_update && installed.bindings.is_empty();
                let text = "adds the admission policies, which are not installed yet; --without-policies leaves them out";
                are_new.then(|| text.to_owned()).into_iter().collect()
            }
        }
    }
}

pub(super) const WITHOUT_POLICIES_NOTE: &str = "\
without the admission policies, a coordinator's token (root on any node can read it) can cordon, label and drain
  every node and take every lock, and everybody who may annotate a Node can make it reboot (docs/security.md)";

/// The same note for an installation with remediation, which keeps the guarding policies.
pub(super) const GUARD_POLICIES_ONLY_NOTE: &str = "\
without the admission policies, a coordinator's token (root on any node can read it) can cordon, label and drain
  every node and take every lock (docs/security.md). The policies of remediation are printed anyway: they limit who may confirm
  that a host is off, who may request a remediation, and which BMC a host has";
