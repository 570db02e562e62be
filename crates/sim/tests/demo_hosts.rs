//! The demo's hosts, in real time.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(clippy::disallowed_methods, reason = "the demo plays in real time")]

use std::fmt::Write as _;

use dogwatch_sim::demo::{Demo, DemoConfig};
use jiff::Timestamp;

/// Plays the demo to its end and returns its whole output.
async fn play(speed: f64) -> (Demo, String) {
    let folder = std::env::temp_dir().join(format!("dogwatch-demo-hosts-{}", std::process::id()));
    let config = DemoConfig {
        nodes: 2,
        control_plane: 1,
        seed: 3,
        speed,
        folder: folder.clone(),
        now: Timestamp::now(),
    };
    let mut demo = Demo::start_demo(config).await.unwrap();
    let mut text = String::new();
    while !demo.is_finished() {
        for told in demo.next_lines().await.unwrap() {
            writeln!(text, "{told}").unwrap();
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
    (demo, text)
}

#[tokio::test]
async fn one_host_is_rebooted_one_is_held_off_and_one_that_failed_is_proved_off_before_another_writes()
 {
    let (demo, text) = play(4.0).await;
    let verdict = demo.judge_demo();
    println!("{text}\n{verdict:#?}");
    assert!(verdict.has_passed(), "{text}\n{verdict:#?}");
    for promise in [
        "every annotated host was rebooted or kept off, every failed host is back, and all hosts are on again",
        "each host had exactly one power-off",
        "the host with the key stayed off until the key was removed",
        "off was proved by two readings before each power-on",
        "no two machines ever wrote to the volume at once",
        "the second writer started only after the first host was proved off",
        "the failed node is back, with its labels, after exactly one power-off",
    ] {
        let is_checked = verdict.0.iter().any(|check| check.what == promise);
        assert!(is_checked, "{promise} is not checked: {verdict:#?}");
    }
}
