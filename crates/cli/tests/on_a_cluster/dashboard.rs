//! Tests `dogwatch dashboard` and component `web` of the controller: what the page's server does is
//! what the commands do.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::stage::{Stage, ended};
use super::{NODE_REBOOTS, rebooting_cluster, with_node_reboots};

/// A running dashboard, killed on drop.
struct Dashboard {
    child: Child,
    _output: Lines<BufReader<ChildStdout>>,
    /// `http://127.0.0.1:PORT`.
    origin: String,
    link: String,
    cookies: tempfile::NamedTempFile,
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Dashboard {
    fn start(stage: &Stage) -> Self {
        Self::of(stage.dogwatch(&["dashboard", "--no-open"]))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let link = output
            .find_map(|line| {
                line.unwrap()
                    .trim()
                    .strip_prefix("http")
                    .map(|rest| format!("http{rest}"))
            })
            .unwrap();
        let origin = link.split_once("/?").unwrap().0.to_owned();
        Self {
            child,
            _output: output,
            origin,
            link,
            cookies: tempfile::NamedTempFile::new().unwrap(),
        }
    }

    fn open_link(&self) {
        let (status, _) = curl(&["-c", path_text(self.cookies.path()), &self.link]);
        assert_eq!(status, 200);
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let url = format!("{}{path}", self.origin);
        curl(&["-b", path_text(self.cookies.path()), &url])
    }

    fn act(&self, action: &str, form: &Value) -> (u16, Value) {
        let url = format!("{}/api/actions/{action}", self.origin);
        let origin = format!("Origin: {}", self.origin);
        let body = form.to_string();
        curl(&[
            "-b",
            path_text(self.cookies.path()),
            "-H",
            &origin,
            "-H",
            "Content-Type: application/json",
            "-d",
            &body,
            &url,
        ])
    }

    /// Waits for a view that this accepts.
    fn wait_for_view(&self, accepts: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, view) = self.get("/api/view");
            if accepts(&view) {
                return view;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The status, and the body if it is JSON.
fn curl(args: &[&str]) -> (u16, Value) {
    let output = Command::new("curl")
        .args(["-sS", "-w", "\n%{http_code}"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (
        status.parse().unwrap(),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

#[test]
fn the_dashboard_shows_the_cluster_and_explains_as_the_command_does() {
    let stage = rebooting_cluster();
    let dashboard = Dashboard::start(&stage);
    assert_eq!(dashboard.get("/api/view").0, 401);
    dashboard.open_link();
    let view = dashboard.wait_for_view(|view| view["counts"]["nodes"] == 3);
    assert_eq!(view["out"][0]["name"], "n1");
    assert_eq!(view["waiting"][0]["name"], "n2");
    let (status, explained) = dashboard.get("/api/explain/node/n1");
    let (_, text, warnings) = ended(stage.dogwatch(&["explain", "node/n1"]));
    let text = warnings + &text;
    let first = |text: &str| {
        text.lines()
            .next()
            .unwrap_or_default()
            .split(':')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let shown = explained["text"].as_str().unwrap();
    assert_eq!(status, 200, "{explained}");
    assert_eq!(first(shown), first(&text));
    assert_eq!(
        shown.lines().count(),
        text.lines().count(),
        "{shown}\n{text}"
    );
    assert_eq!(explained["command"], "dogwatch explain node/n1");
    let (status, missing) = dashboard.get("/api/explain/node/n9");
    assert_eq!(
        (status, missing["outcome"].as_str()),
        (404, Some("notFound"))
    );
    assert!(
        missing["text"]
            .as_str()
            .unwrap()
            .contains("there is no Node n9"),
        "{missing}"
    );
}

#[test]
fn an_action_on_the_page_writes_what_the_command_writes() {
    let stage = with_node_reboots();
    let dashboard = Dashboard::start(&stage);
    dashboard.open_link();
    let (status, plan) = dashboard.get("/api/plan/node/n3");
    assert_eq!(status, 200, "{plan}");
    let (status, asked) = dashboard.act("hold/n3", &json!({ "reason": "new memory; $(reboot)" }));
    assert_eq!(status, 200, "{asked}");
    assert_eq!(
        asked["command"],
        "dogwatch hold node/n3 '--reason=new memory; $(reboot)'"
    );
    let list = stage.get(NODE_REBOOTS);
    let held = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["spec"]["method"] == "Hold")
        .unwrap();
    assert_eq!(held["spec"]["nodeName"], "n3");
    assert_eq!(held["spec"]["reason"], "new memory; $(reboot)");
    let (status, released) = dashboard.act("release/n3", &json!({}));
    assert_eq!(
        (status, released["outcome"].as_str()),
        (200, Some("succeeded")),
        "{released}"
    );
}

#[test]
fn an_abort_of_a_node_that_is_going_down_asks_first_and_never_on_the_terminal() {
    let stage = rebooting_cluster();
    stage.node("n4", Some("rebooting"), 40);
    let dashboard = Dashboard::start(&stage);
    dashboard.open_link();
    let (status, refused) = dashboard.act("abort/n4", &json!({}));
    assert_eq!(
        (status, refused["outcome"].as_str()),
        (200, Some("failed")),
        "{refused}"
    );
    assert!(
        refused["text"].as_str().unwrap().contains("--yes"),
        "{refused}"
    );
    let (status, done) = dashboard.act("abort/n4", &json!({ "althoughRebooting": true }));
    assert_eq!(
        (status, done["outcome"].as_str()),
        (200, Some("succeeded")),
        "{done}"
    );
}

#[test]
fn the_demo_has_a_dashboard_of_its_cluster() {
    let mut demo = super::stage::alone(Path::new("/"));
    // A browser that shows nothing.
    demo.args(["demo", "--dashboard"]).env("BROWSER", "true");
    let dashboard = Dashboard::of(demo);
    dashboard.open_link();
    let (_, about) = dashboard.get("/api/about");
    let rights = about["rights"].as_str().unwrap();
    assert!(rights.contains("everybody may do everything"), "{rights}");
    let view = dashboard.wait_for_view(|view| view["counts"]["out"].as_u64() > Some(0));
    let node = view["out"][0]["name"].as_str().unwrap();
    let (status, explained) = dashboard.get(&format!("/api/explain/node/{node}"));
    assert_eq!(status, 200, "{explained}");
    assert!(
        explained["text"].as_str().unwrap().starts_with(node),
        "{explained}"
    );
}

#[test]
fn a_dashboard_that_cannot_start_says_why_and_what_to_do() {
    let stage = rebooting_cluster();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, errors) =
        ended(stage.dogwatch(&["dashboard", "--no-open", "--listen", &address]));
    assert_eq!(code, 1);
    assert!(
        errors.contains("the port is in use")
            && errors.contains("→ for any free port: --listen 127.0.0.1:0"),
        "{errors}"
    );
    let (code, _, errors) = ended(stage.dogwatch(&["dashboard", "--listen", "0.0.0.0:0"]));
    assert!(
        code == 2 && errors.contains("not loopback") && errors.contains("component web"),
        "{errors}"
    );
    let away = Stage::away();
    let (code, _, errors) = ended(away.dogwatch(&["dashboard", "--no-open"]));
    assert!(
        code == 4 && errors.contains("failed to list Nodes"),
        "{errors}"
    );
}
