//! Pages without scripts: the fleet as tables, and short notices.

use std::fmt::Write as _;

use dogwatch_core::explain::{HostRow, NodeStatusRow, RemediationRow};
use dogwatch_core::printable::is_unprintable;
use dogwatch_core::report::{
    FleetView, GroupView, OutNodeRow, PersonTask, RecentOutcome, WaitingNodeRow,
};

/// Longest list on the plain page; it says how many are left out.
const MAX_ROWS: usize = 500;

const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"/plain.css\"><link rel=\"icon\" href=\"/icon.svg\"><title>Dogwatch</title>";

/// Goes on to the page, without the token in its address.
pub(crate) fn render_opening_page() -> String {
    format!(
        "{HEAD}<meta http-equiv=\"refresh\" content=\"0;url=/\"></head><body><main><p><a href=\"/\">Open the dashboard</a></p></main></body></html>"
    )
}

pub(crate) fn render_notice_page(text: &str) -> String {
    format!(
        "{HEAD}</head><body><main><h1>Dogwatch</h1><p>{}</p></main></body></html>",
        escape_html(text)
    )
}

/// The whole view in tables. It does not reload by itself, which would take a screen reader back to
/// the top.
pub(crate) fn render_plain_page(view: Option<&FleetView>) -> String {
    let mut page = format!("{HEAD}</head><body><main><h1>Dogwatch</h1>");
    match view {
        Some(view) => write_view(&mut page, view),
        None => page.push_str("<p>The cluster has not been read yet.</p>"),
    }
    page.push_str("</main></body></html>");
    page
}

fn write_view(page: &mut String, view: &FleetView) {
    let time = view.at.strftime("%Y-%m-%d %H:%M:%S UTC");
    push_text(
        page,
        format_args!(
            "<p class=\"sentence\">{}</p><p>As of {time}. <a href=\"/plain\">Read it again</a> · <a href=\"/\">The page with scripts</a></p>",
            escape_html(&view.sentence)
        ),
    );
    for unreadable in &view.unreadable {
        push_text(
            page,
            format_args!("<p class=\"warn\">{}</p>", escape_html(unreadable)),
        );
    }
    write_tables(page, view);
}

fn write_tables(page: &mut String, view: &FleetView) {
    write_table(
        page,
        "Needs a person",
        &PERSON_COLUMNS,
        view.needs_person.iter().map(person_cells),
    );
    write_table(
        page,
        "Out of service",
        &OUT_COLUMNS,
        view.out.iter().map(out_cells),
    );
    write_table(
        page,
        "Waiting, in order",
        &WAITING_COLUMNS,
        view.waiting.iter().map(waiting_cells),
    );
    write_table(
        page,
        "Groups",
        &GROUP_COLUMNS,
        view.groups.iter().map(group_cells),
    );
    write_table(
        page,
        "Hosts",
        &HOST_COLUMNS,
        view.hosts.iter().map(host_cells),
    );
    write_table(
        page,
        "Remediations",
        &REMEDIATION_COLUMNS,
        view.remediations.iter().map(remediation_cells),
    );
    write_table(
        page,
        "Ended within a day",
        &RECENT_COLUMNS,
        view.recent.iter().map(recent_cells),
    );
    write_table(
        page,
        "Nodes",
        &NODE_COLUMNS,
        view.nodes.iter().map(node_cells),
    );
}

const PERSON_COLUMNS: [&str; 4] = ["What", "Why", "Next step", "Command"];
const OUT_COLUMNS: [&str; 7] = [
    "Node",
    "Group",
    "Phase",
    "Since",
    "Deadline",
    "Waits for",
    "Asked",
];
const WAITING_COLUMNS: [&str; 7] = [
    "Node",
    "Group",
    "Since",
    "Place",
    "Why",
    "Not before",
    "Asked",
];
const GROUP_COLUMNS: [&str; 5] = ["Group", "Nodes", "Unavailable", "Taken by others", "Paused"];
const HOST_COLUMNS: [&str; 5] = ["Host", "Power", "Wanted", "Reason", "Message"];
const REMEDIATION_COLUMNS: [&str; 4] = ["Subject", "Step", "Reason", "Message"];
const RECENT_COLUMNS: [&str; 5] = ["Node", "Group", "Outcome", "Finished", "Asked"];
const NODE_COLUMNS: [&str; 6] = ["Node", "Group", "Status", "Phase", "Reason", "Message"];

