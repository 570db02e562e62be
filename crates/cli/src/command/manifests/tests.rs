//! Parses the printed manifests as the API server would.

mod dashboard;
mod guards;

use super::*;
use crate::command::controller::ControllerArgs;
use dogwatch_controller::run::ControllerComponent;
use dogwatch_k8s::fleet::{DogwatchWorkload, WorkloadContainer};
use serde_json::{Value, json};

/// Names both images.
fn args() -> ManifestsArgs {
    ManifestsArgs {
        image: Some("registry/dogwatch-coordinator:1".to_owned()),
        controller_image: Some("registry/dogwatch:1".to_owned()),
        ..ManifestsArgs::default()
    }
}

fn printed(namespace: &str, args: &ManifestsArgs) -> String {
    render_manifests(
        namespace,
        &plan::plan_manifests(namespace, args, None).unwrap(),
    )
}

fn objects(namespace: &str, args: &ManifestsArgs) -> Vec<Value> {
    serde_saphyr::from_multiple(&printed(namespace, args)).unwrap()
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
        ..args()
    };
    let objects = objects("kube-dogs", &args);
    assert_eq!(
        of(&objects, "Namespace")[0]["metadata"]["name"],
        "kube-dogs"
    );
    let namespaces = objects
        .iter()
        .filter_map(|object| object["metadata"]["namespace"].as_str());
    // Events about Nodes are in `default`, and the kubelets' Leases in `kube-node-lease`, in any
    // installation.
    let elsewhere: Vec<&str> = namespaces
        .filter(|namespace| !["kube-dogs", "default", "kube-node-lease"].contains(namespace))
        .collect();
    assert_eq!(elsewhere, [""; 0]);
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        let ours = |it: &&&Value| {
            let account = it["subjects"][0]["name"].as_str().unwrap();
            account.starts_with("dogwatch-")
        };
        for binding in of(&objects, kind).iter().filter(ours) {
            assert_eq!(
                binding["subjects"][0]["namespace"], "kube-dogs",
                "{binding}"
            );
            let account = binding["subjects"][0]["name"].as_str().unwrap();
            let name = binding["metadata"]["name"].as_str().unwrap();
            assert!(name.starts_with(account), "{binding}");
        }
    }
    assert!(!printed("kube-dogs", &args).contains("namespace: dogwatch\n"));
}

fn action(objects: &[Value], name: &str) -> Option<String> {
    let bindings = of(objects, "ValidatingAdmissionPolicyBinding");
    let named = bindings
        .iter()
        .find(|binding| binding["metadata"]["name"] == name);
    named.map(|binding| binding["spec"]["validationActions"].to_string())
}

