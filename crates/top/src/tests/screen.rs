//! Promises about the screen, of every size.

use ratatui_core::style::Color;

use super::fixture::{idle_view, large_view, rollout_view, urgent_view};
use super::{draw_view, on_pane, press_keys, screen_text, state_of_size};
use crate::keys::TopKey;
use crate::pane::TopPane;

fn has_red(buffer: &ratatui_core::buffer::Buffer) -> bool {
    let cells = buffer.content().iter();
    cells
        .filter(|cell| !cell.symbol().trim().is_empty())
        .any(|cell| cell.fg == Color::Red || cell.bg == Color::Red)
}

#[test]
fn red_is_for_what_only_a_person_can_end() {
    for (columns, rows) in [(40, 12), (80, 24), (160, 50)] {
        for pane in TopPane::ALL {
            let state = on_pane(pane, columns, rows);
            assert!(!has_red(&draw_view(&rollout_view(), &state)), "{pane:?}");
            assert!(has_red(&draw_view(&urgent_view(), &state)), "{pane:?}");
        }
    }
}

#[test]
fn what_red_says_a_mark_says_too_and_the_command_to_type_is_there_at_any_size() {
    for (columns, rows) in [(40, 12), (80, 24), (160, 50)] {
        let text = screen_text(&urgent_view(), &state_of_size(columns, rows));
        assert!(text.starts_with("! "), "{text}");
        assert!(text.contains("dogwatch explain w-04"), "{text}");
    }
}

#[test]
fn a_small_terminal_shows_the_start_of_the_sentence() {
    for (columns, rows) in [(1, 1), (2, 9), (10, 3), (15, 4), (300, 1), (0, 0), (40, 2)] {
        let buffer = draw_view(&urgent_view(), &state_of_size(columns, rows));
        assert_eq!((buffer.area().width, buffer.area().height), (columns, rows));
    }
}

#[test]
fn no_size_pane_or_overlay_breaks_the_drawing() {
    let view = urgent_view();
    for columns in [1, 2, 3, 15, 16, 17, 39, 59, 60, 119, 120, 160] {
        for rows in (1..19).chain([29, 30, 50]) {
            for pane in TopPane::ALL {
                draw_view(&view, &on_pane(pane, columns, rows));
            }
            for key in ['?', 'r', 'p', '+', '/'] {
                let state = state_of_size(columns, rows);
                let (state, _) = press_keys(state, &[TopKey::Char(key)], &view);
                draw_view(&view, &state);
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_first_and_the_picture_stays() {
    let mut view = rollout_view();
    view.unreadable = vec!["Nodes: connection refused; the view is from 01:58:00".into()];
    for (columns, rows) in [(40, 12), (80, 24), (160, 50)] {
        let text = screen_text(&view, &state_of_size(columns, rows));
        assert!(text.starts_with("? Nodes: connection refused"), "{text}");
        assert!(text.contains("w-03"), "{text}");
    }
}

#[test]
fn hostile_text_neither_moves_the_cursor_nor_widens_a_row() {
    let mut view = rollout_view();
    view.out[0].name = "evil\u{1b}[2J\u{202e}\u{7}".into();
    view.out[0].message = Some("x".repeat(10_240));
    view.sentence = "日".repeat(2_000);
    view.groups[0].name = "\u{1b}]0;title\u{7}".into();
    for (columns, rows) in [(40, 12), (80, 24), (160, 50)] {
        for pane in TopPane::ALL {
            let text = screen_text(&view, &on_pane(pane, columns, rows));
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
            for line in text.lines() {
                let width = crate::printable::text_width(line);
                assert!(width <= usize::from(columns), "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_selected_row_of_thousands_is_in_sight() {
    let view = large_view(5_000);
    let state = on_pane(TopPane::Waiting, 80, 24);
    let (state, _) = press_keys(state, &[TopKey::End], &view);
    let text = screen_text(&view, &state);
    assert!(text.contains("> 5000"), "{text}");
    let (state, _) = press_keys(state, &[TopKey::Home, TopKey::Down], &view);
    assert!(screen_text(&view, &state).contains("> 2 "), "{text}");
}

#[test]
fn an_idle_fleet_says_so_in_every_pane() {
    let view = idle_view();
    for pane in [
        TopPane::Out,
        TopPane::Waiting,
        TopPane::Timeline,
        TopPane::Recent,
    ] {
        let text = screen_text(&view, &on_pane(pane, 80, 24));
        assert!(text.contains(pane.empty_text(false)), "{text}");
    }
    let text = screen_text(&view, &on_pane(TopPane::Nodes, 80, 24));
    assert!(!text.contains("Hosts"), "no hosts, no pane: {text}");
}

#[test]
fn the_cursor_stays_on_its_node_when_others_finish() {
    let mut view = rollout_view();
    let state = on_pane(TopPane::Waiting, 80, 24);
    let (mut state, _) = press_keys(state, &[TopKey::Down, TopKey::Down], &view);
    assert_eq!(state.selected_row(&view).unwrap().node_name(), Some("w-07"));
    view.waiting.remove(0);
    state.follow_view(&view);
    assert_eq!(state.selected_row(&view).unwrap().node_name(), Some("w-07"));
    view.waiting.retain(|node| node.name != "w-07");
    assert_eq!(state.selected_row(&view).unwrap().node_name(), Some("w-08"));
}