fn group_cells(group: &GroupView) -> Vec<String> {
    let others = group.taken_by_others.iter();
    let others: Vec<String> = others
        .map(|slot| format!("{} ({})", slot.node, slot.why))
        .collect();
    vec![
        group.name.clone(),
        group.members.to_string(),
        format!("{} of {}", group.used, group.allowed),
        others.join(", "),
        optional_text(group.paused.as_ref()),
    ]
}

fn host_cells(host: &HostRow) -> Vec<String> {
    vec![
        format!("{}/{}", host.namespace, host.name),
        optional_text(host.power.as_ref()),
        host.wanted.to_owned(),
        optional_text(host.reason.as_ref()),
        optional_text(host.message.as_ref()),
    ]
}

fn remediation_cells(row: &RemediationRow) -> Vec<String> {
    vec![
        row.subject.clone(),
        optional_text(row.step.as_ref()),
        row.reason.clone(),
        row.message.clone(),
    ]
}

fn recent_cells(one: &RecentOutcome) -> Vec<String> {
    vec![
        one.node.clone(),
        one.group.clone(),
        one.outcome.to_owned(),
        one.finished.to_string(),
        one.asked.clone(),
    ]
}

fn node_cells(node: &NodeStatusRow) -> Vec<String> {
    vec![
        node.name.clone(),
        node.group.clone(),
        node.status.clone(),
        optional_text(node.phase.as_ref()),
        optional_text(node.reason.as_ref()),
        optional_text(node.message.as_ref()),
    ]
}

fn person_cells(task: &PersonTask) -> Vec<String> {
    vec![
        task.subject.clone(),
        format!("{}: {}", task.reason, task.message),
        optional_text(task.next_step.as_ref()),
        optional_text(task.command.as_ref()),
    ]
}

fn out_cells(node: &OutNodeRow) -> Vec<String> {
    vec![
        node.name.clone(),
        node.group.clone(),
        node.phase.to_owned(),
        node.since.to_string(),
        optional_text(node.deadline.as_ref()),
        join_reason(node.reason.as_ref(), node.message.as_ref()),
        node.asked.clone(),
    ]
}

fn waiting_cells(node: &WaitingNodeRow) -> Vec<String> {
    vec![
        node.name.clone(),
        node.group.clone(),
        node.since.to_string(),
        optional_text(node.place.as_ref()),
        join_reason(node.reason.as_ref(), node.message.as_ref()),
        optional_text(node.not_before.as_ref()),
        node.asked.clone(),
    ]
}

fn join_reason(reason: Option<&String>, message: Option<&String>) -> String {
    let parts: Vec<&str> = [reason, message]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    parts.join(": ")
}

fn optional_text(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

/// Nothing for an empty list.
fn write_table(
    page: &mut String,
    title: &str,
    columns: &[&str],
    rows: impl ExactSizeIterator<Item = Vec<String>>,
) {
    let count = rows.len();
    if count == 0 {
        return;
    }
    push_text(
        page,
        format_args!("<h2>{title} ({count})</h2><div class=\"wide\"><table><thead><tr>"),
    );
    for column in columns {
        push_text(page, format_args!("<th scope=\"col\">{column}</th>"));
    }
    page.push_str("</tr></thead><tbody>");
    for row in rows.take(MAX_ROWS) {
        page.push_str("<tr>");
        for cell in row {
            push_text(
                page,
                format_args!("<td dir=\"auto\">{}</td>", escape_html(&cell)),
            );
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    if count > MAX_ROWS {
        push_text(
            page,
            format_args!(
                "<p>The first {MAX_ROWS} of {count} are shown; <code>dogwatch status</code> shows all.</p>"
            ),
        );
    }
}

fn push_text(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a String takes all");
}

/// Also for attribute values in double quotes. Control characters, among them those that change the
/// direction of the text around them, become spaces.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if is_unprintable(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            escape_html("<b title=\"a\" id='b'>&\u{202e}\u{7}ü"),
            "&lt;b title=&quot;a&quot; id=&#39;b&#39;&gt;&amp;  ü"
        );
        let page = render_notice_page("<script>");
        assert!(!page.contains("<script"), "{page}");
    }
}
