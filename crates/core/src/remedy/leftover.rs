//! What is left of remediations that nobody stands behind any more. Source: specification §4.1: after a crash
//! every host that carries our key is found and carried on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::case::{Case, Subject};
use super::cases::Found;
use super::kept::{Fate, Kept, KeptBackup};
use super::key::KeyOwner;
use super::link::{Affairs, Problem};
use super::reason;
use super::record::Record;
use crate::name::NodeName;
use crate::policy::is_control_plane;
use crate::power::HostName;

impl Found<'_> {
    /// Keys that nobody stands behind, and what is left of remediations that nobody carries on.
    pub(super) fn hosts_left(&mut self) {
        let mut left = Vec::new();
        for affairs in self.index.affairs.values() {
            let host = &affairs.host.name;
            let mut keys = affairs.keys.iter();
            let orphan = keys
                .find(|key| !self.handled.contains(&(host.clone(), key.owner.clone())))
                .map(|key| key.owner.clone());
            let has_case = self.hosts.contains(host);
            let is_open = affairs.open_record().is_some() || affairs.keeps_something();
            if orphan.is_some() || (is_open && !has_case) {
                left.push((host.clone(), orphan));
            }
        }
        for (host, orphan) in left {
            self.host(&host, orphan);
        }
    }

    fn host(&mut self, name: &HostName, orphan: Option<KeyOwner>) {
        let affairs = &self.index.affairs[name];
        let claimed = |record: &Record| {
            let mut cases = self.cases.iter().filter(|case| case.record.is_some());
            cases.any(|case| case.record.as_ref() == Some(record))
        };
        let record = affairs.record.clone().filter(|record| !claimed(record));
        let named = record.as_ref().and_then(|record| record.node.clone());
        let kept = affairs.kept.map(|kept| kept.backup.node.clone());
        let node_name = kept.or(named).or_else(|| affairs.named_node().cloned());
        let node_name = node_name.and_then(|name| NodeName::new(name).ok());
        let node = node_name
            .as_ref()
            .and_then(|name| self.index.world.nodes.get(name))
            .cloned();
        let nobody_waits = record
            .as_ref()
            .and_then(|record| self.nobody_waits(affairs, record));
        let foreign = (orphan == Some(KeyOwner::Unnamed)).then(|| {
            let text = format!(
                "annotation {} on host {name} is not ours, and no Machine is linked to this host; whoever wrote it removes it",
                KeyOwner::Unnamed.key()
            );
            (reason::FOREIGN_KEY, text)
        });
        let trouble = foreign.or(nobody_waits);
        let case = Case {
            subject: Subject::Host(name.clone()),
            key: orphan.unwrap_or(KeyOwner::Unnamed),
            needs: false,
            host: Ok(Arc::clone(affairs.host)),
            trouble,
            control_plane: node
                .as_ref()
                .is_some_and(|node| is_control_plane(&node.labels)),
            node_name,
            node,
            leased: false,
            record,
            stored: None,
            kept: None,
            legacy: None,
            machine: None,
            request: None,
        };
        self.add(case);
    }

    /// What is kept for a host that is gone: nobody will come for it.
    pub(super) fn host_gone(&mut self, stored: &Arc<KeptBackup>) {
        let name = &stored.host;
        let subject = Subject::Host(name.clone());
        if self.cases.iter().any(|case| case.subject == subject) {
            return;
        }
        let gone = format!("host {name} is gone");
        let kept = Kept {
            stored: Arc::clone(stored),
            fate: Fate::Stale(gone.clone()),
        };
        let case = Case {
            subject,
            key: KeyOwner::Unnamed,
            needs: false,
            host: Err((reason::NOT_NEEDED, gone)),
            trouble: None,
            node_name: None,
            node: None,
            leased: false,
            record: None,
            stored: Some(Arc::clone(stored)),
            kept: Some(kept),
            legacy: None,
            control_plane: false,
            machine: None,
            request: None,
        };
        self.add(case);
    }

    /// Whoever had it remediated is gone for good, so that nobody says when its Node is back: a Node that
    /// never comes would count as out for ever. A link that is broken only for now proves nothing.
    fn nobody_waits(&self, affairs: &Affairs<'_>, record: &Record) -> Option<Problem> {
        let (kind, name) = record.subject.split_once('/')?;
        let world = self.index.world;
        let is_gone = match kind {
            "machine" => self.index.by_uid(&record.uid).is_none(),
            "powerremediation" => !world.requests.values().any(|it| it.uid == record.uid),
            "node" => affairs.named_node().map(String::as_str) != Some(name),
            _ => false,
        };
        let text = || format!("{} is gone, and nobody waits for its Node", record.subject);
        is_gone.then(|| (reason::WITHDRAWN, text()))
    }

    /// Marks and Leases that no case stands behind any more.
    pub(super) fn nodes_left(&mut self) {
        let world = self.index.world;
        let fenced = world.nodes.values().filter(|node| node.fenced);
        let names = fenced.map(|node| &node.name).chain(world.leases.keys());
        let left: BTreeSet<NodeName> = names
            .filter(|name| !self.nodes.contains(*name))
            .cloned()
            .collect();
        for name in left {
            let case = Case {
                subject: Subject::Node(name.clone()),
                key: KeyOwner::Node(String::new()),
                needs: false,
                host: Err((reason::NOT_NEEDED, "nothing is asked of it".to_owned())),
                trouble: None,
                node: world.nodes.get(&name).cloned(),
                node_name: Some(name),
                leased: false,
                record: None,
                stored: None,
                kept: None,
                legacy: None,
                control_plane: false,
                machine: None,
                request: None,
            };
            self.add(case);
        }
    }
}
