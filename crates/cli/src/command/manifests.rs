//! `dogwatch manifests`: the kustomize base in one piece, for those who have no kustomize.

use std::io::Write as _;

use clap::builder::NonEmptyStringValueParser;
use dogwatch_api::DEFAULT_NAMESPACE;
use dogwatch_core::name::GroupName;

use super::crds::CRDS;
use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use crate::output;

/// `deploy/base`, in the order in which it is to be applied.
const BASE: [&str; 10] = [
    CRDS[0],
    CRDS[1],
    CRDS[2],
    CRDS[3],
    include_str!("../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../deploy/base/rbac.yaml"),
    include_str!("../../../../deploy/base/daemonset.yaml"),
    include_str!("../../../../deploy/base/controller-rbac.yaml"),
    include_str!("../../../../deploy/base/controller.yaml"),
    include_str!("../../../../deploy/base/people-rbac.yaml"),
];

/// `deploy/policies`, in the same order.
const POLICIES: [&str; 6] = [
    include_str!("../../../../deploy/policies/rbac.yaml"),
    include_str!("../../../../deploy/policies/others.yaml"),
    include_str!("../../../../deploy/policies/coordinators.yaml"),
    include_str!("../../../../deploy/policies/locks.yaml"),
    include_str!("../../../../deploy/policies/requests.yaml"),
    include_str!("../../../../deploy/policies/remediation.yaml"),
];

/// `deploy/remediation`, in the same order.
const REMEDIATION: [&str; 2] = [
    include_str!("../../../../deploy/remediation/rbac.yaml"),
    include_str!("../../../../deploy/remediation/health-checks.yaml"),
];

/// The controller's first word, and what follows it where remediation is asked for: the default is without.
const CONTROLLER: &str = "- controller";
const COMPONENTS: &str = "- --components=power,remediation,healer,lock";

/// What the overlay `deploy/policies-deny` changes.
const WARN: &str = "validationActions: [Warn, Audit]";
const DENY: &str = "validationActions: [Deny]";

/// The images in the base, up to their tag.
const COORDINATOR_IMAGE: &str = "dogwatch-coordinator:";
const CONTROLLER_IMAGE: &str = "dogwatch:";

/// What differs from the base.
#[derive(Debug, clap::Args)]
pub struct ManifestsArgs {
    /// The coordinator's image
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    image: Option<String>,

    /// The controller's image, which is that of the program dogwatch
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    controller_image: Option<String>,

    /// The admission policies as well. Who may not ask for a reboot is only warned, and audited,
    /// unless you say `deny`. Kubernetes 1.32 or later
    #[arg(
        long,
        value_name = "warn|deny",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "warn"
    )]
    with_policies: Option<Requests>,

    /// The controller remediates failed machines, which deletes Nodes; with the rights for that, and
    /// those with which health checks ask it to
    #[arg(long)]
    with_remediation: bool,
}

/// What becomes of a request for a reboot that its author has no right to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Requests {
    Warn,
    Deny,
}

/// Prints them.
pub fn run(cluster: &Cluster, args: &ManifestsArgs) -> Result<(), Failure> {
    // A namespace is a DNS label, by the same rule as a group.
    GroupName::new(cluster.namespace.as_str()).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("namespace {:?}: {}", cluster.namespace, error.why),
        )
    })?;
    let mut out = output::stdout();
    out.write_all(manifests(&cluster.namespace, args).as_bytes())?;
    Ok(out.flush()?)
}

/// All documents. The comments stay: whoever reviews them wants to know why a right is asked for.
fn manifests(namespace: &str, args: &ManifestsArgs) -> String {
    let policies = match args.with_policies {
        Some(_) => POLICIES.as_slice(),
        None => &[],
    };
    let remediation = if args.with_remediation {
        REMEDIATION.as_slice()
    } else {
        &[]
    };
    let lines = [&BASE, remediation, policies].concat().join("---\n");
    let replaced = lines.lines().map(|line| replaced(line, namespace, args));
    replaced.map(|line| line + "\n").collect()
}

fn replaced(line: &str, namespace: &str, args: &ManifestsArgs) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    match line.trim_start().split_once(": ") {
        Some((key @ ("namespace" | "name"), DEFAULT_NAMESPACE)) => {
            format!("{indent}{key}: {namespace}")
        }
        Some(("image", there)) => {
            let image = image(there, args).unwrap_or(there);
            format!("{indent}image: {image}")
        }
        Some(_) if args.with_policies == Some(Requests::Deny) => line.replace(WARN, DENY),
        None if args.with_remediation && line.trim_start() == CONTROLLER => {
            format!("{line}\n{indent}{COMPONENTS}")
        }
        Some(_) | None => line.to_owned(),
    }
}

