//! What the keys do.

use super::fixture::{idle_view, rollout_view};
use super::{on_pane, press_keys, screen_text, state_of_size};
use crate::TopAction;
use crate::keys::TopKey;
use crate::pane::TopPane;
use crate::state::TopOverlay;

fn char_keys(text: &str) -> Vec<TopKey> {
    text.chars().map(TopKey::Char).collect()
}

fn words_of(action: &TopAction) -> Vec<&str> {
    match action {
        TopAction::Run { words, .. } => words.iter().map(String::as_str).collect(),
        TopAction::Redraw | TopAction::Quit => Vec::new(),
    }
}

#[test]
fn nothing_is_run_before_the_person_has_seen_the_command_and_said_yes() {
    let view = rollout_view();
    for (key, expected) in [
        (
            "r",
            "dogwatch reboot w-03 --reason 'asked for in dogwatch top'",
        ),
        ("a", "dogwatch abort w-03 --no-wait"),
        (
            "p",
            "dogwatch pause workers --reason 'paused in dogwatch top'",
        ),
    ] {
        let (state, action) = press_keys(state_of_size(100, 24), &char_keys(key), &view);
        assert_eq!(action, TopAction::Redraw);
        let text = screen_text(&view, &state);
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("y: run it"), "{text}");
        for no in ["n", "q"] {
            let (state, action) = press_keys(state.clone(), &char_keys(no), &view);
            assert_eq!(action, TopAction::Redraw);
            assert_eq!(state.overlay, None);
        }
        let (state, action) = press_keys(state, &char_keys("y"), &view);
        let TopAction::Run { title, .. } = &action else {
            panic!("{action:?}");
        };
        assert_eq!(title, expected);
        assert!(matches!(state.overlay, Some(TopOverlay::Text(_))));
    }
}

#[test]
fn other_keys_leave_the_question_open() {
    let view = rollout_view();
    let (state, action) = press_keys(state_of_size(80, 24), &char_keys("ra1z "), &view);
    assert_eq!(action, TopAction::Redraw);
    assert!(matches!(state.overlay, Some(TopOverlay::Confirm(_))));
}

#[test]
fn a_node_that_is_rebooting_is_aborted_only_with_a_warning() {
    let view = rollout_view();
    let (state, _) = press_keys(state_of_size(200, 24), &char_keys("ja"), &view);
    let text = screen_text(&view, &state);
    assert!(text.contains("an abort cannot stop it"), "{text}");
    let (_, action) = press_keys(state, &char_keys("y"), &view);
    assert_eq!(words_of(&action), ["abort", "w-04", "--no-wait", "--yes"]);
}

#[test]
fn a_paused_policy_is_resumed() {
    let mut view = rollout_view();
    view.policies[0].paused = Some("work in the rack".into());
    let (_, action) = press_keys(state_of_size(80, 24), &char_keys("py"), &view);
    assert_eq!(words_of(&action), ["resume", "workers"]);
}

#[test]
fn a_group_without_a_policy_says_what_can_be_done_instead() {
    let mut view = rollout_view();
    view.policies.clear();
    let (state, _) = press_keys(state_of_size(80, 24), &char_keys("p"), &view);
    assert_eq!(state.overlay, None);
    let text = screen_text(&view, &state);
    assert!(text.contains("dogwatch pause --all"), "{text}");
}

#[test]
fn a_reboot_can_be_checked_before_it_is_requested() {
    let view = rollout_view();
    let (_, action) = press_keys(state_of_size(80, 24), &char_keys("rc"), &view);
    assert_eq!(words_of(&action), ["check", "w-03"]);
}

#[test]
fn the_flags_that_choose_the_cluster_are_shown_and_passed_on_once() {
    let view = rollout_view();
    let mut state = state_of_size(120, 24);
    state.cluster_flags = vec!["--context".into(), "prod".into()];
    let (state, _) = press_keys(state, &char_keys("a"), &view);
    assert!(screen_text(&view, &state).contains("--no-wait --context prod"));
    let (_, action) = press_keys(state, &char_keys("y"), &view);
    let expected = ["abort", "w-03", "--no-wait", "--context", "prod"];
    assert_eq!(words_of(&action), expected);
}

#[test]
fn enter_explains_what_the_row_is_about() {
    let view = rollout_view();
    for (pane, subject) in [
        (TopPane::Out, "node/w-03"),
        (TopPane::Waiting, "node/w-05"),
        (TopPane::Hosts, "host/metal/rack-1"),
        (TopPane::Remediations, "machine/metal/m-2"),
        (TopPane::Recent, "node/w-02"),
        (TopPane::Nodes, "node/w-03"),
    ] {
        let (_, action) = press_keys(on_pane(pane, 80, 24), &[TopKey::Enter], &view);
        assert_eq!(words_of(&action), ["explain", subject]);
    }
    let (state, action) = press_keys(on_pane(TopPane::Groups, 80, 24), &[TopKey::Enter], &view);
    assert_eq!(action, TopAction::Redraw);
    let text = screen_text(&view, &state);
    assert!(
        text.contains("cp-2 counts: cordoned by somebody else"),
        "{text}"
    );
}

