//! Tests of the testbed's control plane.

use std::time::Duration;

use dogwatch_testbed::{ControlPlane, TokenPodRef, shared_control_plane};

const LEASE: &str = r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"selftest","namespace":"default"}}"#;

#[tokio::test]
async fn what_was_asked_is_in_the_audit_log() {
    let control_plane = shared_control_plane().await;
    let mark = control_plane.audit_mark().await.unwrap();
    control_plane
        .run_kubectl(&["create", "-f", "-"], LEASE)
        .await
        .unwrap();

    let entries = control_plane.audit_entries_since(mark).await.unwrap();
    // The API server creates a Lease for itself, in another namespace.
    let creates: Vec<_> = entries
        .iter()
        .filter(|entry| entry.resource == "leases" && entry.verb == "create")
        .filter(|entry| entry.namespace == "default")
        .collect();
    assert_eq!(creates.len(), 1, "{entries:#?}");
    assert_eq!(creates[0].code, 201);
    assert_eq!(creates[0].user, "admin");
    assert!(
        creates[0].user_agent.starts_with("kubectl/"),
        "{}",
        creates[0].user_agent
    );
}

#[tokio::test]
async fn a_right_that_was_waited_for_is_in_force() {
    let control_plane = shared_control_plane().await;
    let somebody = "somebody-with-a-right";
    for words in [
        [
            "create",
            "clusterrole",
            somebody,
            "--verb=get",
            "--resource=nodes",
        ],
        [
            "create",
            "clusterrolebinding",
            somebody,
            "--clusterrole=somebody-with-a-right",
            "--user=somebody-with-a-right",
        ],
    ] {
        control_plane.run_kubectl(&words, "").await.unwrap();
    }
    control_plane
        .wait_until_rights_are_in_force()
        .await
        .unwrap();
    let may = [
        "auth",
        "can-i",
        "get",
        "nodes",
        "--as=somebody-with-a-right",
    ];
    assert_eq!(
        control_plane.run_kubectl(&may, "").await.unwrap().trim(),
        "yes"
    );
}

#[tokio::test]
async fn a_bound_token_names_its_account_and_its_node() {
    let control_plane = shared_control_plane().await;
    let objects = r#"{"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"Node","metadata":{"name":"bound"}},
        {"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bound","namespace":"default"}},
        {"apiVersion":"v1","kind":"Pod","metadata":{"name":"bound","namespace":"default"},"spec":{"nodeName":"bound",
         "serviceAccountName":"bound","containers":[{"name":"c","image":"none"}]}}]}"#;
    control_plane
        .run_kubectl(&["create", "-f", "-"], objects)
        .await
        .unwrap();
    let pod = TokenPodRef {
        name: "bound",
        uid: None,
    };
    let token = control_plane
        .service_account_token("default", "bound", Some(pod))
        .await
        .unwrap();
    let kubeconfig = control_plane.kubeconfig_for(&token).unwrap();

    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let who = control_plane
        .run_kubectl(&[&kubeconfig, "auth", "whoami", "-o", "json"], "")
        .await
        .unwrap();
    assert!(who.contains("system:serviceaccount:default:bound"), "{who}");
    let who: serde_json::Value = serde_json::from_str(&who).unwrap();
    assert_eq!(
        who["status"]["userInfo"]["extra"]["authentication.kubernetes.io/node-name"][0],
        "bound"
    );
}

#[tokio::test]
async fn the_controllers_are_real() {
    let control_plane = shared_control_plane().await;
    let budget = r#"{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b","namespace":"default"},
        "spec":{"maxUnavailable":1,"selector":{"matchLabels":{"app":"b"}}}}"#;
    control_plane
        .run_kubectl(&["create", "-f", "-"], budget)
        .await
        .unwrap();
    let wait = [
        "wait",
        "--for=jsonpath={.status.observedGeneration}=1",
        "--timeout=180s",
        "pdb/b",
    ];
    control_plane.run_kubectl(&wait, "").await.unwrap();
}

#[tokio::test]
async fn the_api_comes_back_on_its_port_with_what_it_knew() {
    let control_plane = ControlPlane::start().await.unwrap();
    control_plane
        .run_kubectl(&["create", "-f", "-"], LEASE)
        .await
        .unwrap();
    let url = control_plane.api_url();

    control_plane.stop_api();
    let refused = control_plane
        .run_kubectl(&["get", "leases"], "")
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("refused"), "{refused}");
    assert!(
        control_plane
            .audit_entries()
            .await
            .unwrap()
            .iter()
            .any(|entry| entry.resource == "leases")
    );

    control_plane.start_api().await.unwrap();
    assert_eq!(control_plane.api_url(), url);
    control_plane
        .run_kubectl(&["get", "lease", "selftest"], "")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_frozen_api_answers_nobody_until_it_is_thawed() {
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .unwrap();
    control_plane.freeze_api().unwrap();
    let silent = control_plane
        .run_kubectl(&["get", "--raw=/version", "--request-timeout=1s"], "")
        .await;
    assert!(silent.is_err());
    control_plane.thaw_api().unwrap();
    control_plane
        .run_kubectl(&["get", "--raw=/version"], "")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_kubelet_may_change_its_own_node_only_and_not_its_restricted_labels() {
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .with_user("kubelet-a", "system:node:a", &["system:nodes"])
        .start()
        .await
        .unwrap();
    for node in ["a", "b"] {
        let node = format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{node}"}}}}"#);
        control_plane
            .run_kubectl(&["create", "-f", "-"], &node)
            .await
            .unwrap();
    }
    let kubeconfig = format!(
        "--kubeconfig={}",
        control_plane.kubeconfig_for("kubelet-a").unwrap().display()
    );
    let annotate = |node| [kubeconfig.as_str(), "annotate", "node", node, "x=y"];
    control_plane.run_kubectl(&annotate("a"), "").await.unwrap();
    let label = "node-restriction.kubernetes.io/x=y";
    for refused in [
        annotate("b"),
        [kubeconfig.as_str(), "label", "node", "a", label],
    ] {
        let error = control_plane
            .run_kubectl(&refused, "")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("Forbidden"), "{error}");
    }
}

#[tokio::test]
async fn a_dropped_control_plane_leaves_neither_process_nor_folder() {
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .start()
        .await
        .unwrap();
    let (folder, url) = (control_plane.folder().to_owned(), control_plane.api_url());
    drop(control_plane);
    assert!(!folder.exists());
    let address = url.trim_start_matches("https://").parse().unwrap();
    assert!(std::net::TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_err());
}

#[tokio::test]
async fn a_controller_that_does_not_exist_is_said_at_the_start() {
    let builder = ControlPlane::builder().with_controllers(["no-such-controller"]);
    let error = builder.start().await.unwrap_err().to_string();
    assert!(error.contains("no-such-controller"), "{error}");
}
