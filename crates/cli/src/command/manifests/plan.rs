//! What is printed: by the flags, and by what is installed, so that an update changes nothing that nobody asked for.

use dogwatch_k8s::fleet::{Container, Installed, Workload};

use super::parts::{BASE, GUARDS, Part, Program};
use super::workload::{Chosen, remediates, says};
use super::{ManifestsArgs, Requests};
use crate::exit::{Exit, Failure};

/// From then on a token says for sure on which node its pod runs.
const POLICIES_SINCE: (u32, u32) = (1, 32);
/// From then on an API server has such policies at all, in the version of the manifests.
const ANY_POLICY_SINCE: (u32, u32) = (1, 30);

/// The binding whose action the overlay `deploy/policies-deny` changes.
const REQUESTS_BINDING: &str = "node-reboots.dogwatch.dev";

/// What is printed.
#[derive(Debug)]
pub(super) struct Plan {
    /// The documents, in the order in which they are applied.
    pub(super) files: Vec<&'static str>,
    /// A request by somebody without the right is refused, not only warned about.
    pub(super) denies: bool,
    /// What goes into the manifests of the programs.
    pub(super) coordinator: Chosen,
    pub(super) controller: Chosen,
    pub(super) lock: Chosen,
    /// What a person is told beside it.
    pub(super) notes: Vec<String>,
}

/// What is printed for this namespace; `cluster`: what is installed, where somebody looked.
pub(super) fn plan(
    namespace: &str,
    args: &ManifestsArgs,
    cluster: Option<&Installed>,
) -> Result<Plan, Failure> {
    if let Some(installed) = cluster {
        not_elsewhere(namespace, installed)?;
        not_renamed(namespace, installed)?;
    }
    let here = Here { namespace, cluster };
    let remediates = args.with_remediation || here.remediates();
    let parts = here.parts(args, remediates);
    here.not_overlaid(&parts)?;
    let has_policies = policies_fit(args, &parts, cluster)?;
    let mut notes = here.kept(args, &parts);
    notes.extend(here.about_policies(args, &parts, remediates, has_policies));
    Ok(Plan {
        files: files(&parts, args, remediates),
        denies: here.denies(args),
        coordinator: here.chosen(Program::Coordinator, args, &parts, false)?,
        controller: here.chosen(Program::Controller, args, &parts, remediates)?,
        lock: here.chosen(Program::Lock, args, &parts, false)?,
        notes,
    })
}

/// All documents of these parts.
fn files(parts: &[Part], args: &ManifestsArgs, remediates: bool) -> Vec<&'static str> {
    let all = parts.iter().flat_map(|part| part.files());
    let mut files: Vec<&'static str> = all.copied().collect();
    if args.only.is_empty() && args.without_policies && remediates {
        files.extend(GUARDS);
    }
    files
}

/// Two in one cluster would share their cluster-wide roles and policies.
fn not_elsewhere(namespace: &str, installed: &Installed) -> Result<(), Failure> {
    let mut workloads = installed.workloads.iter();
    if workloads.clone().any(|it| it.namespace == namespace) {
        return Ok(());
    }
    let Some(there) = workloads.next() else {
        return Ok(());
    };
    let text = format!(
        "Dogwatch is installed in namespace {}, not in {namespace}; two in one cluster get in each other's way",
        there.namespace
    );
    let next = format!("dogwatch manifests --namespace {}", there.namespace);
    Err(Failure::new(Exit::Failed, text).next(next))
}

/// Beside a DaemonSet of another name a second one would put a second coordinator on each node.
fn not_renamed(namespace: &str, installed: &Installed) -> Result<(), Failure> {
    let here = installed
        .workloads
        .iter()
        .filter(|it| it.namespace == namespace);
    let programs = [Program::Coordinator, Program::Controller].map(Program::workload);
    let mut renamed =
        here.filter(|it| programs.contains(&it.program.as_str()) && it.name != it.program);
    let Some(workload) = renamed.next() else {
        return Ok(());
    };
    let text = format!(
        "{} is installed as {} in namespace {namespace}, and these manifests would put a second one beside it",
        workload.program, workload.name
    );
    Err(Failure::new(Exit::Failed, text)
        .next("update it as it was installed: with kustomize, by its overlay"))
}

