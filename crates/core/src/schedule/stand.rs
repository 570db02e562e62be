//! Whom an occurrence asks, and where each of them stands.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::host::NotByPower;
use super::seen::{Carried, Object, Seen, StandingRequest, TargetsSeen};
use super::target::{Ask, Kind, Mark, Marks, Target};
use super::types::{Chosen, Current, Plan, TargetResult};
use crate::Now;
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
pub(super) const HOST_REQUEST: &str = "reboot.metal3.io";

/// Everybody whom this occurrence is to ask, and where they stand.
pub(super) fn stands(
    seen: &Seen,
    plan: &Plan,
    targets: &TargetsSeen,
    current: Current,
    now: Now,
) -> BTreeMap<Target, Stand> {
    let mut resolved = Resolved {
        seen,
        plan,
        targets,
        current,
        now: now.wall,
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
    current: Current,
    now: Timestamp,
    stands: BTreeMap<Target, Stand>,
}

/// How a target was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// By its name, its host's, or both: whoever wrote it is told what became of it.
    Name,
    /// By a selector alone: one that needs no reboot is not meant.
    Selector,
}

impl Resolved<'_> {
    fn nodes(&mut self, chosen: &Chosen) {
        let all = match &self.targets.nodes {
            Ok(all) => all.as_slice(),
            Err(why) => return self.unknown(Kind::Node, chosen, why),
        };
        for (name, by) in names(chosen, all) {
            self.node(name, by, "there is no Node of that name");
        }
    }

    fn hosts(&mut self, chosen: &Chosen) {
        let all = match &self.targets.hosts {
            Ok(all) => all.as_slice(),
            Err(why) => return self.unknown(Kind::Host, chosen, why),
        };
        for (name, by) in names(chosen, all) {
            match all.iter().find(|host| host.name == name) {
                None => self.host_is_gone(name),
                Some(host) => {
                    if let Some(carried) = &host.carries {
                        self.carrier(host, carried, by);
                    } else {
                        let stand = self.stand(Kind::Host, host, by);
                        self.put(Kind::Host, name, stand);
                    }
                }
            }
        }
    }

    /// A host that carries a Node is rebooted as that Node.
    fn carrier(&mut self, host: &Object, carried: &Carried, by: By) {
        let (name, node) = (&host.name, &carried.node);
        let Some(older) = &carried.older_claim else {
            let gone = format!("BareMetalHost {name} carries this Node, which is not there");
            return self.node(node, by, &gone);
        };
        let why = format!(
            "it says that it carries node {node}, and so does host {older}, which is older: correct \
             annotation dogwatch.dev/node of the one that does not"
        );
        let stand = Stand::Settled(TargetResult::Failed, why);
        self.put(Kind::Host, name, Some(stand));
    }

    /// A Node that is named twice, by a host as well, is one target.
    fn node(&mut self, name: &str, by: By, gone: &str) {
        let stand = match &self.targets.nodes {
            Err(why) => Some(Stand::Blocked(why.clone())),
            Ok(all) => match all.iter().find(|node| node.name == name) {
                Some(node) => self.stand(Kind::Node, node, by),
                None => Some(Stand::Settled(TargetResult::Failed, gone.to_owned())),
            },
        };
        self.put(Kind::Node, name, stand);
    }

    fn host_is_gone(&mut self, name: &str) {
        let why = "there is no BareMetalHost of that name in the schedule's namespace".to_owned();
        self.put(
            Kind::Host,
            name,
            Some(Stand::Settled(TargetResult::Failed, why)),
        );
    }

    /// Whom a selector would match cannot be named: `*` stands for all of them.
    fn unknown(&mut self, kind: Kind, chosen: &Chosen, why: &str) {
        let all = chosen.selector.is_some().then_some("*");
        for name in chosen.names.iter().map(String::as_str).chain(all) {
            self.put(kind, name, Some(Stand::Blocked(why.to_owned())));
        }
    }

    /// Nothing: it is not meant. Whoever is meant otherwise as well stays so.
    fn put(&mut self, kind: Kind, name: &str, stand: Option<Stand>) {
        let name = name.to_owned();
        if let Some(stand) = stand {
            self.stands.insert(Target { kind, name }, stand);
        }
    }

    /// Where it stands; `None` where a selector does not mean it.
    fn stand(&self, kind: Kind, object: &Object, by: By) -> Option<Stand> {
        let marks = match &object.marks {
            Parsed::Absent => &Marks::new(),
            Parsed::Is(marks) => marks,
            // It may say that it was asked.
            Parsed::Bad { why } => {
                let why = format!(
                    "its annotation dogwatch.dev/scheduled cannot be read, so that it may have been asked \
                     already: take it off ({why})"
                );
                return Some(Stand::Blocked(why));
            }
        };
        let own = marks.get(&self.seen.schedule.uid);
        match own.filter(|mark| mark.at == self.current.at) {
            Some(mark) if mark.noted => Some(Stand::Settled(
                TargetResult::Noted,
                "a request stood there already, and was left as it is".into(),
            )),
            Some(_) => Some(Stand::Settled(TargetResult::Requested, String::new())),
            None => self.unasked(kind, object, marks, by),
        }
    }

    fn unasked(&self, kind: Kind, object: &Object, marks: &Marks, by: By) -> Option<Stand> {
        if let Some(why) = self.not_meant(object) {
            let failed = || Stand::Settled(TargetResult::Failed, why);
            return (by == By::Name).then(failed);
        }
        if let Some(in_use @ NotByPower::InUse { .. }) = &object.not_by_power {
            return Some(Stand::Settled(TargetResult::Failed, in_use.in_words()));
        }
        Some(match self.never_served(&object.request) {
            Some(why) => Stand::Blocked(why),
            None => Stand::Open(Box::new(self.ask(kind, object, marks))),
        })
    }

    /// Why a reboot of it at this time means nothing.
    fn not_meant(&self, object: &Object) -> Option<String> {
        if object.created > self.current.begun {
            // Its marks went with the one that it replaces, which may have been asked and rebooted.
            return Some(format!(
                "it was created at {}, after its time had come: it has booted since",
                object.created
            ));
        }
        let not_by_power = object.not_by_power.as_ref()?;
        let is_unused = matches!(not_by_power, NotByPower::NotProvisioned { .. });
        is_unused.then(|| not_by_power.in_words())
    }

    /// Why the request that stands there brings about no reboot now. It is somebody else's, and stays.
    fn never_served(&self, request: &StandingRequest) -> Option<String> {
        match request {
            StandingRequest::NotBefore(at) if *at > self.now => Some(format!(
                "a request to reboot it at {at} stands there, and a node has room for one: \
                 `dogwatch abort` takes it back"
            )),
            StandingRequest::Unreadable { why } => Some(format!(
                "its annotation dogwatch.dev/reboot-requested cannot be read, so that nobody serves it: \
                 take it off ({why})"
            )),
            StandingRequest::Absent | StandingRequest::Now | StandingRequest::NotBefore(_) => None,
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
        let is_asked = object.request != StandingRequest::Absent;
        let mark = Mark {
            by: schedule.name.to_string(),
            at: self.current.at,
            noted: is_asked,
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
            request: (!is_asked).then(|| self.request(kind)),
        }
    }

    fn request(&self, kind: Kind) -> (&'static str, String) {
        let name = &self.seen.schedule.name;
        match kind {
            Kind::Node => {
                let request = Request {
                    // With the time, so that two occurrences are two requests.
                    reason: format!("{} (scheduled for {})", self.plan.reason, self.current.at),
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

/// Each name once, those that are written down by name.
fn names<'a>(chosen: &'a Chosen, all: &'a [Object]) -> BTreeMap<&'a str, By> {
    let selected = all.iter().filter(|object| {
        let selector = chosen.selector.as_ref();
        selector.is_some_and(|selector| selector.matches(&object.labels))
    });
    let selected = selected.map(|object| (object.name.as_str(), By::Selector));
    let named = chosen.names.iter().map(|name| (name.as_str(), By::Name));
    selected.chain(named).collect()
}
