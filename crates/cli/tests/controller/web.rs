//! Component `web` on the real API server: it looks with its own rights and acts with the viewer's.

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{Controller, eventually, get, installed};

const WEB_RIGHTS: &str = include_str!("../../../../deploy/web/rbac.yaml");

/// The status, and the body.
async fn ask(address: &str, path: &str, more: &[&str]) -> (u16, Value) {
    let url = format!("http://{address}{path}");
    let words = ["-sS", "-w", "\n%{http_code}", &url];
    let output = Command::new("curl")
        .args(words)
        .args(more)
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (
        status.parse().unwrap(),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

async fn reboot(address: &str, token: &str) -> (u16, Value) {
    let (origin, bearer) = (
        format!("Origin: http://{address}"),
        format!("Authorization: Bearer {token}"),
    );
    let form = [
        "-H",
        &origin,
        "-H",
        &bearer,
        "-H",
        "Content-Type: application/json",
        "-d",
        r#"{"reason":"kernel"}"#,
    ];
    ask(address, "/api/actions/reboot/n1", &form).await
}

async fn kubectl(plane: &ControlPlane, words: &[&str], input: &str) -> String {
    plane.run_kubectl(words, input).await.unwrap()
}

/// A Node, a viewer who may look, and a viewer who may act.
async fn stage(plane: &ControlPlane) {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } });
    kubectl(plane, &["create", "-f", "-"], &node.to_string()).await;
    kubectl(plane, &["apply", "--server-side", "-f", "-"], WEB_RIGHTS).await;
    for account in ["reader", "operator"] {
        kubectl(
            plane,
            &["create", "serviceaccount", account, "-n", "dogwatch"],
            "",
        )
        .await;
    }
    for (account, role) in [
        ("reader", "dogwatch-viewer"),
        ("operator", "dogwatch-viewer"),
        ("operator", "dogwatch-operator"),
    ] {
        let subject = format!("--serviceaccount=dogwatch:{account}");
        let name = format!("{account}-{role}");
        let cluster_role = format!("--clusterrole={role}");
        kubectl(
            plane,
            &[
                "create",
                "clusterrolebinding",
                &name,
                &cluster_role,
                &subject,
            ],
            "",
        )
        .await;
        let role = format!("--role={role}");
        kubectl(
            plane,
            &[
                "create",
                "rolebinding",
                &name,
                "-n",
                "dogwatch",
                &role,
                &subject,
            ],
            "",
        )
        .await;
    }
    plane.wait_until_rights_are_in_force().await.unwrap();
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one viewer's way, step by step")]
async fn the_dashboard_in_the_cluster_looks_by_its_own_rights_and_acts_by_the_viewers_token() {
    let plane = installed(&[]).await;
    stage(&plane).await;
    let kubeconfig = plane
        .kubeconfig_of("dogwatch", "dogwatch-web")
        .await
        .unwrap();
    let flags = [
        "--components=web",
        "--web-listen=127.0.0.1:0",
        "--listen=off",
    ];
    let mut web = Controller::with(&kubeconfig, &flags);
    let address = web.field("serves the dashboard", "address").await;
    let view = eventually(|| async {
        let (_, view) = ask(&address, "/api/view", &[]).await;
        let is_read = view["counts"]["nodes"] == 1 && view["unreadable"].is_null();
        if is_read {
            Ok(view)
        } else {
            Err(view.to_string())
        }
    })
    .await;
    assert_eq!(view["nodes"][0]["name"], "n1");
    let (status, explained) = ask(&address, "/api/explain/node/n1", &[]).await;
    assert_eq!(
        (status, explained["outcome"].as_str()),
        (200, Some("succeeded")),
        "{explained}"
    );
    let (status, plan) = ask(&address, "/api/plan/node/n1", &[]).await;
    assert_eq!(status, 200, "{plan}");
    assert!(
        !plan["text"].as_str().unwrap().contains("not allowed"),
        "{plan}"
    );

    let reader = plane
        .service_account_token("dogwatch", "reader", None)
        .await
        .unwrap();
    let (status, refused) = reboot(&address, &reader).await;
    assert_eq!(
        (status, refused["outcome"].as_str()),
        (403, Some("forbidden")),
        "{refused}"
    );
    let (_, refused) = reboot(&address, "nobodys-token").await;
    assert_ne!(refused["outcome"], "succeeded", "{refused}");
    let asked = get(&plane, &["nodereboots"]).await;
    assert_eq!(asked["items"], json!([]));

    let operator = plane
        .service_account_token("dogwatch", "operator", None)
        .await
        .unwrap();
    let (status, done) = reboot(&address, &operator).await;
    assert_eq!(
        (status, done["outcome"].as_str()),
        (200, Some("succeeded")),
        "{done}"
    );
    let asked = get(&plane, &["nodereboots"]).await;
    let spec = &asked["items"][0]["spec"];
    assert_eq!(spec["nodeName"], "n1");
    assert_eq!(spec["requester"], "system:serviceaccount:dogwatch:operator");

    web.signal(rustix::process::Signal::TERM);
    assert!(web.ended().await.success());
    for token in [&reader, &operator] {
        assert!(!web.log().contains(token.as_str()), "a token is in the log");
    }
    let own = plane
        .audit_entries_of("system:serviceaccount:dogwatch:dogwatch-web")
        .await
        .unwrap();
    assert!(own.len() > 5, "{own:?}");
    for entry in own {
        let reads = ["get", "list", "watch"].contains(&entry.verb.as_str());
        assert!(reads, "{entry:?}");
    }
}