/// What was asked for instead of the image that is there.
fn image<'a>(there: &str, args: &'a ManifestsArgs) -> Option<&'a str> {
    if there.starts_with(COORDINATOR_IMAGE) {
        return args.image.as_deref();
    }
    let controllers = there.starts_with(CONTROLLER_IMAGE);
    args.controller_image.as_deref().filter(|_| controllers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::controller::ControllerArgs;
    use dogwatch_controller::run::Component;
    use serde_json::{Value, json};

    fn with(image: Option<&str>, controller_image: Option<&str>) -> ManifestsArgs {
        ManifestsArgs {
            image: image.map(str::to_owned),
            controller_image: controller_image.map(str::to_owned),
            with_policies: None,
            with_remediation: false,
        }
    }

    fn objects(namespace: &str, args: &ManifestsArgs) -> Vec<Value> {
        serde_saphyr::from_multiple(&manifests(namespace, args)).unwrap()
    }

    fn of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
        objects
            .iter()
            .filter(|object| object["kind"] == kind)
            .collect()
    }

    #[test]
    fn everything_stands_in_the_namespace_that_was_asked_for() {
        let args = ManifestsArgs {
            with_remediation: true,
            ..with(None, None)
        };
        let objects = objects("kube-dogs", &args);
        assert_eq!(
            of(&objects, "Namespace")[0]["metadata"]["name"],
            "kube-dogs"
        );
        let namespaces = objects
            .iter()
            .filter_map(|object| object["metadata"]["namespace"].as_str());
        // Events about Nodes are in `default`, and kubelets' Leases in `kube-node-lease`, whatever is asked for.
        let elsewhere: Vec<&str> = namespaces
            .filter(|namespace| !["kube-dogs", "default", "kube-node-lease"].contains(namespace))
            .collect();
        assert_eq!(elsewhere, [""; 0]);
        for kind in ["RoleBinding", "ClusterRoleBinding"] {
            for binding in of(&objects, kind) {
                assert_eq!(
                    binding["subjects"][0]["namespace"], "kube-dogs",
                    "{binding}"
                );
                let account = binding["subjects"][0]["name"].as_str().unwrap();
                let name = binding["metadata"]["name"].as_str().unwrap();
                assert!(name.starts_with(account), "{binding}");
            }
        }
        assert!(!manifests("kube-dogs", &args).contains("namespace: dogwatch\n"));
    }

    #[test]
    fn the_image_is_that_of_this_version_unless_another_is_named() {
        let image = |kind, args: &ManifestsArgs| {
            let objects = objects("dogwatch", args);
            of(&objects, kind)[0]["spec"]["template"]["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let (daemon_set, deployment) = ("DaemonSet", "Deployment");
        let version = env!("CARGO_PKG_VERSION");
        let ours = with(None, None);
        assert_eq!(
            image(daemon_set, &ours),
            format!("dogwatch-coordinator:{version}")
        );
        assert_eq!(image(deployment, &ours), format!("dogwatch:{version}"));
        let theirs = with(Some("here/c:1"), Some("here/d:1"));
        assert_eq!(image(daemon_set, &theirs), "here/c:1");
        assert_eq!(image(deployment, &theirs), "here/d:1");
    }

    #[test]
    fn the_policies_come_when_asked_for_and_refuse_requests_when_told_to() {
        let with_policies = |with_policies| ManifestsArgs {
            with_policies,
            ..with(None, None)
        };
        let actions = |args: &ManifestsArgs, name: &str| {
            let objects = objects("kube-dogs", args);
            let bindings = of(&objects, "ValidatingAdmissionPolicyBinding");
            let named = bindings
                .iter()
                .find(|binding| binding["metadata"]["name"] == name);
            named.map(|binding| binding["spec"]["validationActions"].to_string())
        };
        let table = [
            (None, None, None),
            (
                Some(Requests::Warn),
                Some(r#"["Warn","Audit"]"#),
                Some(r#"["Deny"]"#),
            ),
            (
                Some(Requests::Deny),
                Some(r#"["Deny"]"#),
                Some(r#"["Deny"]"#),
            ),
        ];
        for (asked, requests, locks) in table {
            let args = with_policies(asked);
            let found = actions(&args, "node-reboots.dogwatch.dev");
            assert_eq!(found.as_deref(), requests, "{asked:?}");
            let found = actions(&args, "locks.dogwatch.dev");
            assert_eq!(found.as_deref(), locks, "{asked:?}");
        }
        // They go by a label of the namespace, whatever it is called; rights go where it is.
        let objects = objects("kube-dogs", &with_policies(Some(Requests::Deny)));
        let label =
            &of(&objects, "Namespace")[0]["metadata"]["labels"]["app.kubernetes.io/part-of"];
        let named = |name: &&&Value| name["metadata"]["name"] == "locks.dogwatch.dev";
        let policies = of(&objects, "ValidatingAdmissionPolicy");
        let locks = policies.iter().find(named).unwrap();
        let selector = &locks["spec"]["matchConstraints"]["namespaceSelector"]["matchLabels"];
        assert_eq!(selector["app.kubernetes.io/part-of"], *label);
        let roles = of(&objects, "Role");
        let breaks = |role: &&&Value| role["rules"][0]["verbs"][0] == "break";
        let role = roles.iter().find(breaks).unwrap();
        assert_eq!(role["metadata"]["namespace"], "kube-dogs");
    }

    #[test]
    fn the_coordinator_is_found_by_the_name_and_label_that_explain_looks_for() {
        let objects = objects("dogwatch", &with(None, None));
        let set = of(&objects, "DaemonSet")[0];
        assert_eq!(set["metadata"]["name"], dogwatch_api::COORDINATOR);
        let label = &set["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
        assert_eq!(label, dogwatch_api::COORDINATOR);
    }

    #[test]
    fn the_coordinator_understands_the_flags_it_is_given() {
        use clap::Parser as _;
        let objects = objects("dogwatch", &with(None, None));
        let container = &of(&objects, "DaemonSet")[0]["spec"]["template"]["spec"]["containers"][0];
        let flags = container["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|flag| flag.as_str().unwrap());
        let words = ["dogwatch-coordinator", "--node-name", "n1"]
            .into_iter()
            .chain(flags);
        let args = dogwatch_coordinator::args::Args::try_parse_from(words).unwrap();
        assert_eq!(args.host_root.to_str(), Some("/host"));
        assert_eq!(
            args.listen.to_string(),
            format!(":{}", container["ports"][0]["containerPort"])
        );
        let mount = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
        let sentinel = args.sentinel[0].strip_prefix("/").unwrap();
        assert!(
            args.host_root.join(sentinel).starts_with(mount),
            "{sentinel:?} is seen below {mount}"
        );
    }

    /// The flags that the controller is given, as it understands them.
    fn controller(objects: &[Value]) -> ControllerArgs {
        use clap::Parser as _;
        let pod = &of(objects, "Deployment")[0]["spec"]["template"]["spec"];
        let flags = pod["containers"][0]["args"].as_array().unwrap().iter();
        let words = ["dogwatch"]
            .into_iter()
            .chain(flags.map(|flag| flag.as_str().unwrap()));
        let args = crate::args::Args::try_parse_from(words).unwrap();
        let crate::command::Command::Controller(args) = args.command else {
            panic!("another command")
        };
        *args
    }

    #[test]
    fn nodes_are_deleted_where_remediation_is_asked_for_and_the_rest_runs_as_without() {
        let found = |with_remediation| {
            let args = ManifestsArgs {
                with_remediation,
                ..with(None, None)
            };
            let objects = objects("dogwatch", &args);
            let deletes = |rule: &Value| {
                rule["resources"] == json!(["nodes"])
                    && rule["verbs"].as_array().unwrap().contains(&json!("delete"))
            };
            let roles = of(&objects, "ClusterRole").into_iter();
            let rules = roles.filter_map(|role| role["rules"].as_array());
            let may = rules.flatten().any(deletes);
            let parts = controller(&objects).components.into_iter();
            let parts: Vec<Component> = parts.map(Component::from).collect();
            (may, parts)
        };
        let (may, without) = found(false);
        assert!(
            !may && !without.contains(&Component::Remediation),
            "{without:?}"
        );
        let (may, mut parts) = found(true);
        assert!(may && parts.contains(&Component::Remediation), "{parts:?}");
        parts.retain(|part| *part != Component::Remediation);
        assert_eq!(parts, without);
    }

    #[test]
    fn the_controller_understands_the_flags_it_is_given_and_gets_no_privilege() {
        let objects = objects("dogwatch", &with(None, None));
        let pod = &of(&objects, "Deployment")[0]["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let args = controller(&objects);
        let port = &container["ports"][0]["containerPort"];
        assert_eq!(args.listen.to_string(), format!(":{port}"));
        // Pod Security's level "restricted".
        let own = &container["securityContext"];
        assert_eq!(own["allowPrivilegeEscalation"], false);
        assert_eq!(own["capabilities"]["drop"][0], "ALL");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(
            pod["securityContext"]["seccompProfile"]["type"],
            "RuntimeDefault"
        );
        assert_eq!(pod["volumes"], Value::Null);
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(
            grace > dogwatch_controller::run::FINISH_WITHIN.as_secs() + 5,
            "{grace}"
        );
    }
}
