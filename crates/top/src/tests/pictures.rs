//! Whole screens, compared with committed ones. `cargo xtask generate` writes them.

use std::fs;
use std::path::Path;

use dogwatch_core::report::FleetView;

use super::fixture::{rollout_view, urgent_view};
use super::transcript::{SCENARIO, transcript_frames};
use super::{draw_view, on_pane, press_keys, screen_text};
use crate::keys::TopKey;
use crate::pane::TopPane;
use crate::state::TopState;
use crate::svg::{SvgPicture, render_svg};

const WRITE_VARIABLE: &str = "DOGWATCH_WRITE_GENERATED";

fn compare_file(path: &str, made: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, made).unwrap();
        return;
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == made,
        "{path} is stale: cargo xtask generate writes it\n{made}"
    );
}

fn compare_screen(name: &str, view: &FleetView, state: &TopState) {
    let path = format!("src/tests/screens/{name}.txt");
    compare_file(&path, &screen_text(view, state));
}

#[test]
fn generated_screens_are_as_committed() {
    let rollout = rollout_view();
    for (columns, rows) in [(40, 12), (80, 24), (160, 50)] {
        let size = format!("{columns}x{rows}");
        let at = |pane| on_pane(pane, columns, rows);
        compare_screen(&format!("out-{size}"), &rollout, &at(TopPane::Out));
        let timeline = at(TopPane::Timeline);
        compare_screen(&format!("timeline-{size}"), &rollout, &timeline);
        compare_screen(&format!("person-{size}"), &urgent_view(), &at(TopPane::Out));
    }
    for pane in TopPane::ALL {
        let name = format!("pane-{}", pane.pane_title().to_lowercase());
        compare_screen(&name, &rollout, &on_pane(pane, 80, 24));
    }
    for (name, key) in [("help", '?'), ("question", 'r')] {
        let state = on_pane(TopPane::Out, 80, 24);
        let (state, _) = press_keys(state, &[TopKey::Char(key)], &rollout);
        compare_screen(name, &rollout, &state);
    }
}

/// Larger pictures would be slow to load in the README.
const MAX_PICTURE_BYTES: usize = 100 * 1024;

#[test]
fn generated_picture_of_top_is_as_committed() {
    let frames = [(
        draw_view(&rollout_view(), &on_pane(TopPane::Out, 120, 36)),
        0,
    )];
    let svg = render_svg(&SvgPicture {
        title: "dogwatch top during a rollout: who is out, a timeline, who waits and why",
        frames: &frames,
    });
    assert!(svg.len() <= MAX_PICTURE_BYTES, "{} bytes", svg.len());
    compare_file("../../docs/pictures/top.svg", &svg);
}

#[test]
fn generated_picture_of_the_demo_is_as_committed() {
    let frames = transcript_frames(SCENARIO);
    let svg = render_svg(&SvgPicture {
        title: "Four nodes of the simulated cluster reboot one after the other, line by line",
        frames: &frames,
    });
    assert!(frames.len() > 5, "{} frames", frames.len());
    assert!(svg.len() <= MAX_PICTURE_BYTES, "{} bytes", svg.len());
    compare_file("../../docs/pictures/demo.svg", &svg);
}