#[test]
fn an_explanation_is_shown_verbatim_and_scrolls_to_its_end_and_no_further() {
    let view = rollout_view();
    let (mut state, action) = press_keys(state_of_size(80, 24), &[TopKey::Enter], &view);
    let TopAction::Run { title, .. } = action else {
        panic!("enter explains");
    };
    assert!(screen_text(&view, &state).contains("running"));
    let lines: Vec<String> = (1..=60).map(|line| format!("line {line}")).collect();
    state.show_output(&title, lines);
    assert!(screen_text(&view, &state).contains("line 1"));
    let (state, _) = press_keys(state, &[TopKey::End, TopKey::Down, TopKey::PageDown], &view);
    assert!(screen_text(&view, &state).contains("line 60"));
    let (state, _) = press_keys(state, &[TopKey::Up], &view);
    assert!(!screen_text(&view, &state).contains("line 60"));
    let (state, _) = press_keys(state, &[TopKey::Escape], &view);
    assert_eq!(state.overlay, None);
}

#[test]
fn output_of_a_command_whose_box_was_closed_is_dropped() {
    let view = rollout_view();
    let (state, _) = press_keys(
        state_of_size(80, 24),
        &[TopKey::Enter, TopKey::Escape],
        &view,
    );
    let (mut state, _) = press_keys(state, &char_keys("?"), &view);
    state.show_output("dogwatch explain node/w-03", vec!["output too late".into()]);
    assert!(!screen_text(&view, &state).contains("output too late"));
}

#[test]
fn a_filter_shows_matching_rows_and_escape_shows_all() {
    let view = rollout_view();
    let state = on_pane(TopPane::Waiting, 80, 24);
    let (state, _) = press_keys(state, &char_keys("/w-08"), &view);
    let text = screen_text(&view, &state);
    assert!(text.contains("/w-08_") && text.contains("w-08"), "{text}");
    assert!(!text.contains("w-05"), "{text}");
    let (state, action) = press_keys(state, &[TopKey::Enter, TopKey::Enter], &view);
    assert_eq!(words_of(&action), ["explain", "node/w-08"]);
    let (state, _) = press_keys(state, &[TopKey::Escape, TopKey::Escape], &view);
    assert_eq!(state.filter, "");
    let (state, _) = press_keys(state, &char_keys("/no such"), &view);
    assert!(screen_text(&view, &state).contains("nothing matches the filter"));
    let back = [TopKey::Backspace; 7];
    assert_eq!(press_keys(state, &back, &view).0.filter, "");
}

#[test]
fn tab_goes_through_all_panes_and_back() {
    let view = rollout_view();
    let mut state = state_of_size(80, 24);
    for pane in TopPane::ALL {
        assert_eq!(state.pane, pane);
        state = press_keys(state, &[TopKey::Tab], &view).0;
    }
    assert_eq!(state.pane, TopPane::Out);
    assert_eq!(
        press_keys(state, &[TopKey::BackTab], &view).0.pane,
        TopPane::Nodes
    );
    let (state, _) = press_keys(state_of_size(80, 24), &char_keys("4"), &view);
    assert_eq!(state.pane, TopPane::Groups);
}

#[test]
fn a_pane_that_goes_away_gives_the_focus_back() {
    let state = on_pane(TopPane::Hosts, 80, 24);
    assert_eq!(state.focused_pane(&idle_view()), TopPane::Out);
}

#[test]
fn q_ends_it_except_where_q_closes_something() {
    let view = rollout_view();
    let quits = |keys: &str| press_keys(state_of_size(80, 24), &char_keys(keys), &view).1;
    assert_eq!(quits("q"), TopAction::Quit);
    assert_eq!(quits("?q"), TopAction::Redraw);
    assert_eq!(quits("/q"), TopAction::Redraw);
    let (_, action) = press_keys(
        state_of_size(80, 24),
        &[TopKey::Char('?'), TopKey::Interrupt],
        &view,
    );
    assert_eq!(action, TopAction::Quit);
}

#[test]
fn keys_on_an_empty_fleet_do_no_harm() {
    let view = idle_view();
    for key in [
        TopKey::Enter,
        TopKey::Down,
        TopKey::Char('r'),
        TopKey::Char('a'),
    ] {
        let (state, action) = press_keys(state_of_size(80, 24), &[key], &view);
        assert_eq!(action, TopAction::Redraw);
        assert_eq!(state.overlay, None);
    }
}
