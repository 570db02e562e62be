//! The panes: which there are, which rows each has, and what a row stands for.

use dogwatch_core::explain::{HostRow, NodeStatusRow, RemediationRow, WaitingRow};
use dogwatch_core::report::{FleetView, GroupView, OutNodeRow, RecentOutcome, WaitingNodeRow};

use crate::timeline::{TimelineRow, timeline_rows};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopPane {
    /// Nodes that Dogwatch has taken out of service.
    Out,
    /// Nodes and hosts that wait, in order.
    Waiting,
    /// Bars by phase, by group.
    Timeline,
    /// Groups with their budgets.
    Groups,
    /// Hosts with their power.
    Hosts,
    /// Remediations with their steps.
    Remediations,
    /// Reboots that have ended.
    Recent,
    /// Every node.
    Nodes,
}

impl TopPane {
    pub const ALL: [Self; 8] = [
        Self::Out,
        Self::Waiting,
        Self::Timeline,
        Self::Groups,
        Self::Hosts,
        Self::Remediations,
        Self::Recent,
        Self::Nodes,
    ];

    pub fn pane_title(self) -> &'static str {
        match self {
            Self::Out => "Out",
            Self::Waiting => "Waiting",
            Self::Timeline => "Timeline",
            Self::Groups => "Groups",
            Self::Hosts => "Hosts",
            Self::Remediations => "Remediations",
            Self::Recent => "Recent",
            Self::Nodes => "Nodes",
        }
    }

    /// Panes without anything to show are left out where their kind may not be installed.
    pub fn shown_panes(view: &FleetView) -> Vec<Self> {
        let is_shown = |pane: &Self| match pane {
            Self::Hosts => !view.hosts.is_empty(),
            Self::Remediations => !view.remediations.is_empty(),
            Self::Out
            | Self::Waiting
            | Self::Timeline
            | Self::Groups
            | Self::Recent
            | Self::Nodes => true,
        };
        Self::ALL.into_iter().filter(is_shown).collect()
    }

    /// What an empty pane says.
    pub fn empty_text(self, is_filtered: bool) -> &'static str {
        if is_filtered {
            return "nothing matches the filter";
        }
        match self {
            Self::Out => "no node is out of service on Dogwatch's account",
            Self::Waiting => "no node waits for a reboot",
            Self::Timeline => "no reboot waits, is under way or ended within the last day",
            Self::Groups => "there are no groups",
            Self::Hosts => "there are no hosts",
            Self::Remediations => "there are no remediations",
            Self::Recent => "no reboot ended within the last day",
            Self::Nodes => "this cluster has no Nodes",
        }
    }
}

