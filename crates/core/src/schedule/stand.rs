//! Whom an occurrence asks, and where each of them stands.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::seen::{Object, Seen, TargetsSeen};
use super::target::{Ask, Kind, Mark, Marks, Target};
use super::types::{Chosen, Plan, TargetResult};
use crate::reboot::{Parsed, Request};

/// Where one target stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stand {
    /// It is to be asked.
    Open(Box<Ask>),
    /// It cannot be known whether it is to be asked; that may pass.
    Blocked(String),
    /// Nothing more is done about it.
    Settled(TargetResult, String),
}

/// The Node annotation that asks. Source: specification §2.1.
const NODE_REQUEST: &str = "dogwatch.dev/reboot-requested";
/// The host annotation that asks. Source: metal3.
const HOST_REQUEST: &str = "reboot.metal3.io";

/// Everybody whom this occurrence is to ask, and where they stand.
pub(super) fn stands(
    seen: &Seen,
    plan: &Plan,
    targets: &TargetsSeen,
    at: Timestamp,
) -> BTreeMap<Target, Stand> {
    let mut resolved = Resolved {
        seen,
        plan,
        targets,
        at,
        stands: BTreeMap::new(),
    };
    if let Some(chosen) = &plan.nodes {
        resolved.nodes(chosen);
    }
    if let Some(chosen) = &plan.hosts {
        resolved.hosts(chosen);
    }
    resolved.stands
}

struct Resolved<'a> {
    seen: &'a Seen,
    plan: &'a Plan,
    targets: &'a TargetsSeen,
    at: Timestamp,
    stands: BTreeMap<Target, Stand>,
}

impl Resolved<'_> {
    fn nodes(&mut self, chosen: &Chosen) {
        let all = match &self.targets.nodes {
            Ok(all) => all.as_slice(),
            Err(why) => return self.unknown(Kind::Node, chosen, why),
        };
        for name in names(chosen, all) {
            self.node(name, "there is no Node of that name");
        }
    }

    fn hosts(&mut self, chosen: &Chosen) {
        let all = match &self.targets.hosts {
            Ok(all) => all.as_slice(),
            Err(why) => return self.unknown(Kind::Host, chosen, why),
        };
        for name in names(chosen, all) {
            let host = all.iter().find(|host| host.name == name);
            match host.map(|host| (host, &host.carries)) {
                None => self.host_is_gone(name),
                Some((_, Some(node))) => {
                    let gone =
                        format!("BareMetalHost {name} carries this Node, which is not there");
                    self.node(node, &gone);
                }
                Some((host, None)) => {
                    let stand = self.stand(Kind::Host, host);
                    self.put(Kind::Host, name, stand);
                }
            }
        }
    }

    /// A Node that is named twice, by a host as well, is one target.
    fn node(&mut self, name: &str, gone: &str) {
        let stand = match &self.targets.nodes {
            Err(why) => Stand::Blocked(why.clone()),
            Ok(all) => match all.iter().find(|node| node.name == name) {
                Some(node) => self.stand(Kind::Node, node),
                None => Stand::Settled(TargetResult::Failed, gone.to_owned()),
            },
        };
        self.put(Kind::Node, name, stand);
    }

    fn host_is_gone(&mut self, name: &str) {
        let why = "there is no BareMetalHost of that name in the schedule's namespace".to_owned();
        self.put(Kind::Host, name, Stand::Settled(TargetResult::Failed, why));
    }

    /// Whom a selector would match cannot be named: `*` stands for all of them.
    fn unknown(&mut self, kind: Kind, chosen: &Chosen, why: &str) {
        let all = chosen.selector.is_some().then_some("*");
        for name in chosen.names.iter().map(String::as_str).chain(all) {
            self.put(kind, name, Stand::Blocked(why.to_owned()));
        }
    }

    fn put(&mut self, kind: Kind, name: &str, stand: Stand) {
        let name = name.to_owned();
        self.stands.insert(Target { kind, name }, stand);
    }

    fn stand(&self, kind: Kind, object: &Object) -> Stand {
        let marks = match &object.marks {
            Parsed::Absent => &Marks::new(),
            Parsed::Is(marks) => marks,
            // It may say that it was asked.
            Parsed::Bad { why } => {
                let why = format!(
                    "its annotation dogwatch.dev/scheduled cannot be read, so that it may have been asked \
                     already: take it off ({why})"
                );
                return Stand::Blocked(why);
            }
        };
        let own = marks.get(&self.seen.schedule.uid);
        match own.filter(|mark| mark.at == self.at) {
            Some(mark) if mark.noted => Stand::Settled(
                TargetResult::Noted,
                "a request stood there already, and was left as it is".into(),
            ),
            Some(_) => Stand::Settled(TargetResult::Requested, String::new()),
            None => Stand::Open(Box::new(self.ask(kind, object, marks))),
        }
    }

    fn ask(&self, kind: Kind, object: &Object, marks: &Marks) -> Ask {
        let living = &self.seen.living;
        let schedule = &self.seen.schedule;
        let mut marks: Marks = marks
            .iter()
            .filter(|(uid, _)| living.contains(*uid))
            .map(|(uid, mark)| (uid.clone(), mark.clone()))
            .collect();
        let mark = Mark {
            by: schedule.name.to_string(),
            at: self.at,
            noted: object.is_asked,
        };
        marks.insert(schedule.uid.clone(), mark);
        Ask {
            target: Target {
                kind,
                name: object.name.clone(),
            },
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
            marks,
            request: (!object.is_asked).then(|| self.request(kind)),
        }
    }

    fn request(&self, kind: Kind) -> (&'static str, String) {
        let name = &self.seen.schedule.name;
        match kind {
            Kind::Node => {
                let request = Request {
                    // With the time, so that two occurrences are two requests.
                    reason: format!("{} (scheduled for {})", self.plan.reason, self.at),
                    requester: format!("rebootschedule/{name}"),
                    not_before: None,
                };
                let text = serde_json::to_string(&request).expect("two texts serialise");
                (NODE_REQUEST, text)
            }
            Kind::Host => {
                let value = serde_json::json!({ "mode": self.plan.mode.as_str() });
                (HOST_REQUEST, value.to_string())
            }
        }
    }
}

fn names<'a>(chosen: &'a Chosen, all: &'a [Object]) -> BTreeSet<&'a str> {
    let selected = all.iter().filter(|object| {
        let selector = chosen.selector.as_ref();
        selector.is_some_and(|selector| selector.matches(&object.labels))
    });
    let named = chosen.names.iter().map(String::as_str);
    named
        .chain(selected.map(|object| object.name.as_str()))
        .collect()
}