const REQUESTS: &str = "node-reboots.dogwatch.dev";
const LOCKS: &str = "locks.dogwatch.dev";
const CONFIRMATIONS: &str = "host-confirmations.dogwatch.dev";
const WARNS: Option<&str> = Some(r#"["Warn","Audit"]"#);
const DENIES: Option<&str> = Some(r#"["Deny"]"#);

#[test]
fn the_policies_are_part_of_what_is_printed_unless_somebody_leaves_them_out() {
    let table = [
        (None, false, false, (WARNS, DENIES, DENIES)),
        (
            Some(UnauthorizedRequests::Warn),
            false,
            false,
            (WARNS, DENIES, DENIES),
        ),
        (
            Some(UnauthorizedRequests::Deny),
            false,
            false,
            (DENIES, DENIES, DENIES),
        ),
        (None, true, false, (None, None, None)),
        // The policies that guard remediation are never left out.
        (None, true, true, (WARNS, None, DENIES)),
    ];
    for (with_policies, without_policies, with_remediation, expected) in table {
        let args = ManifestsArgs {
            with_policies,
            without_policies,
            with_remediation,
            ..args()
        };
        let objects = objects("kube-dogs", &args);
        let found = [REQUESTS, LOCKS, CONFIRMATIONS].map(|name| action(&objects, name));
        let found = (
            found[0].as_deref(),
            found[1].as_deref(),
            found[2].as_deref(),
        );
        assert_eq!(found, expected, "{args:?}");
    }
}

#[test]
fn whoever_leaves_the_policies_out_is_told_what_that_costs() {
    for (with_remediation, words) in [
        (false, notes::WITHOUT_POLICIES_NOTE),
        (true, notes::GUARD_POLICIES_ONLY_NOTE),
    ] {
        let args = ManifestsArgs {
            without_policies: true,
            with_remediation,
            ..args()
        };
        let notes = plan::plan_manifests("dogwatch", &args, None).unwrap().notes;
        assert_eq!(notes, [words]);
    }
}

#[test]
fn the_policies_find_dogwatchs_namespace_whatever_it_is_called() {
    let args = ManifestsArgs {
        with_policies: Some(UnauthorizedRequests::Deny),
        ..args()
    };
    // The policies select the namespace by a label, not by name; the rights are bound in the
    // namespace itself.
    let objects = objects("kube-dogs", &args);
    let label = &of(&objects, "Namespace")[0]["metadata"]["labels"]["app.kubernetes.io/part-of"];
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
    let objects = objects("dogwatch", &args());
    let set = of(&objects, "DaemonSet")[0];
    assert_eq!(set["metadata"]["name"], dogwatch_api::COORDINATOR);
    let label = &set["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
    assert_eq!(label, dogwatch_api::COORDINATOR);
}

#[test]
fn the_coordinator_understands_the_flags_it_is_given() {
    use clap::Parser as _;
    let objects = objects("dogwatch", &args());
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

/// Parses the controller's flags as the controller does.
fn controller(objects: &[Value]) -> ControllerArgs {
    use clap::Parser as _;
    let pod = &of(objects, "Deployment")[0]["spec"]["template"]["spec"];
    let flags = pod["containers"][0]["args"].as_array().unwrap().iter();
    let words = ["dogwatch"]
        .into_iter()
        .chain(flags.map(|flag| flag.as_str().unwrap()));
    let args = crate::args::Args::try_parse_from(words).unwrap();
    let crate::command::DogwatchCommand::Controller(args) = args.command else {
        panic!("another command")
    };
    *args
}

#[test]
fn nodes_are_deleted_where_remediation_is_asked_for_and_the_rest_runs_as_without() {
    let found = |with_remediation| {
        let args = ManifestsArgs {
            with_remediation,
            ..args()
        };
        let objects = objects("dogwatch", &args);
        let may = deletes_nodes(&objects);
        let parts = controller(&objects).components.into_iter();
        let parts: Vec<ControllerComponent> = parts.map(ControllerComponent::from).collect();
        (may, parts)
    };
    let (may, without) = found(false);
    assert!(
        !may && !without.contains(&ControllerComponent::Remediation),
        "{without:?}"
    );
    let (may, mut parts) = found(true);
    assert!(
        may && parts.contains(&ControllerComponent::Remediation),
        "{parts:?}"
    );
    parts.retain(|part| *part != ControllerComponent::Remediation);
    assert_eq!(parts, without);
}

#[test]
fn the_controller_understands_the_flags_it_is_given_and_gets_no_privilege() {
    let objects = objects("dogwatch", &args());
    let pod = &of(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let args = controller(&objects);
    let port = &container["ports"][0]["containerPort"];
    assert_eq!(args.listen.to_string(), format!(":{port}"));
    // Level "restricted" of Pod Security.
    let own = &container["securityContext"];
    assert_eq!(own["allowPrivilegeEscalation"], false);
    assert_eq!(own["capabilities"]["drop"][0], "ALL");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    // No volume of the host.
    let volumes = json!([{ "name": "tmp", "emptyDir": { "sizeLimit": "16Mi" } }]);
    assert_eq!(pod["volumes"], volumes);
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(
        grace > dogwatch_controller::run::FINISH_TIMEOUT.as_secs() + 5,
        "{grace}"
    );
}

/// An installation in namespace dogwatch with its own registry and flags.
fn installed() -> ClusterInstallation {
    let workload = |name: &str, image: &str, args: &[&str]| DogwatchWorkload {
        namespace: "dogwatch".into(),
        name: name.into(),
        program: name.into(),
        account: name.into(),
        containers: vec![WorkloadContainer {
            image: image.into(),
            args: args.iter().map(ToString::to_string).collect(),
            ..WorkloadContainer::default()
        }],
        ..DogwatchWorkload::default()
    };
    let flags = ["--host-root=/host", "--sentinel=/run/reboot-required"];
    let parts = ["controller", "--components=power,remediation,healer"];
    ClusterInstallation {
        kubernetes: Some((1, 36)),
        workloads: vec![
            workload(COORDINATOR, "here/c:7", &flags),
            workload(CONTROLLER, "here/d:7", &parts),
        ],
        bindings: [(REQUESTS.to_owned(), true)].into(),
        ..ClusterInstallation::default()
    }
}

fn update(args: &ManifestsArgs, installed: &ClusterInstallation) -> Result<Vec<Value>, String> {
    let plan = plan::plan_manifests("dogwatch", args, Some(installed));
    let plan = plan.map_err(|failure| format!("{failure:?}"))?;
    Ok(serde_saphyr::from_multiple(&render_manifests("dogwatch", &plan)).unwrap())
}

fn container<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    &of(objects, kind)[0]["spec"]["template"]["spec"]["containers"][0]
}

fn deletes_nodes(objects: &[Value]) -> bool {
    let deletes = |rule: &Value| {
        rule["resources"] == json!(["nodes"])
            && rule["verbs"].as_array().unwrap().contains(&json!("delete"))
    };
    let roles = of(objects, "ClusterRole").into_iter();
    let mut rules = roles.filter_map(|role| role["rules"].as_array()).flatten();
    rules.any(deletes)
}

#[test]
fn what_is_installed_is_kept_and_only_what_was_asked_for_is_changed() {
    let objects = update(&ManifestsArgs::default(), &installed()).unwrap();
    let coordinator = container(&objects, "DaemonSet");
    assert_eq!(coordinator["image"], "here/c:7");
    let flags = json!(["--host-root=/host", "--sentinel=/run/reboot-required"]);
    assert_eq!(coordinator["args"], flags);
    let controller = container(&objects, "Deployment");
    assert_eq!(controller["image"], "here/d:7");
    let flags = &controller["args"];
    assert_eq!(flags[1], "--components=power,remediation,healer");
    assert!(deletes_nodes(&objects), "remediation keeps its rights");
    assert_eq!(action(&objects, REQUESTS).as_deref(), DENIES);

    let new = ManifestsArgs {
        image: Some("here/c:8".into()),
        with_policies: Some(UnauthorizedRequests::Warn),
        ..ManifestsArgs::default()
    };
    let objects = update(&new, &installed()).unwrap();
    assert_eq!(container(&objects, "DaemonSet")["image"], "here/c:8");
    assert_eq!(container(&objects, "Deployment")["image"], "here/d:7");
    assert_eq!(action(&objects, REQUESTS).as_deref(), WARNS);
}

#[test]
fn without_an_image_to_run_nothing_is_printed() {
    for (image, controller_image, flag) in [
        (None, None, "--image"),
        (Some("c"), None, "--controller-image"),
        (None, Some("d"), "--image"),
    ] {
        let args = ManifestsArgs {
            image: image.map(str::to_owned),
            controller_image: controller_image.map(str::to_owned),
            ..ManifestsArgs::default()
        };
        for cluster in [None, Some(ClusterInstallation::default())] {
            let plan = plan::plan_manifests("dogwatch", &args, cluster.as_ref());
            let words = format!("{:?}", plan.unwrap_err());
            assert!(words.contains(&format!("add {flag} ")), "{words}");
        }
    }
    let only = ManifestsArgs {
        only: vec![ManifestPart::Policies, ManifestPart::Crds],
        ..ManifestsArgs::default()
    };
    let objects = objects("dogwatch", &only);
    let mut kinds: Vec<&str> = objects
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    kinds.dedup();
    assert_eq!(kinds[0], "CustomResourceDefinition");
    assert!(kinds.contains(&"ValidatingAdmissionPolicy"), "{kinds:?}");
    assert!(
        !kinds.contains(&"DaemonSet") && !kinds.contains(&"Namespace"),
        "{kinds:?}"
    );
}

#[test]
fn a_second_dogwatch_is_not_put_beside_one_of_another_namespace_or_another_name() {
    let mut elsewhere = installed();
    for workload in &mut elsewhere.workloads {
        workload.namespace = "kube-dogs".into();
    }
    let words = update(&args(), &elsewhere).unwrap_err();
    assert!(words.contains("--namespace kube-dogs"), "{words}");
    let mut renamed = installed();
    renamed.workloads[0].name = "acme-dogwatch-coordinator".into();
    let words = update(&args(), &renamed).unwrap_err();
    assert!(
        words.contains("acme-dogwatch-coordinator") && words.contains("overlay"),
        "{words}"
    );
}

#[test]
fn an_older_kubernetes_is_told_and_what_cannot_work_there_is_not_printed() {
    let of = |minor, without_policies, with_remediation| {
        let installed = ClusterInstallation {
            kubernetes: Some((1, minor)),
            ..ClusterInstallation::default()
        };
        let args = ManifestsArgs {
            without_policies,
            with_remediation,
            ..args()
        };
        update(&args, &installed).err().unwrap_or_default()
    };
    let words = of(31, false, false);
    assert!(
        words.contains("Kubernetes 1.31") && words.contains("--without-policies"),
        "{words}"
    );
    for (minor, without_policies, with_remediation) in [
        (32, false, true),
        (31, true, false),
        (30, true, true),
        (29, true, false),
    ] {
        let words = of(minor, without_policies, with_remediation);
        assert_eq!(words, "", "{minor} {without_policies} {with_remediation}");
    }
    let words = of(29, true, true);
    assert!(words.contains("remediation needs 1.30"), "{words}");
}

#[test]
fn an_installation_without_policies_gets_them_and_that_is_said() {
    let older = ClusterInstallation {
        bindings: std::collections::BTreeMap::new(),
        ..installed()
    };
    let plan = plan::plan_manifests("dogwatch", &ManifestsArgs::default(), Some(&older)).unwrap();
    let told = plan
        .notes
        .iter()
        .filter(|note| note.contains("adds the admission policies"));
    assert_eq!(told.count(), 1, "{:?}", plan.notes);
    let objects = update(&ManifestsArgs::default(), &older).unwrap();
    assert_eq!(action(&objects, REQUESTS).as_deref(), WARNS);
}

#[test]
fn network_policies_let_metrics_in_by_the_port_that_the_pods_name() {
    let mut only = args();
    only.only = vec![ManifestPart::NetworkPolicies];
    let policies = objects("kube-dogs", &only);
    assert_eq!(policies.len(), 3);
    let with_lock = ManifestsArgs {
        with_lock: true,
        ..args()
    };
    let objects = objects("kube-dogs", &with_lock);
    for policy in &policies {
        assert_eq!(policy["metadata"]["namespace"], "kube-dogs");
        let chosen = &policy["spec"]["podSelector"]["matchLabels"];
        let mut workloads = objects.iter().map(|it| &it["spec"]["template"]);
        let pod = workloads.find(|pod| {
            pod["metadata"]["labels"]["app.kubernetes.io/name"] == chosen["app.kubernetes.io/name"]
        });
        let ports = &pod.unwrap()["spec"]["containers"][0]["ports"];
        let named = ports.as_array().unwrap().iter();
        let names: Vec<&Value> = named.map(|port| &port["name"]).collect();
        let open = &policy["spec"]["ingress"][0]["ports"][0]["port"];
        assert!(names.contains(&open), "{open}: {names:?}");
    }
}

/// The rights of the controller's account, as `verb resource`.
fn controllers_rights(objects: &[Value]) -> Vec<String> {
    let roles = of(objects, "ClusterRole").into_iter();
    let own =
        roles.filter(|role| role["metadata"]["labels"]["app.kubernetes.io/name"] == CONTROLLER);
    let texts = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
    let rules = own.flat_map(|role| role["rules"].as_array().unwrap());
    let pairs = rules.flat_map(|rule| {
        let verbs = texts(&rule["verbs"]);
        let resources = texts(&rule["resources"]).into_iter();
        resources.flat_map(move |it| {
            verbs
                .clone()
                .into_iter()
                .map(move |verb| format!("{verb} {it}"))
        })
    });
    pairs.collect()
}

#[test]
fn the_controller_may_touch_hosts_and_machines_only_where_there_are_such() {
    let rights = |installed: &ClusterInstallation, args: &ManifestsArgs| {
        let rights = controllers_rights(&update(args, installed).unwrap());
        let has = |right: &str| rights.iter().any(|it| it == right);
        (has("patch baremetalhosts"), has("patch machines"))
    };
    let none = ClusterInstallation::default();
    assert_eq!(rights(&none, &args()), (false, false));
    let hosts = ClusterInstallation {
        has_hosts: true,
        ..ClusterInstallation::default()
    };
    assert_eq!(rights(&hosts, &args()), (true, false));
    let machines = ClusterInstallation {
        has_cluster_api: true,
        ..ClusterInstallation::default()
    };
    assert_eq!(rights(&machines, &args()), (false, true));
    let asked = ManifestsArgs {
        with_power: true,
        with_cluster_api: true,
        ..args()
    };
    assert_eq!(rights(&none, &asked), (true, true));
    let remediation = ManifestsArgs {
        with_remediation: true,
        ..args()
    };
    assert_eq!(
        rights(&none, &remediation),
        (true, true),
        "it keeps the power of hosts"
    );
}

#[test]
fn no_role_for_people_changes_which_bmc_a_host_has() {
    let objects = objects("dogwatch", &args());
    let roles = objects.iter().filter(|it| it["kind"] == "ClusterRole");
    let people =
        roles.filter(|it| it["metadata"]["labels"]["app.kubernetes.io/name"] == "dogwatch-people");
    let people: Vec<&Value> = people.collect();
    assert!(people.len() > 2, "{people:?}");
    for role in people {
        assert!(!role.to_string().contains("baremetalhosts/bmc"), "{role}");
    }
}

#[test]
fn with_remediation_who_chooses_a_host_or_marks_a_node_is_refused_without_the_right() {
    let args = ManifestsArgs {
        without_policies: true,
        with_remediation: true,
        ..args()
    };
    let objects = objects("dogwatch", &args);
    for policy in [
        "host-nodes",
        "node-remediations",
        "host-confirmations",
        "host-bmcs",
    ] {
        let found = action(&objects, &format!("{policy}.dogwatch.dev"));
        assert_eq!(found.as_deref(), DENIES, "{policy}");
    }
}

#[test]
fn the_lock_is_a_program_of_its_own_with_the_controllers_image_and_reads_no_secret() {
    use clap::Parser as _;
    let with_lock = ManifestsArgs {
        with_lock: true,
        with_remediation: true,
        ..args()
    };
    let objects = objects("kube-dogs", &with_lock);
    let deployments = of(&objects, "Deployment");
    let named = |name: &str| {
        let mut all = deployments.iter();
        all.find(|it| it["metadata"]["name"] == name).unwrap()
    };
    let pod = &named(LOCK_API_ACCOUNT)["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], LOCK_API_ACCOUNT);
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry/dogwatch:1");
    let flags = container["args"].as_array().unwrap().iter();
    let words = flags.map(|flag| flag.as_str().unwrap());
    let parsed = crate::args::Args::try_parse_from(["dogwatch"].into_iter().chain(words)).unwrap();
    let crate::command::DogwatchCommand::Controller(args) = parsed.command else {
        panic!("another command")
    };
    let parts: Vec<ControllerComponent> = args
        .components
        .iter()
        .copied()
        .map(ControllerComponent::from)
        .collect();
    assert_eq!(parts, [ControllerComponent::Lock]);
    let port = |number: usize| container["ports"][number]["containerPort"].to_string();
    assert_eq!(args.lock_listen.port().to_string(), port(0));
    assert_eq!(args.listen.to_string(), format!(":{}", port(1)));
    assert_eq!(args.probe_listen.to_string(), format!(":{}", port(2)));
    let roles = objects.iter().filter(|it| {
        it["metadata"]["name"] == LOCK_API_ACCOUNT
            && ["Role", "ClusterRole"].contains(&it["kind"].as_str().unwrap())
    });
    let text: String = roles.map(ToString::to_string).collect();
    assert!(
        text.contains("tokenreviews") && !text.contains("secrets"),
        "{text}"
    );
    let without: Vec<String> = self::objects("kube-dogs", &self::args())
        .iter()
        .map(|it| it["metadata"]["name"].to_string())
        .collect();
    assert!(
        !without.contains(&format!("{LOCK_API_ACCOUNT:?}")),
        "{without:?}"
    );
}

#[test]
fn an_installed_lock_is_kept() {
    let container = WorkloadContainer {
        image: "registry/dogwatch:7".to_owned(),
        args: vec![
            "controller".into(),
            "--components=lock".into(),
            "--lock-audience=other".into(),
        ],
        ..WorkloadContainer::default()
    };
    let installed = ClusterInstallation {
        workloads: [COORDINATOR, CONTROLLER, LOCK_API_ACCOUNT]
            .map(|name| DogwatchWorkload {
                namespace: "dogwatch".into(),
                name: name.into(),
                program: name.into(),
                containers: vec![container.clone()],
                ..DogwatchWorkload::default()
            })
            .to_vec(),
        ..ClusterInstallation::default()
    };
    let plan =
        plan::plan_manifests("dogwatch", &ManifestsArgs::default(), Some(&installed)).unwrap();
    let text = render_manifests("dogwatch", &plan);
    assert!(
        text.contains("name: dogwatch-lock") && text.contains("--lock-audience=other"),
        "{text}"
    );
}

#[test]
fn what_an_overlay_has_made_is_not_undone() {
    let changed = |change: fn(&mut DogwatchWorkload)| {
        let mut installed = installed();
        change(&mut installed.workloads[0]);
        update(&ManifestsArgs::default(), &installed).unwrap_err()
    };
    let words = changed(|it| it.unprivileged = true);
    assert!(words.contains("runs without privileges"), "{words}");
    let words = changed(|it| it.containers[0].args.push("--identity=kubelet".into()));
    assert!(words.contains("the kubelet's identity"), "{words}");
    let words = changed(|it| it.volumes = vec!["run".into(), "sentinels".into()]);
    assert!(words.contains("has volume sentinels"), "{words}");
    let words = changed(|it| it.node_requirements = vec!["pool=workers".into()]);
    assert!(
        words.contains("runs only on nodes with pool=workers"),
        "{words}"
    );
    let words = changed(|it| it.pull_secrets = vec!["mine".into()]);
    assert!(
        words.contains("pulls its image with Secret mine"),
        "{words}"
    );
    let mut controller = installed();
    let control_plane = "node-role.kubernetes.io/control-plane=";
    controller.workloads[1].node_requirements = vec![control_plane.into()];
    let words = update(&ManifestsArgs::default(), &controller).unwrap_err();
    assert!(words.contains(control_plane), "{words}");
    let others = ManifestsArgs {
        only: vec![ManifestPart::Policies],
        ..ManifestsArgs::default()
    };
    update(&others, &controller).unwrap();
    let mut same = installed();
    same.workloads[0].volumes = vec!["run".into()];
    update(&ManifestsArgs::default(), &same).unwrap();
}

#[test]
fn the_right_to_delete_pods_stays_where_a_policy_or_a_flag_needs_it() {
    let may = |installed: &ClusterInstallation| {
        let objects = update(&ManifestsArgs::default(), installed).unwrap();
        let mut all = objects.iter();
        all.any(|it| it["metadata"]["name"] == "dogwatch-delete-pods")
    };
    assert!(!may(&installed()));
    let by_policy = ClusterInstallation {
        deletes_pods: true,
        ..installed()
    };
    assert!(may(&by_policy));
    let mut by_flag = installed();
    let flags = &mut by_flag.workloads[0].containers[0].args;
    flags.push("--on-drain-timeout=delete".into());
    assert!(may(&by_flag));
}

#[test]
fn the_account_for_a_workload_cluster_stands_in_its_namespace_and_is_bound_to_no_other() {
    let printed = render_workload_account("kube-dogs");
    assert!(printed.contains("-n kube-dogs get secret dogwatch-remediator-token"));
    let context = "context: {cluster: workload, user: dogwatch, namespace: kube-dogs}";
    assert!(printed.contains(context), "the remediator looks there");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    let accounts = objects
        .iter()
        .flat_map(|object| object["subjects"].as_array().into_iter().flatten());
    let accounts: Vec<&Value> = accounts.collect();
    assert_eq!(accounts.len(), 3);
    for account in accounts {
        let (name, namespace) = (&account["name"], &account["namespace"]);
        assert_eq!(
            (name, namespace),
            (&json!("dogwatch-remediator"), &json!("kube-dogs"))
        );
    }
    let token = of(&objects, "Secret")[0];
    assert_eq!(token["metadata"]["namespace"], "kube-dogs");
}

#[test]
fn the_right_to_restart_deployments_comes_with_a_policy_that_needs_it_and_its_limit_with_it() {
    let names = |installed: &ClusterInstallation| {
        let objects = update(&ManifestsArgs::default(), installed).unwrap();
        let mut names: Vec<String> = objects
            .iter()
            .filter_map(|it| it["metadata"]["name"].as_str())
            .filter(|name| name.contains("roll-first"))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&installed()), [""; 0]);
    let by_policy = ClusterInstallation {
        rolls_first: true,
        ..installed()
    };
    let right = "dogwatch-roll-first";
    let limit = "roll-first.dogwatch.dev";
    assert_eq!(names(&by_policy), [right, right, limit, limit]);
}

#[test]
fn the_right_to_read_machine_drain_rules_comes_with_a_policy_that_honours_them() {
    let may = |installed: &ClusterInstallation, args: &ManifestsArgs| {
        let objects = update(args, installed).unwrap();
        let mut all = objects.iter();
        all.any(|it| it["metadata"]["name"] == "dogwatch-machine-drain-rules")
    };
    assert!(!may(&installed(), &ManifestsArgs::default()));
    let by_policy = ClusterInstallation {
        honors_machine_rules: true,
        ..installed()
    };
    assert!(may(&by_policy, &ManifestsArgs::default()));
    let asked = ManifestsArgs {
        with_machine_drain_rules: true,
        ..ManifestsArgs::default()
    };
    assert!(may(&installed(), &asked));
}
