//! Decides what to print from the flags and from what is installed, so that an update changes
//! nothing that nobody asked for.

use dogwatch_k8s::fleet::{ClusterInstallation, DogwatchWorkload, WorkloadContainer};

use super::parts::{BASE_PARTS, GUARD_POLICY_FILES, ManifestPart, ManifestProgram};
use super::workload::{WorkloadSettings, has_setting, runs_remediation};
use super::{ManifestsArgs, UnauthorizedRequests};
use crate::exit::{CliExitCode, CommandFailure};

/// From this version on, a token reliably names the node on which its pod runs.
const MIN_VERSION_ALL_POLICIES: (u32, u32) = (1, 32);
/// From this version on, the API server has admission policies in the version of the manifests.
const MIN_VERSION_ANY_POLICY: (u32, u32) = (1, 30);

/// The binding whose action the overlay `deploy/policies-deny` changes.
const REQUESTS_BINDING: &str = "node-reboots.dogwatch.dev";

#[derive(Debug)]
pub(super) struct ManifestPlan {
    /// The documents, in the order in which they are applied.
    pub(super) files: Vec<&'static str>,
    /// Unauthorized reboot requests are denied, not only warned about.
    pub(super) denies: bool,
    pub(super) coordinator: WorkloadSettings,
    pub(super) controller: WorkloadSettings,
    pub(super) lock: WorkloadSettings,
    pub(super) web: WorkloadSettings,
    /// Remarks for the person, printed beside the manifests.
    pub(super) notes: Vec<String>,
}

/// `cluster` is what is installed, or `None` if no cluster was read.
pub(super) fn plan_manifests(
    namespace: &str,
    args: &ManifestsArgs,
    cluster: Option<&ClusterInstallation>,
) -> Result<ManifestPlan, CommandFailure> {
    if let Some(installed) = cluster {
        refuse_other_namespace(namespace, installed)?;
        refuse_renamed_workload(namespace, installed)?;
    }
    let here = InstalledNamespace { namespace, cluster };
    let remediates = args.with_remediation || here.controller_remediates();
    let parts = here.select_parts(args, remediates);
    here.refuse_overlays(&parts)?;
    let has_policies = check_policies_supported(&parts, cluster)?;
    let mut notes = here.describe_kept(args, &parts);
    notes.extend(here.policy_notes(args, &parts, remediates, has_policies));
    Ok(ManifestPlan {
        files: collect_files(&parts),
        denies: here.denies_requests(args),
        coordinator: here.choose_workload(ManifestProgram::Coordinator, args, &parts, false)?,
        controller: here.choose_workload(ManifestProgram::Controller, args, &parts, remediates)?,
        lock: here.choose_workload(ManifestProgram::Lock, args, &parts, false)?,
        web: here.choose_workload(ManifestProgram::Web, args, &parts, false)?,
        notes,
    })
}

fn collect_files(parts: &[ManifestPart]) -> Vec<&'static str> {
    let all = parts.iter().flat_map(|part| part.manifest_files());
    let mut files: Vec<&'static str> = all.copied().collect();
    if needs_guards(parts) {
        files.extend(GUARD_POLICY_FILES);
    }
    files
}

/// Whether remediation is printed without the policies, which contain those that guard it.
fn needs_guards(parts: &[ManifestPart]) -> bool {
    parts.contains(&ManifestPart::Remediation) && !parts.contains(&ManifestPart::Policies)
}

/// Two installations in one cluster would share the cluster-wide roles and policies.
fn refuse_other_namespace(
    namespace: &str,
    installed: &ClusterInstallation,
) -> Result<(), CommandFailure> {
    let mut workloads = installed.workloads.iter();
    if workloads.clone().any(|it| it.namespace == namespace) {
        return Ok(());
    }
    let Some(there) = workloads.next() else {
        return Ok(());
    };
    let text = format!(
        "Dogwatch is installed in namespace {}, not in {namespace}; two installations in one cluster disturb each other",
        there.namespace
    );
    let next = format!("dogwatch manifests --namespace {}", there.namespace);
    Err(CommandFailure::new(CliExitCode::Failed, text).with_next_step(next))
}

/// A second DaemonSet under another name would run a second coordinator on each node.
fn refuse_renamed_workload(
    namespace: &str,
    installed: &ClusterInstallation,
) -> Result<(), CommandFailure> {
    let here = installed
        .workloads
        .iter()
        .filter(|it| it.namespace == namespace);
    let programs = [ManifestProgram::Coordinator, ManifestProgram::Controller]
        .map(ManifestProgram::workload_name);
    let mut renamed =
        here.filter(|it| programs.contains(&it.program.as_str()) && it.name != it.program);
    let Some(workload) = renamed.next() else {
        return Ok(());
    };
    let text = format!(
        "{} is installed as {} in namespace {namespace}, and these manifests would install a second one",
        workload.program, workload.name
    );
    Err(CommandFailure::new(CliExitCode::Failed, text)
        .with_next_step("update it with the kustomize overlay that installed it"))
}