/// Refuses policies that the API server has not, or by which it would refuse every coordinator. Whether there are any.
fn policies_fit(
    args: &ManifestsArgs,
    parts: &[Part],
    cluster: Option<&Installed>,
) -> Result<bool, Failure> {
    let has_all = parts.contains(&Part::Policies);
    let has_guards = args.without_policies && parts.contains(&Part::Remediation);
    let Some((major, minor)) = cluster.and_then(|installed| installed.kubernetes) else {
        return Ok(has_all);
    };
    let version = format!("the API server is Kubernetes {major}.{minor}");
    if has_all && (major, minor) < POLICIES_SINCE {
        let text = format!(
            "{version}, and the admission policies need 1.32 or later: an older one does not put the node's name into \
             a token, so that they would refuse every coordinator"
        );
        let next = "update Kubernetes, or leave them out with --without-policies";
        return Err(Failure::new(Exit::Failed, text).next(next));
    }
    if has_guards && (major, minor) < ANY_POLICY_SINCE {
        let text = format!(
            "{version}, and remediation needs 1.30 or later, for the policies that guard who says that a host is off"
        );
        return Err(Failure::new(Exit::Failed, text).next("update Kubernetes"));
    }
    Ok(has_all)
}

fn asked_image(program: Program, args: &ManifestsArgs) -> Option<&String> {
    match program {
        Program::Coordinator => args.image.as_ref(),
        Program::Controller | Program::Lock => args.controller_image.as_ref(),
    }
}

/// What tells that an overlay has changed it, in words.
fn overlay_of(workload: &Workload, part: Part) -> Option<String> {
    let coordinator = part == Part::Coordinator;
    let container = workload.containers.first()?;
    if coordinator && says(container, "--identity", "DOGWATCH_IDENTITY", "kubelet") {
        return Some("goes by the kubelet's identity".to_owned());
    }
    if coordinator && workload.unprivileged {
        return Some("runs without privileges".to_owned());
    }
    let shipped = |volume: &&String| {
        let line = format!("- name: {volume}\n");
        part.files().iter().any(|file| file.contains(&line))
    };
    let volume = workload.volumes.iter().find(|volume| !shipped(volume))?;
    Some(format!("has volume {volume}"))
}

/// What is installed in the namespace, where somebody looked.
#[derive(Clone, Copy)]
struct Here<'a> {
    namespace: &'a str,
    cluster: Option<&'a Installed>,
}

