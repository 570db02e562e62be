//! What a viewer gets.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod support;

use dogwatch_web::{CommandRights, DashboardAccess, DashboardCommand, list_page_files};
use jiff::Timestamp;
use support::fleet::fleet_of;
use support::{EventReader, Rig};

async fn in_cluster(count: usize) -> Rig {
    Rig::start(DashboardAccess::ReadOnly, fleet_of(count, Timestamp::now())).await
}

#[tokio::test]
async fn the_page_and_all_its_files_are_served() {
    let rig = in_cluster(5).await;
    for file in list_page_files() {
        let answer = rig.get(file.path, &[]).await;
        assert_eq!(answer.status, 200, "{}", file.path);
        assert_eq!(answer.header("content-type"), Some(file.content_type));
        assert_eq!(answer.body, file.content);
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_whole_view_and_goes_on_with_changes() {
    let rig = in_cluster(5).await;
    let mut reader = EventReader::open(&rig, &[]).await;
    let head = reader.read_until("\r\n\r\n").await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    reader.read_until("event: alive\ndata: \"").await;
    reader.read_until("event: view\ndata: ").await;
    let view = reader.read_until("\n\n").await;
    let view: serde_json::Value = serde_json::from_str(&view).unwrap();
    assert_eq!(view["version"], 1);
    assert_eq!(view["nodes"].as_array().unwrap().len(), 5);
    let mut next = fleet_of(5, Timestamp::now());
    next.sentence = "All 5 nodes are done.".into();
    rig.show(next);
    reader.read_until("All 5 nodes are done.").await;
}

#[tokio::test]
async fn a_viewer_that_comes_back_gets_the_view_only_if_it_changed() {
    let rig = in_cluster(5).await;
    let mut reader = EventReader::open(&rig, &[]).await;
    reader.read_until("id: ").await;
    let id = reader.read_until("\n").await.trim().to_owned();
    drop(reader);
    let mut again = EventReader::open(&rig, &[("Last-Event-ID", &id)]).await;
    again.read_until("event: alive").await;
    let mut next = fleet_of(5, Timestamp::now());
    next.sentence = "Another sentence.".into();
    rig.show(next);
    let between = again.read_until("Another sentence.").await;
    assert_eq!(between.matches("event: view").count(), 1, "{between}");
    let mut stranger = EventReader::open(&rig, &[("Last-Event-ID", "other-1")]).await;
    stranger.read_until("Another sentence.").await;
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let rig = in_cluster(5).await;
    let mut reader = EventReader::open(&rig, &[]).await;
    reader.read_until("event: view").await;
    rig.stop().await;
    reader.read_to_end().await;
}

#[tokio::test]
async fn an_action_is_a_command_line_and_the_answer_shows_it() {
    let rig = Rig::start(DashboardAccess::OneTimeLink, fleet_of(5, Timestamp::now())).await;
    let cookie = rig.open_link().await;
    let viewer = [("Cookie", cookie.as_str())];
    for (path, form, command) in [
        (
            "reboot/n1",
            r#"{"reason":"it's time"}"#,
            r"dogwatch reboot node/n1 '--reason=it'\''s time'",
        ),
        ("hold/n1", "{}", "dogwatch hold node/n1"),
        ("release/n1", "{}", "dogwatch release node/n1"),
        (
            "abort/n1",
            r#"{"althoughRebooting":true}"#,
            "dogwatch abort node/n1 --no-wait --yes",
        ),
        (
            "pause/workers",
            r#"{"reason":"x"}"#,
            "dogwatch pause workers --reason=x",
        ),
        ("resume/workers", "{}", "dogwatch resume workers"),
    ] {
        let answer = rig
            .post(&format!("/api/actions/{path}"), &viewer, form)
            .await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["command"], command);
        assert_eq!(body["outcome"], "succeeded");
        assert!(body["text"].as_str().unwrap().starts_with("done: "));
    }
    let ran = rig.runner.ran.lock().unwrap();
    assert!(
        ran.iter()
            .all(|(_, rights)| *rights == CommandRights::Process)
    );
    let resumed = DashboardCommand::Resume {
        policy: "workers".into(),
    };
    assert_eq!(ran.last().unwrap().0, resumed);
}

#[tokio::test]
async fn explanations_and_plans_are_what_the_command_printed() {
    let rig = in_cluster(5).await;
    *rig.runner.explanation.lock().unwrap() = "  lock  <b>free</b>\n".into();
    let answer = rig.get("/api/explain/host/metal/h1", &[]).await;
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        body["text"],
        "host/metal/h1: waiting for 3m: LockHeldByOther\n  lock  <b>free</b>\n"
    );
    assert_eq!(body["command"], "dogwatch explain host/metal/h1");
    let plan = rig.get("/api/plan/node/n1", &[]).await;
    assert_eq!(
        plan.status, 200,
        "a plan that is blocked is an answer: {plan:?}"
    );
    assert!(plan.body.contains("\"outcome\":\"blocked\""));
}

#[tokio::test]
async fn the_page_says_with_which_rights_it_acts() {
    for (access, rights) in [
        (
            DashboardAccess::OneTimeLink,
            "acts with the rights of your kubeconfig",
        ),
        (
            DashboardAccess::DemoLink,
            "acts on the demo's cluster, where everybody may do everything",
        ),
    ] {
        let rig = Rig::start(access, fleet_of(5, Timestamp::now())).await;
        let cookie = rig.open_link().await;
        let answer = rig.get("/api/about", &[("Cookie", cookie.as_str())]).await;
        let about: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(about["rights"], rights);
    }
    let answer = in_cluster(5).await.get("/api/about", &[]).await;
    assert!(
        answer
            .body
            .contains("looks only; actions need your own token")
    );
}