/// One row of a pane.
#[derive(Debug, Clone, Copy)]
pub enum PaneRow<'a> {
    Out(&'a OutNodeRow),
    Waiting(&'a WaitingNodeRow),
    WaitingHost(&'a WaitingRow),
    Timeline(TimelineRow<'a>),
    Group(&'a GroupView),
    Host(&'a HostRow),
    Remediation(&'a RemediationRow),
    Recent(&'a RecentOutcome),
    Node(&'a NodeStatusRow),
}

impl<'a> PaneRow<'a> {
    /// What the cursor stays on while the view changes.
    pub fn row_key(&self) -> String {
        match self {
            Self::Group(group) | Self::Timeline(TimelineRow::Group(group)) => {
                format!("group/{}", group.name)
            }
            Self::WaitingHost(host) => format!("caller/{}", host.caller),
            // One node may have several reboots behind it.
            Self::Recent(ended) | Self::Timeline(TimelineRow::Ended(ended)) => {
                format!("node/{}/{}", ended.node, ended.finished)
            }
            Self::Out(_)
            | Self::Waiting(_)
            | Self::Timeline(_)
            | Self::Host(_)
            | Self::Remediation(_)
            | Self::Node(_) => self.explain_subject().unwrap_or_default(),
        }
    }

    /// What `dogwatch explain` takes; absent if it has nothing to say about the row.
    pub fn explain_subject(&self) -> Option<String> {
        match self {
            Self::Host(host) => Some(format!("host/{}/{}", host.namespace, host.name)),
            Self::Remediation(row) => Some(remediation_subject(&row.subject)),
            Self::Group(_) | Self::Timeline(TimelineRow::Group(_)) => None,
            Self::Out(_)
            | Self::Waiting(_)
            | Self::WaitingHost(_)
            | Self::Timeline(_)
            | Self::Recent(_)
            | Self::Node(_) => self.node_name().map(|node| format!("node/{node}")),
        }
    }

    /// The Node that the row is about.
    pub fn node_name(&self) -> Option<&'a str> {
        match *self {
            Self::Out(out) => Some(&out.name),
            Self::Waiting(waiting) => Some(&waiting.name),
            Self::WaitingHost(host) => host.node.as_deref(),
            Self::Timeline(row) => row.node_name(),
            Self::Group(_) => None,
            Self::Host(host) => host.node.as_deref(),
            Self::Remediation(row) => row.node.as_deref(),
            Self::Recent(ended) => Some(&ended.node),
            Self::Node(node) => Some(&node.name),
        }
    }

    pub fn group_name(&self) -> Option<&'a str> {
        match *self {
            Self::Out(out) => Some(&out.group),
            Self::Waiting(waiting) => Some(&waiting.group),
            Self::WaitingHost(host) => host.group.as_deref(),
            Self::Timeline(row) => Some(row.group_name()),
            Self::Group(group) => Some(&group.name),
            Self::Host(_) | Self::Remediation(_) => None,
            Self::Recent(ended) => Some(&ended.group),
            Self::Node(node) => Some(&node.group),
        }
    }

    /// The sentence about the row, in full.
    pub fn detail_text(&self) -> String {
        let because = |reason: &Option<String>, message: &Option<String>| match (reason, message) {
            (Some(reason), Some(message)) => format!("{reason}: {message}"),
            (Some(text), None) | (None, Some(text)) => text.clone(),
            (None, None) => String::new(),
        };
        match self {
            Self::Out(out) | Self::Timeline(TimelineRow::Out(out, _)) => {
                join_sentences(&because(&out.reason, &out.message), &asked_by(&out.asked))
            }
            Self::Waiting(it) | Self::Timeline(TimelineRow::Waiting(it, _)) => {
                join_sentences(&because(&it.reason, &it.message), &asked_by(&it.asked))
            }
            Self::WaitingHost(host) => format!("{}: {}", host.reason, host.message),
            Self::Group(group) | Self::Timeline(TimelineRow::Group(group)) => group_detail(group),
            Self::Host(host) => {
                let said = because(&host.reason, &host.message);
                host.not_ready
                    .as_ref()
                    .map_or_else(|| said.clone(), |why| join_sentences(&said, why))
            }
            Self::Remediation(row) => format!("{}: {}", row.reason, row.message),
            Self::Recent(ended) | Self::Timeline(TimelineRow::Ended(ended)) => {
                join_sentences(ended.outcome, &asked_by(&ended.asked))
            }
            Self::Node(node) => because(&node.reason, &node.message),
        }
    }

    fn matches_filter(&self, filter: &str) -> bool {
        let contains = |text: &str| text.to_lowercase().contains(filter);
        filter.is_empty()
            || contains(&self.row_key())
            || self.group_name().is_some_and(contains)
            || contains(&self.detail_text())
            || self.phase_word().is_some_and(contains)
    }

    fn phase_word(&self) -> Option<&'static str> {
        match self {
            Self::Out(out) => Some(out.phase),
            Self::Node(node) => node.phase,
            Self::Recent(ended) => Some(ended.outcome),
            Self::Waiting(_)
            | Self::WaitingHost(_)
            | Self::Timeline(_)
            | Self::Group(_)
            | Self::Host(_)
            | Self::Remediation(_) => None,
        }
    }
}

fn asked_by(asked: &str) -> String {
    if asked.is_empty() {
        String::new()
    } else {
        format!("asked: {asked}")
    }
}

fn join_sentences(one: &str, other: &str) -> String {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other.to_owned(),
        (_, true) => one.to_owned(),
        (false, false) => format!("{one}; {other}"),
    }
}

/// `explain` calls the request by another kind than the row does.
fn remediation_subject(subject: &str) -> String {
    match subject.strip_prefix("powerremediation/") {
        Some(name) => format!("remediation/{name}"),
        None => subject.to_owned(),
    }
}

pub fn group_detail(group: &GroupView) -> String {
    let budget = format!(
        "{} of {} may be unavailable ({})",
        group.allowed, group.members, group.allowed_source
    );
    let taken = group.taken_by_others.iter();
    let taken = taken.map(|taken| format!("{} counts: {}", taken.node, taken.why));
    let paused = group.paused.iter().map(|why| format!("paused: {why}"));
    let sentences = std::iter::once(budget).chain(taken).chain(paused);
    sentences.collect::<Vec<_>>().join("; ")
}

/// The rows of a pane that match the filter.
pub fn pane_rows<'a>(view: &'a FleetView, pane: TopPane, filter: &str) -> Vec<PaneRow<'a>> {
    let filter = filter.to_lowercase();
    let rows: Vec<PaneRow<'a>> = match pane {
        TopPane::Out => view.out.iter().map(PaneRow::Out).collect(),
        TopPane::Waiting => {
            let hosts = view.waiting_hosts.iter().map(PaneRow::WaitingHost);
            let nodes = view.waiting.iter().map(PaneRow::Waiting);
            nodes.chain(hosts).collect()
        }
        TopPane::Timeline => {
            let rows = timeline_rows(view).into_iter();
            rows.map(PaneRow::Timeline).collect()
        }
        TopPane::Groups => view.groups.iter().map(PaneRow::Group).collect(),
        TopPane::Hosts => view.hosts.iter().map(PaneRow::Host).collect(),
        TopPane::Remediations => view.remediations.iter().map(PaneRow::Remediation).collect(),
        TopPane::Recent => view.recent.iter().map(PaneRow::Recent).collect(),
        TopPane::Nodes => view.nodes.iter().map(PaneRow::Node).collect(),
    };
    if filter.is_empty() {
        return rows;
    }
    rows.into_iter()
        .filter(|row| row.matches_filter(&filter))
        .collect()
}

/// How many rows the pane has without a filter.
pub fn pane_count(view: &FleetView, pane: TopPane) -> Option<usize> {
    match pane {
        TopPane::Out => Some(view.out.len()),
        TopPane::Waiting => Some(view.waiting.len() + view.waiting_hosts.len()),
        TopPane::Timeline => None,
        TopPane::Groups => Some(view.groups.len()),
        TopPane::Hosts => Some(view.hosts.len()),
        TopPane::Remediations => Some(view.remediations.len()),
        TopPane::Recent => Some(view.recent.len()),
        TopPane::Nodes => Some(view.nodes.len()),
    }
}
