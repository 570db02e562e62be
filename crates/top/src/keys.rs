//! What each key does: a function of the state, the key and the view.

use dogwatch_core::report::FleetView;

use crate::command::{
    ProposedCommand, TopAction, propose_abort, propose_pause, propose_reboot, run_command,
};
use crate::draw::{last_scroll, page_rows};
use crate::pane::{PaneRow, TopPane};
use crate::state::{CursorMovement, OverlayText, TopOverlay, TopState};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopKey {
    Char(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// The state after the key, and what the program has to do.
pub fn press_key(mut state: TopState, key: TopKey, view: &FleetView) -> (TopState, TopAction) {
    state.notice = None;
    if key == TopKey::Interrupt {
        return (state, TopAction::Quit);
    }
    let action = match state.overlay.take() {
        Some(TopOverlay::Confirm(proposed)) => answer_question(&mut state, proposed, key),
        Some(TopOverlay::Help { scroll }) => {
            scroll_overlay(&mut state, TopOverlay::Help { scroll }, key)
        }
        Some(TopOverlay::Text(text)) => scroll_overlay(&mut state, TopOverlay::Text(text), key),
        None if state.is_editing_filter => edit_filter(&mut state, key),
        None => press_pane_key(&mut state, key, view),
    };
    (state, action)
}

fn answer_question(state: &mut TopState, proposed: ProposedCommand, key: TopKey) -> TopAction {
    match key {
        TopKey::Char('y' | 'Y') => {
            let words: Vec<&str> = proposed.words.iter().map(String::as_str).collect();
            let flags = std::mem::take(&mut state.cluster_flags);
            let action = run_command(state, &words);
            state.cluster_flags = flags;
            await_output(state, &action);
            action
        }
        TopKey::Char('c') if proposed.checkable_node.is_some() => {
            let node = proposed.checkable_node.unwrap_or_default();
            let action = run_command(state, &["check", &node]);
            await_output(state, &action);
            action
        }
        TopKey::Char('n' | 'N' | 'q') | TopKey::Escape => {
            state.notice = Some("nothing was done".into());
            TopAction::Redraw
        }
        TopKey::Char(_)
        | TopKey::Up
        | TopKey::Down
        | TopKey::Left
        | TopKey::Right
        | TopKey::PageUp
        | TopKey::PageDown
        | TopKey::Home
        | TopKey::End
        | TopKey::Enter
        | TopKey::Tab
        | TopKey::BackTab
        | TopKey::Backspace
        | TopKey::Interrupt => {
            state.overlay = Some(TopOverlay::Confirm(proposed));
            TopAction::Redraw
        }
    }
}

/// Opens the overlay that shows what the command prints.
fn await_output(state: &mut TopState, action: &TopAction) {
    if let TopAction::Run { title, .. } = action {
        state.overlay = Some(TopOverlay::Text(OverlayText {
            title: title.clone(),
            lines: None,
            scroll: 0,
        }));
    }
}

fn scroll_overlay(state: &mut TopState, mut overlay: TopOverlay, key: TopKey) -> TopAction {
    let closes = matches!(
        key,
        TopKey::Escape | TopKey::Enter | TopKey::Char('q' | '?')
    );
    if closes {
        return TopAction::Redraw;
    }
    let last = last_scroll(&overlay, state.size);
    let scroll = match &mut overlay {
        TopOverlay::Help { scroll } => scroll,
        TopOverlay::Text(text) => &mut text.scroll,
        TopOverlay::Confirm(_) => return TopAction::Redraw,
    };
    if let Some(movement) = cursor_movement(key, page_rows(state.size)) {
        *scroll = movement.moved_index((*scroll).min(last), last + 1);
    }
    state.overlay = Some(overlay);
    TopAction::Redraw
}

fn cursor_movement(key: TopKey, page: usize) -> Option<CursorMovement> {
    match key {
        TopKey::Up | TopKey::Char('k') => Some(CursorMovement::Up(1)),
        TopKey::Down | TopKey::Char('j') => Some(CursorMovement::Down(1)),
        TopKey::PageUp => Some(CursorMovement::Up(page)),
        TopKey::PageDown | TopKey::Char(' ') => Some(CursorMovement::Down(page)),
        TopKey::Home => Some(CursorMovement::First),
        TopKey::End | TopKey::Char('G') => Some(CursorMovement::Last),
        TopKey::Char(_)
        | TopKey::Left
        | TopKey::Right
        | TopKey::Enter
        | TopKey::Escape
        | TopKey::Tab
        | TopKey::BackTab
        | TopKey::Backspace
        | TopKey::Interrupt => None,
    }
}

/// The longest filter.
const MAX_FILTER_CHARS: usize = 200;

fn edit_filter(state: &mut TopState, key: TopKey) -> TopAction {
    match key {
        TopKey::Char(c) if state.filter.chars().count() < MAX_FILTER_CHARS => {
            state.filter.push(c);
        }
        TopKey::Backspace => {
            state.filter.pop();
        }
        TopKey::Enter => state.is_editing_filter = false,
        TopKey::Escape => {
            state.filter.clear();
            state.is_editing_filter = false;
        }
        TopKey::Char(_)
        | TopKey::Up
        | TopKey::Down
        | TopKey::Left
        | TopKey::Right
        | TopKey::PageUp
        | TopKey::PageDown
        | TopKey::Home
        | TopKey::End
        | TopKey::Tab
        | TopKey::BackTab
        | TopKey::Interrupt => {}
    }
    TopAction::Redraw
}

fn press_pane_key(state: &mut TopState, key: TopKey, view: &FleetView) -> TopAction {
    match key {
        TopKey::Char('q') => return TopAction::Quit,
        TopKey::Char('?' | 'h') => state.overlay = Some(TopOverlay::Help { scroll: 0 }),
        TopKey::Char('/') => state.is_editing_filter = true,
        TopKey::Escape => state.filter.clear(),
        TopKey::Char('+' | '=') => state.zoom = state.zoom.saturating_sub(1).max(-MAX_ZOOM),
        TopKey::Char('-') => state.zoom = state.zoom.saturating_add(1).min(MAX_ZOOM),
        TopKey::Char('0') => state.zoom = 0,
        TopKey::Char(_)
        | TopKey::Up
        | TopKey::Down
        | TopKey::Left
        | TopKey::Right
        | TopKey::PageUp
        | TopKey::PageDown
        | TopKey::Home
        | TopKey::End
        | TopKey::Enter
        | TopKey::Tab
        | TopKey::BackTab
        | TopKey::Backspace
        | TopKey::Interrupt => {
            return press_row_key(state, key, view);
        }
    }
    TopAction::Redraw
}

/// More steps than the timeline has scales.
const MAX_ZOOM: i32 = 12;

fn press_row_key(state: &mut TopState, key: TopKey, view: &FleetView) -> TopAction {
    if let Some(movement) = cursor_movement(key, page_rows(state.size)) {
        state.move_cursor(view, movement);
        return TopAction::Redraw;
    }
    match key {
        TopKey::Tab | TopKey::Right => focus_next_pane(state, view, 1),
        TopKey::BackTab | TopKey::Left => focus_next_pane(state, view, -1),
        TopKey::Enter => return explain_row(state, view),
        TopKey::Char('r') => propose_command(state, view, propose_reboot),
        TopKey::Char('a') => {
            propose_command(state, view, |state, row| propose_abort(state, view, row));
        }
        TopKey::Char('p') => {
            propose_command(state, view, |state, row| propose_pause(state, view, row));
        }
        TopKey::Char(digit @ '1'..='9') => focus_numbered_pane(state, view, digit),
        TopKey::Char(_)
        | TopKey::Up
        | TopKey::Down
        | TopKey::PageUp
        | TopKey::PageDown
        | TopKey::Home
        | TopKey::End
        | TopKey::Escape
        | TopKey::Backspace
        | TopKey::Interrupt => {}
    }
    TopAction::Redraw
}

fn focus_next_pane(state: &mut TopState, view: &FleetView, step: isize) {
    let shown = TopPane::shown_panes(view);
    let focused = state.focused_pane(view);
    let at = shown.iter().position(|pane| *pane == focused).unwrap_or(0);
    let count = shown.len();
    let next = at.checked_add_signed(step).unwrap_or(count - 1) % count;
    state.pane = shown[next];
}

fn focus_numbered_pane(state: &mut TopState, view: &FleetView, digit: char) {
    let shown = TopPane::shown_panes(view);
    let number = digit.to_digit(10).unwrap_or(1) as usize;
    if let Some(pane) = shown.get(number - 1) {
        state.pane = *pane;
    }
}

fn explain_row(state: &mut TopState, view: &FleetView) -> TopAction {
    let Some(row) = state.selected_row(view) else {
        state.notice = Some("there is no row to explain".into());
        return TopAction::Redraw;
    };
    let Some(subject) = row.explain_subject() else {
        let title = row.group_name().unwrap_or_default();
        state.overlay = Some(TopOverlay::Text(OverlayText {
            title: title.to_owned(),
            lines: Some(group_lines(&row, view)),
            scroll: 0,
        }));
        return TopAction::Redraw;
    };
    let action = run_command(state, &["explain", &subject]);
    await_output(state, &action);
    action
}

/// All that the view says about a group or a caller of a lock API.
fn group_lines(row: &PaneRow<'_>, view: &FleetView) -> Vec<String> {
    let sentences = row.detail_text();
    let mut lines: Vec<String> = sentences.split("; ").map(str::to_owned).collect();
    let group = row.group_name().unwrap_or_default();
    let policy = view.policies.iter().find(|policy| policy.name == group);
    match policy {
        None => lines.push("no RebootPolicy: the coordinators' flags apply".into()),
        Some(policy) => {
            let windows = policy.window.iter().flat_map(|window| &window.windows);
            lines.extend(windows.map(|window| format!("window: {window}")));
            lines.extend(policy.gates.iter().map(|gate| format!("gate: {gate}")));
            lines.extend(
                policy
                    .rollout
                    .iter()
                    .map(|shape| format!("rollout: {shape}")),
            );
            lines.extend(policy.message.clone());
        }
    }
    lines
}

fn propose_command(
    state: &mut TopState,
    view: &FleetView,
    propose: impl Fn(&TopState, PaneRow<'_>) -> Result<ProposedCommand, String>,
) {
    let Some(row) = state.selected_row(view) else {
        state.notice = Some("choose a row first".into());
        return;
    };
    match propose(state, row) {
        Ok(proposed) => state.overlay = Some(TopOverlay::Confirm(proposed)),
        Err(why) => state.notice = Some(why),
    }
}