/// Refuses policies that the API server does not support, or with which it would refuse every
/// coordinator. Returns whether all policies are printed.
fn check_policies_supported(
    parts: &[ManifestPart],
    cluster: Option<&ClusterInstallation>,
) -> Result<bool, CommandFailure> {
    let has_all = parts.contains(&ManifestPart::Policies);
    let has_guards = needs_guards(parts);
    let Some((major, minor)) = cluster.and_then(|installed| installed.kubernetes) else {
        return Ok(has_all);
    };
    let version = format!("the API server is Kubernetes {major}.{minor}");
    if has_all && (major, minor) < MIN_VERSION_ALL_POLICIES {
        let text = format!(
            "{version}, and the admission policies need 1.32 or later: before 1.32 a token does not contain the node's name, so the policies would refuse every coordinator"
        );
        let next = "update Kubernetes, or leave them out with --without-policies";
        return Err(CommandFailure::new(CliExitCode::Failed, text).with_next_step(next));
    }
    if has_guards && (major, minor) < MIN_VERSION_ANY_POLICY {
        let text = format!(
            "{version}, and remediation needs 1.30 or later, for the admission policies that limit who may confirm that a host is off"
        );
        return Err(
            CommandFailure::new(CliExitCode::Failed, text).with_next_step("update Kubernetes")
        );
    }
    Ok(has_all)
}

pub(super) fn requested_image(program: ManifestProgram, args: &ManifestsArgs) -> Option<&String> {
    match program {
        ManifestProgram::Coordinator => args.image.as_ref(),
        ManifestProgram::Controller | ManifestProgram::Lock | ManifestProgram::Web => {
            args.controller_image.as_ref()
        }
    }
}

/// Describes what an overlay has changed, judging by the workload.
fn describe_overlay(workload: &DogwatchWorkload, part: ManifestPart) -> Option<String> {
    let coordinator = part == ManifestPart::Coordinator;
    let container = workload.containers.first()?;
    if coordinator && has_setting(container, "--identity", "DOGWATCH_IDENTITY", "kubelet") {
        return Some("uses the kubelet's identity".to_owned());
    }
    if coordinator && workload.unprivileged {
        return Some("runs without privileges".to_owned());
    }
    if !workload.node_requirements.is_empty() {
        let required = workload.node_requirements.join(" and ");
        return Some(format!("runs only on nodes with {required}"));
    }
    if !workload.pull_secrets.is_empty() {
        let secrets = workload.pull_secrets.join(", ");
        return Some(format!("pulls its image with Secret {secrets}"));
    }
    let shipped = |volume: &&String| {
        let line = format!("- name: {volume}\n");
        part.manifest_files()
            .iter()
            .any(|file| file.contains(&line))
    };
    let volume = workload.volumes.iter().find(|volume| !shipped(volume))?;
    Some(format!("has volume {volume}"))
}

/// The installation in the namespace; `cluster` is `None` if no cluster was read.
#[derive(Clone, Copy)]
pub(super) struct InstalledNamespace<'a> {
    pub(super) namespace: &'a str,
    pub(super) cluster: Option<&'a ClusterInstallation>,
}