impl Here<'_> {
    /// What an overlay has taken away would be given back, and what it has added taken away.
    fn not_overlaid(&self, parts: &[Part]) -> Result<(), Failure> {
        for part in parts {
            let Some(workload) = part.program().and_then(|program| self.workload(program)) else {
                continue;
            };
            let Some(overlay) = overlay_of(workload, *part) else {
                continue;
            };
            let text = format!(
                "{} in namespace {} {overlay}: an overlay made it so, and these manifests would undo that",
                workload.name, self.namespace
            );
            let next = "update it by its overlay, or print other parts: --only";
            return Err(Failure::new(Exit::Failed, text).next(next));
        }
        Ok(())
    }

    fn workload(&self, program: Program) -> Option<&Workload> {
        let here = |it: &&Workload| it.namespace == self.namespace && it.name == program.workload();
        self.cluster?.workloads.iter().find(here)
    }

    /// What runs this program now.
    fn container(&self, program: Program) -> Option<&Container> {
        self.workload(program)?.containers.first()
    }

    fn deletes_pods(&self) -> bool {
        let coordinator = self.container(Program::Coordinator);
        coordinator.is_some_and(|it| {
            says(
                it,
                "--on-drain-timeout",
                "DOGWATCH_ON_DRAIN_TIMEOUT",
                "delete",
            )
        })
    }

    fn remediates(&self) -> bool {
        self.container(Program::Controller).is_some_and(remediates)
    }

    fn parts(&self, args: &ManifestsArgs, remediates: bool) -> Vec<Part> {
        if !args.only.is_empty() {
            let mut only = args.only.clone();
            only.sort_unstable();
            only.dedup();
            return only;
        }
        let has = |is_there: fn(&Installed) -> bool| self.cluster.is_some_and(is_there);
        let has_power = args.with_power || remediates || has(|it| it.has_hosts);
        let has_cluster_api = args.with_cluster_api || has(|it| it.has_cluster_api);
        let has_medik8s = args.with_medik8s || has(|it| it.has_medik8s);
        let has_lock = args.with_lock || self.container(Program::Lock).is_some();
        let deletes = args.with_delete_pods || self.deletes_pods() || has(|it| it.deletes_pods);
        let more = [
            (Part::DeletePods, deletes),
            (Part::Power, has_power),
            (Part::ClusterApi, has_cluster_api),
            (Part::Remediation, remediates),
            (Part::Medik8s, has_medik8s),
            (Part::Lock, has_lock),
            (Part::Policies, !args.without_policies),
        ];
        let more = more
            .into_iter()
            .filter(|(_, is_in)| *is_in)
            .map(|(part, _)| part);
        BASE.into_iter().chain(more).collect()
    }

    /// As the flag says, else as it is, else with a warning.
    fn denies(&self, args: &ManifestsArgs) -> bool {
        match args.with_policies {
            Some(Requests::Deny) => true,
            Some(Requests::Warn) => false,
            None => {
                let bindings = self.cluster.map(|installed| &installed.bindings);
                bindings.and_then(|bindings| bindings.get(REQUESTS_BINDING)) == Some(&true)
            }
        }
    }

    fn chosen(
        &self,
        program: Program,
        args: &ManifestsArgs,
        parts: &[Part],
        remediates: bool,
    ) -> Result<Chosen, Failure> {
        let asked = asked_image(program, args);
        let kept = self.container(program);
        let image = asked.or(kept.map(|kept| &kept.image));
        // The lock's program is the controller's.
        let image = match program {
            Program::Coordinator | Program::Controller => image,
            Program::Lock => image.or(self.container(Program::Controller).map(|kept| &kept.image)),
        };
        let is_printed = parts.iter().any(|part| part.program() == Some(program));
        if is_printed && image.is_none() {
            return Err(self.no_image(program));
        }
        Ok(Chosen {
            image: image.cloned().unwrap_or_default(),
            kept: kept.cloned(),
            remediates,
        })
    }

    /// A name of ours would be looked up in whatever registry a node searches.
    fn no_image(&self, program: Program) -> Failure {
        let (flag, workload) = (program.flag(), program.workload());
        let text = match self.cluster {
            Some(_) => format!(
                "which image is {workload} to run? It is not installed in namespace {}, so that there is none to keep",
                self.namespace
            ),
            None => format!(
                "which image is {workload} to run? No cluster was asked which one it runs now"
            ),
        };
        Failure::new(Exit::Usage, text).next(format!(
            "name it: {flag} YOUR-REGISTRY/{}:{}; or say which parts you want that need none, as --only policies",
            match program {
                Program::Coordinator => "dogwatch-coordinator",
                Program::Controller | Program::Lock => "dogwatch",
            },
            env!("CARGO_PKG_VERSION")
        ))
    }

    /// What of that which is installed is printed again.
    fn kept(&self, args: &ManifestsArgs, parts: &[Part]) -> Vec<String> {
        let programs = [Program::Coordinator, Program::Controller, Program::Lock].into_iter();
        let printed = programs.filter(|it| parts.iter().any(|part| part.program() == Some(*it)));
        let kept = printed.filter_map(|program| {
            let kept = self.container(program)?;
            let (workload, namespace) = (program.workload(), self.namespace);
            let image = match asked_image(program, args) {
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

    fn about_policies(
        &self,
        args: &ManifestsArgs,
        parts: &[Part],
        remediates: bool,
        has_policies: bool,
    ) -> Vec<String> {
        if has_policies {
            return self.new_policies(args, parts);
        }
        if !args.only.is_empty() {
            return Vec::new();
        }
        vec![
            if remediates {
                WITH_GUARDS_ONLY
            } else {
                WITHOUT
            }
            .to_owned(),
        ]
    }

    /// They are new to a cluster that has Dogwatch already, or need a version that nobody has looked at.
    fn new_policies(&self, args: &ManifestsArgs, parts: &[Part]) -> Vec<String> {
        match self.cluster {
            None => vec!["the admission policies need Kubernetes 1.32 or later; an older one: --without-policies".into()],
            Some(installed) => {
                let is_update = parts.contains(&Part::Coordinator)
                    && self.container(Program::Coordinator).is_some()
                    && args.with_policies.is_none();
                let are_new = is_update && installed.bindings.is_empty();
                let text = "adds the admission policies, which are not installed yet; --without-policies leaves them out";
                are_new.then(|| text.to_owned()).into_iter().collect()
            }
        }
    }
}

/// What it costs to leave them out.
pub(super) const WITHOUT: &str = "\
without the admission policies a coordinator's token, which root on any node can read, can cordon, label and drain
  every node and take every lock, and whoever may annotate a Node has it rebooted (docs/security.md)";

/// The same with those that remediation always has.
pub(super) const WITH_GUARDS_ONLY: &str = "\
without the admission policies a coordinator's token, which root on any node can read, can cordon, label and drain
  every node and take every lock (docs/security.md). Those that guard remediation are printed all the same: who says
  that a host is off, who asks for a remediation, and which BMC a host has";
