//! The page in a real Chromium. Source: specification §12.1.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod support;

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_testbed::browser::{Browser, PageSettings};
use dogwatch_web::{
    CommandRights, DashboardAccess, DashboardCommand, DashboardLimits, page_fingerprint,
};
use jiff::Timestamp;
use support::fleet::{fleet_in_trouble, fleet_of, hostile_fleet};
use support::{OPERATOR_TOKEN, READER_TOKEN, Rig};
use tokio::sync::{Mutex, MutexGuard};

/// One browser at a time: each takes a processor and 300 MB.
static ONE_BROWSER: Mutex<()> = Mutex::const_new(());

const PHONE: PageSettings = PageSettings {
    width: 360,
    height: 720,
    dark: false,
    scripts: true,
};
const DARK: PageSettings = PageSettings {
    width: 1280,
    height: 900,
    dark: true,
    scripts: true,
};

struct Viewer {
    browser: Browser,
    _turn: MutexGuard<'static, ()>,
}

impl Viewer {
    async fn start(settings: PageSettings) -> Self {
        let turn = ONE_BROWSER.lock().await;
        let mut browser = Browser::start().await.unwrap();
        browser.open_page(settings).await;
        Self {
            browser,
            _turn: turn,
        }
    }

    /// Opens the page and waits for the first view.
    async fn look_at(&mut self, rig: &Rig) {
        assert_eq!(self.browser.go_to(&rig.url).await, 200);
        self.see("sentence", "").await;
    }

    /// Waits until the element shows this text.
    async fn see(&mut self, id: &str, text: &str) {
        let script = format!(
            "document.getElementById({id:?})?.textContent.includes({}) ?? false",
            serde_json::json!(text)
        );
        self.browser.wait_until(&script).await;
    }