impl InstalledNamespace<'_> {
    /// Printing the base would undo what an overlay has added or removed.
    fn refuse_overlays(&self, parts: &[ManifestPart]) -> Result<(), CommandFailure> {
        for part in parts {
            let Some(workload) = part
                .image_program()
                .and_then(|program| self.find_workload(program))
            else {
                continue;
            };
            let Some(overlay) = describe_overlay(workload, *part) else {
                continue;
            };
            let text = format!(
                "{} in namespace {} {overlay}: an overlay has changed it, and these manifests would undo that change",
                workload.name, self.namespace
            );
            let next = "update it with that overlay, or print other parts with --only";
            return Err(CommandFailure::new(CliExitCode::Failed, text).with_next_step(next));
        }
        Ok(())
    }

    fn find_workload(&self, program: ManifestProgram) -> Option<&DogwatchWorkload> {
        let here = |it: &&DogwatchWorkload| {
            it.namespace == self.namespace && it.name == program.workload_name()
        };
        self.cluster?.workloads.iter().find(here)
    }

    /// The container that runs this program now.
    pub(super) fn find_container(&self, program: ManifestProgram) -> Option<&WorkloadContainer> {
        self.find_workload(program)?.containers.first()
    }

    fn deletes_pods(&self) -> bool {
        let coordinator = self.find_container(ManifestProgram::Coordinator);
        coordinator.is_some_and(|it| {
            has_setting(
                it,
                "--on-drain-timeout",
                "DOGWATCH_ON_DRAIN_TIMEOUT",
                "delete",
            )
        })
    }

    fn controller_remediates(&self) -> bool {
        self.find_container(ManifestProgram::Controller)
            .is_some_and(runs_remediation)
    }

    fn select_parts(&self, args: &ManifestsArgs, remediates: bool) -> Vec<ManifestPart> {
        if !args.only.is_empty() {
            let mut only = args.only.clone();
            only.sort_unstable();
            only.dedup();
            return only;
        }
        let has = |is_there: fn(&ClusterInstallation) -> bool| self.cluster.is_some_and(is_there);
        let has_power = args.with_power || remediates || has(|it| it.has_hosts);
        let has_cluster_api = args.with_cluster_api || has(|it| it.has_cluster_api);
        let has_medik8s = args.with_medik8s || has(|it| it.has_medik8s);
        let is_installed = |program| self.find_container(program).is_some();
        let has_lock = args.with_lock || is_installed(ManifestProgram::Lock);
        let has_web = args.with_web || is_installed(ManifestProgram::Web);
        let deletes = args.with_delete_pods || self.deletes_pods() || has(|it| it.deletes_pods);
        let rolls = args.with_roll_first || has(|it| it.rolls_first);
        let honors = args.with_machine_drain_rules || has(|it| it.honors_machine_rules);
        let more = [
            (ManifestPart::DeletePods, deletes),
            (ManifestPart::RollFirst, rolls),
            (ManifestPart::MachineDrainRules, honors),
            (ManifestPart::Power, has_power),
            (ManifestPart::ClusterApi, has_cluster_api),
            (ManifestPart::Remediation, remediates),
            (ManifestPart::Medik8s, has_medik8s),
            (ManifestPart::Lock, has_lock),
            (ManifestPart::Web, has_web),
            (ManifestPart::Policies, !args.without_policies),
        ];
        let more = more
            .into_iter()
            .filter(|(_, is_in)| *is_in)
            .map(|(part, _)| part);
        BASE_PARTS.into_iter().chain(more).collect()
    }

    /// The flag decides, else what is installed; the default is to warn.
    fn denies_requests(&self, args: &ManifestsArgs) -> bool {
        match args.with_policies {
            Some(UnauthorizedRequests::Deny) => true,
            Some(UnauthorizedRequests::Warn) => false,
            None => {
                let bindings = self.cluster.map(|installed| &installed.bindings);
                bindings.and_then(|bindings| bindings.get(REQUESTS_BINDING)) == Some(&true)
            }
        }
    }

    fn choose_workload(
        &self,
        program: ManifestProgram,
        args: &ManifestsArgs,
        parts: &[ManifestPart],
        remediates: bool,
    ) -> Result<WorkloadSettings, CommandFailure> {
        let asked = requested_image(program, args);
        let kept = self.find_container(program);
        let image = asked.or(kept.map(|kept| &kept.image));
        // The lock API and the dashboard run the controller's image.
        let image = match program {
            ManifestProgram::Coordinator | ManifestProgram::Controller => image,
            ManifestProgram::Lock | ManifestProgram::Web => image.or(self
                .find_container(ManifestProgram::Controller)
                .map(|kept| &kept.image)),
        };
        let is_printed = parts
            .iter()
            .any(|part| part.image_program() == Some(program));
        if is_printed && image.is_none() {
            return Err(self.missing_image_failure(program));
        }
        Ok(WorkloadSettings {
            image: image.cloned().unwrap_or_default(),
            kept: kept.cloned(),
            remediates,
        })
    }

    /// There is no default image: nodes would look it up in whatever registry they search.
    fn missing_image_failure(&self, program: ManifestProgram) -> CommandFailure {
        let (flag, workload) = (program.image_flag(), program.workload_name());
        let text = match self.cluster {
            Some(_) => format!(
                "no image is given for {workload}, and it is not installed in namespace {}, so there is no image to keep",
                self.namespace
            ),
            None => format!(
                "no image is given for {workload}, and --ignore-cluster keeps none from the cluster"
            ),
        };
        CommandFailure::new(CliExitCode::Usage, text).with_next_step(format!(
            "add {flag} YOUR-REGISTRY/{}:{}; or print only parts that need no image, for example --only policies",
            match program {
                ManifestProgram::Coordinator => "dogwatch-coordinator",
                ManifestProgram::Controller | ManifestProgram::Lock | ManifestProgram::Web =>
                    "dogwatch",
            },
            env!("CARGO_PKG_VERSION")
        ))
    }
}