    async fn focused(&mut self, property: &str) -> String {
        let script = format!("document.activeElement.{property} ?? ''");
        let value = self.browser.evaluate_script(&script).await;
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Presses Tab until the focused element has this text or id.
    async fn tab_to(&mut self, wanted: &str) {
        for _ in 0..120 {
            self.browser.press_key("Tab").await;
            if self.focused("id").await == wanted || self.focused("textContent").await == wanted {
                return;
            }
        }
        panic!("no Tab leads to {wanted}");
    }

    async fn assert_no_complaints(&mut self) {
        assert_eq!(self.browser.take_complaints().await, [""; 0]);
    }

    async fn assert_accessible(&mut self, what: &str) {
        let violations = self.browser.find_accessibility_violations().await;
        assert!(violations.is_empty(), "{what}: {violations:#?}");
    }

    async fn assert_fits_the_screen(&mut self, what: &str) {
        let script = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let beyond = self.browser.evaluate_script(script).await;
        assert!(
            beyond.as_i64().unwrap() <= 0,
            "{what}: {beyond} pixels beyond"
        );
    }
}

async fn in_cluster(view: dogwatch_core::report::FleetView) -> Rig {
    Rig::start(DashboardAccess::ReadOnly, view).await
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_nodes_are_shown_with_few_elements_and_the_last_is_one_key_away() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = in_cluster(fleet_of(5_000, Timestamp::now())).await;
    viewer.look_at(&rig).await;
    viewer.see("sentence", "500 of 5000 done").await;
    let count = "document.querySelector('#nodes table').getAttribute('aria-rowcount')";
    assert_eq!(viewer.browser.evaluate_script(count).await, "5001");
    let elements = viewer
        .browser
        .evaluate_script("document.querySelectorAll('*').length")
        .await;
    assert!(elements.as_u64().unwrap() < 3_000, "{elements}");
    viewer
        .browser
        .evaluate_script("document.querySelector('#nodes .open').focus()")
        .await;
    viewer.browser.press_key("End").await;
    assert_eq!(viewer.focused("textContent").await, "gpu-0499");
    viewer.browser.press_key("ArrowUp").await;
    assert_eq!(viewer.focused("textContent").await, "storage-0498");
    viewer.browser.fill_field("#search", "worker-4242").await;
    viewer
        .browser
        .wait_until("document.querySelectorAll('#nodes tbody .open').length === 1")
        .await;
    viewer.assert_no_complaints().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_seen_and_sixty_changes_cost_no_memory() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let limits = DashboardLimits {
        update_interval: Duration::from_millis(5),
        ..DashboardLimits::default()
    };
    let now = Timestamp::now();
    let rig = Rig::start_with(DashboardAccess::ReadOnly, fleet_of(240, now), limits, 0).await;
    viewer.look_at(&rig).await;
    // What is grown once: compiled code, caches.
    let mut before = None;
    for number in 0..80 {
        let mut next = fleet_of(200 + number % 40, now);
        next.sentence = format!("Change {number} of the test.");
        rig.show(next);
        viewer.see("sentence", &format!("Change {number} of")).await;
        if number == 19 {
            before = Some(viewer.browser.measure_heap().await);
        }
    }
    let (before, after) = (before.unwrap(), viewer.browser.measure_heap().await);
    assert!(
        after.bytes < before.bytes + 1_500_000,
        "{before:?} → {after:?}"
    );
    assert!(
        after.dom_nodes < before.dom_nodes + 1_000,
        "{before:?} → {after:?}"
    );
    viewer.assert_no_complaints().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_finds_a_node_reads_its_explanation_and_reboots_it() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = Rig::start(
        DashboardAccess::OneTimeLink,
        fleet_of(240, Timestamp::now()),
    )
    .await;
    viewer.look_at(&rig).await;
    viewer.browser.press_key("Tab").await;
    assert_eq!(viewer.focused("textContent").await, "Skip to the fleet");
    viewer.browser.press_key("/").await;
    assert_eq!(viewer.focused("id").await, "search");
    viewer.browser.type_text("worker-0003").await;
    viewer
        .browser
        .wait_until("document.querySelectorAll('#nodes tbody .open').length === 1")
        .await;
    viewer.tab_to("worker-0003").await;
    viewer.browser.press_key("Enter").await;
    viewer
        .see(
            "detail",
            "node/worker-0003: waiting for 3m: LockHeldByOther",
        )
        .await;
    assert_eq!(
        viewer.focused("textContent").await,
        "worker-0003",
        "the panel's heading"
    );
    viewer.tab_to("Reboot").await;
    viewer.browser.press_key("Enter").await;
    viewer.see("dialog", "1 thing blocks a reboot now").await;
    assert_eq!(viewer.focused("id").await, "reason");
    viewer.browser.type_text("kernel update").await;
    viewer
        .see(
            "dialog",
            "dogwatch reboot node/worker-0003 '--reason=kernel update'",
        )
        .await;
    viewer.browser.press_key("Enter").await;
    viewer
        .see(
            "dialog",
            "done: reboot node/worker-0003 --reason=kernel update",
        )
        .await;
    viewer.see("announce", "Done.").await;
    viewer.browser.press_key("Escape").await;
    viewer.browser.press_key("Escape").await;
    viewer
        .browser
        .wait_until("document.getElementById('detail').hidden")
        .await;
    assert_eq!(
        viewer.focused("textContent").await,
        "worker-0003",
        "where it began"
    );
    let ran = rig.runner.ran.lock().unwrap().clone();
    let asked = DashboardCommand::Reboot {
        node: "worker-0003".into(),
        reason: "kernel update".into(),
    };
    assert!(ran.contains(&(asked, CommandRights::Process)), "{ran:?}");
    viewer.assert_no_complaints().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_accessible_in_light_and_dark_and_on_a_phone() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = in_cluster(fleet_in_trouble(240, Timestamp::now())).await;
    for settings in [PageSettings::default(), DARK, PHONE] {
        viewer.browser.open_page(settings).await;
        viewer.look_at(&rig).await;
        viewer.see("sentence", "1 thing needs you").await;
        viewer.assert_accessible("the page").await;
        viewer.assert_fits_the_screen("the page").await;
        viewer.browser.click_on("#out .open").await;
        viewer.see("detail", "LockHeldByOther").await;
        viewer.assert_accessible("the panel").await;
        viewer.assert_fits_the_screen("the panel").await;
        viewer.browser.click_on("#detail .actions button").await;
        viewer.see("dialog", "Your own token").await;
        viewer.assert_accessible("the dialog").await;
        viewer.assert_fits_the_screen("the dialog").await;
        viewer.assert_no_complaints().await;
    }
    viewer.browser.open_page(PageSettings::default()).await;
    viewer.browser.go_to(&format!("{}plain", rig.url)).await;
    viewer.assert_accessible("the page without scripts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_theme_follows_the_system_until_a_person_chooses() {
    let mut viewer = Viewer::start(DARK).await;
    let rig = in_cluster(fleet_of(5, Timestamp::now())).await;
    viewer.look_at(&rig).await;
    let ground = "getComputedStyle(document.body).backgroundColor";
    let dark = viewer.browser.evaluate_script(ground).await;
    viewer.browser.click_on("#theme").await;
    viewer.see("theme", "light").await;
    assert_ne!(viewer.browser.evaluate_script(ground).await, dark);
    viewer.look_at(&rig).await;
    viewer.see("theme", "light").await;
    viewer.browser.click_on("#theme").await;
    assert_eq!(viewer.browser.evaluate_script(ground).await, dark);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_said_and_resumed() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = in_cluster(fleet_of(5, Timestamp::now())).await;
    viewer.look_at(&rig).await;
    viewer.see("connection", "Live").await;
    let port = rig.address.port();
    rig.stop().await;
    viewer.see("connection", "Connection lost at").await;
    assert!(
        viewer
            .browser
            .read_text("#sentence")
            .await
            .contains("0 of 5 done"),
        "the old view stays"
    );
    let mut next = fleet_of(6, Timestamp::now());
    next.sentence = "The server is back.".into();
    let limits = DashboardLimits::default();
    let rig = Rig::start_with(DashboardAccess::ReadOnly, next, limits, port).await;
    viewer.see("sentence", "The server is back.").await;
    viewer.see("connection", "Live").await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_ended_is_said() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = Rig::start(DashboardAccess::OneTimeLink, fleet_of(5, Timestamp::now())).await;
    viewer.look_at(&rig).await;
    let port = rig.address.port();
    rig.stop().await;
    let limits = DashboardLimits::default();
    let view = fleet_of(5, Timestamp::now());
    let _rig = Rig::start_with(DashboardAccess::OneTimeLink, view, limits, port).await;
    viewer.see("connection", "This session has ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_time_link_leaves_no_token_in_the_address_and_no_cookie_for_scripts() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = Rig::start(DashboardAccess::OneTimeLink, fleet_of(5, Timestamp::now())).await;
    viewer.look_at(&rig).await;
    let address = viewer.browser.evaluate_script("location.href").await;
    assert_eq!(address, format!("http://{}/", rig.address));
    assert_eq!(viewer.browser.evaluate_script("document.cookie").await, "");
    let cookies = viewer.browser.list_cookies().await;
    assert_eq!(cookies[0]["httpOnly"], true);
    assert_eq!(cookies[0]["sameSite"], "Strict");
    viewer.browser.open_page(PageSettings::default()).await;
    assert_eq!(viewer.browser.go_to(&rig.url).await, 403, "another browser");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_cluster_an_action_is_done_with_the_viewers_token_or_not_at_all() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = in_cluster(fleet_of(240, Timestamp::now())).await;
    viewer.look_at(&rig).await;
    viewer.browser.click_on("#out .open").await;
    viewer.browser.click_on("#detail .actions button").await;
    viewer.see("dialog", "not stored").await;
    let submit = "#dialog button[type=submit]";
    viewer.browser.click_on(submit).await;
    assert_eq!(
        viewer.focused("id").await,
        "token",
        "the browser asks for it"
    );
    viewer.browser.fill_field("#token", READER_TOKEN).await;
    viewer.browser.click_on(submit).await;
    viewer
        .see("dialog", "not allowed to request a reboot")
        .await;
    viewer.browser.fill_field("#token", OPERATOR_TOKEN).await;
    viewer.browser.click_on(submit).await;
    viewer.see("dialog", "done: release node/").await;
    let stored = "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])";
    let stored = viewer.browser.evaluate_script(stored).await.to_string();
    assert!(!stored.contains("token\""), "{stored}");
    assert!(!stored.contains(OPERATOR_TOKEN), "{stored}");
    viewer.browser.press_key("Escape").await;
    viewer.browser.click_on("#detail .actions button").await;
    let field = viewer
        .browser
        .evaluate_script("document.getElementById('token').value")
        .await;
    assert_eq!(field, "", "the next action asks again");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_messages_are_texts_and_nothing_more() {
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = in_cluster(hostile_fleet(Timestamp::now())).await;
    *rig.runner.explanation.lock().unwrap() = support::fleet::MARKUP.into();
    for settings in [PageSettings::default(), PHONE] {
        viewer.browser.open_page(settings).await;
        viewer.look_at(&rig).await;
        viewer.see("sentence", "<img src=x onerror").await;
        viewer.see("nodes", "<script>").await;
        viewer
            .browser
            .evaluate_script("location.hash = 'node/worker-0003'")
            .await;
        viewer.see("detail", "<script>").await;
        let images = "document.querySelectorAll('img').length + document.scripts.length";
        assert_eq!(
            viewer.browser.evaluate_script(images).await,
            2,
            "the icon and the page's script"
        );
        let title = viewer.browser.evaluate_script("document.title").await;
        assert!(!title.as_str().unwrap().contains("owned"));
        let turned = viewer
            .browser
            .evaluate_script("document.getElementById('nodes').textContent.includes('\\u202e')")
            .await;
        assert_eq!(turned, false, "nothing turns the direction of other texts");
        viewer
            .assert_fits_the_screen("10 KiB without a space")
            .await;
        viewer
            .browser
            .evaluate_script("location.hash = 'node/<b>/../../x'")
            .await;
        viewer
            .browser
            .go_to(&format!("{}#host/..%2f..%2f/x", rig.url))
            .await;
        viewer.assert_no_complaints().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_there_are_readable_tables() {
    let settings = PageSettings {
        scripts: false,
        ..PageSettings::default()
    };
    let mut viewer = Viewer::start(settings).await;
    let rig = in_cluster(fleet_of(240, Timestamp::now())).await;
    viewer.browser.go_to(&format!("{}plain", rig.url)).await;
    let text = viewer.browser.read_text("main").await;
    assert!(text.contains("24 of 240 done, 4 out, 212 wait."), "{text}");
    assert!(text.contains("PodDisruptionBudget shop/web allows no disruption"));
    viewer.browser.go_to(&rig.url).await;
    let text = viewer.browser.read_text("body").await;
    assert!(
        text.contains("24 of 240 done") || text.contains("Open the page without scripts"),
        "{text}"
    );
}

// ── pictures ────────────────────────────────────────────────────────────────────────────────────

/// Set to make the pictures of the docs anew.
const PICTURES_VARIABLE: &str = "DOGWATCH_PICTURES";
const MAX_PICTURE_BYTES: u64 = 150_000;
const PICTURES: [&str; 4] = [
    "dashboard",
    "dashboard-dark",
    "dashboard-detail",
    "dashboard-phone",
];

fn pictures_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pictures_in_the_docs_are_of_this_page() {
    let folder = pictures_folder();
    let fingerprint = format!("{:016x}\n", page_fingerprint());
    if std::env::var_os(PICTURES_VARIABLE).is_some() {
        make_pictures().await;
        std::fs::write(folder.join("page-fingerprint.txt"), &fingerprint).unwrap();
    }
    let made_of = std::fs::read_to_string(folder.join("page-fingerprint.txt")).unwrap_or_default();
    assert_eq!(
        made_of, fingerprint,
        "the page has changed since the pictures were made: run this test with {PICTURES_VARIABLE}=1, and look at them"
    );
    for name in PICTURES {
        let size = std::fs::metadata(folder.join(format!("{name}.png")))
            .unwrap()
            .len();
        assert!(size <= MAX_PICTURE_BYTES, "{name}: {size} bytes");
    }
}

async fn make_pictures() {
    let folder = pictures_folder();
    std::fs::create_dir_all(&folder).unwrap();
    let mut viewer = Viewer::start(PageSettings::default()).await;
    let rig = in_cluster(fleet_of(240, Timestamp::now())).await;
    let trouble = in_cluster(fleet_in_trouble(240, Timestamp::now())).await;
    let path = |name: &str| folder.join(format!("{name}.png"));
    let wide = PageSettings {
        width: 1200,
        height: 840,
        ..PageSettings::default()
    };
    for (name, rig, settings) in [
        ("dashboard", &rig, wide),
        (
            "dashboard-dark",
            &trouble,
            PageSettings { dark: true, ..wide },
        ),
        (
            "dashboard-detail",
            &rig,
            PageSettings {
                height: 660,
                ..wide
            },
        ),
        (
            "dashboard-phone",
            &rig,
            PageSettings {
                width: 390,
                height: 844,
                dark: false,
                scripts: true,
            },
        ),
    ] {
        viewer.browser.open_page(settings).await;
        viewer.look_at(rig).await;
        viewer.see("connection", "Live").await;
        if name == "dashboard-detail" {
            *rig.runner.explanation.lock().unwrap() = EXPLANATION.into();
            viewer.browser.click_on("#out .draining .open").await;
            viewer.see("detail", "what you can do").await;
        }
        viewer.browser.take_screenshot(&path(name)).await;
    }
}

const EXPLANATION: &str = "  asked     sentinel file /run/reboot-required\n  policy    RebootPolicy workers\n  lock      dogwatch-workers-0 is held by this node for 6m\n  pods      shop/web-7c9f stays: PodDisruptionBudget shop/web\n            allows no disruption\n  deadline  in 24m the drain is given up\nwhat you can do\n  → scale shop/web to 3 pods\n";
