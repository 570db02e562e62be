//! From what is asked of a host to what was done.

use super::asked::{Asked, asked};
use super::foretold::{foretold, summary};
use super::lines::{annotation, at_level, past};
use super::row::place;
use super::{
    HostExplanation, HostView, POWER_AS_WANTED, POWER_CONTROL_READY, advice, host_condition,
};
use crate::Now;
use crate::explain::words::{ago, since};
use crate::explain::{Line, Topic};
use crate::power::{End, Host, Intention, Owner, State};
use crate::remedy::record_on;

/// How many past actions are told.
const PAST: usize = 3;

/// Explains a host.
pub fn explain_host(view: &HostView, now: Now) -> HostExplanation {
    let mut chain = Chain {
        view,
        host: &view.host,
        now,
        lines: Vec::new(),
    };
    chain.asked();
    chain.whose();
    chain.carries();
    chain.power();
    chain.off();
    chain.pending();
    if let Some(command) = &view.host.status.power.command {
        chain.command(command);
    }
    chain.remediation();
    chain.says();
    chain.bmc();
    chain.past();
    chain.controller();
    HostExplanation {
        host: view.host.name.to_string(),
        summary: summary(view, now),
        advice: advice::advice(view, now),
        chain: chain.lines,
    }
}

struct Chain<'a> {
    view: &'a HostView,
    host: &'a Host,
    now: Now,
    lines: Vec<Line>,
}

impl Chain<'_> {
    fn add(&mut self, topic: Topic, text: impl Into<String>) {
        self.lines.push(Line {
            topic,
            text: text.into(),
        });
    }

    fn asked(&mut self) {
        let online = if self.host.online { "on" } else { "off" };
        self.add(
            Topic::Asked,
            format!("spec.online is {}: {online}", self.host.online),
        );
        for asked in asked(self.host) {
            let text = annotation(self.host, &asked);
            self.add(Topic::Asked, text);
        }
    }

    fn whose(&mut self) {
        let text = match &self.view.owner {
            // Nothing to tell where it is as it should be.
            Owner::Ours => return,
            Owner::Theirs { leader } => {
                format!("a baremetal-operator's, which leads as {leader}: Dogwatch does nothing")
            }
            Owner::NotYetKnown => {
                "whether a baremetal-operator controls it could not be looked at".into()
            }
        };
        self.add(Topic::Whose, text);
    }

    fn carries(&mut self) {
        if let Some(node) = &self.view.node {
            self.add(Topic::Node, format!("it carries Node {node}"));
        }
    }

    fn power(&mut self) {
        let power = &self.host.status.power;
        let Some(state) = power.state else {
            return self.add(Topic::Power, "no power controller has looked at it");
        };
        let observed = power.observed_at;
        let observed = observed.map(|at| format!(", observed {}", ago(at, self.now)));
        // Others delete Nodes on false: a reading alone is not that.
        let kept = self.host.status.powered_on == Some(true)
            && matches!(state, State::Off | State::Unknown);
        let kept = if kept {
            "; status.poweredOn is true, for whoever goes by it must not take this for off"
        } else {
            ""
        };
        let text = format!("{}{}{kept}", state.as_str(), observed.unwrap_or_default());
        self.add(Topic::Power, text);
    }

    fn off(&mut self) {
        let power = &self.host.status.power;
        let Some(at) = power.off_confirmed_at else {
            if power.state == Some(State::Off) {
                self.add(Topic::Off, "not confirmed: nothing may be released on it");
            }
            return;
        };
        let confirmed = |asked: &Asked| power.confirmed_for.contains(&asked.request.id());
        let keys: Vec<Asked> = asked(self.host)
            .into_iter()
            .filter(|asked| asked.is_obeyed && asked.request.key.is_some())
            .collect();
        let names = |proved: bool| {
            let of = keys.iter().filter(|asked| confirmed(asked) == proved);
            let names: Vec<&str> = of
                .filter_map(|asked| asked.request.key.as_deref())
                .collect();
            names.join(", ")
        };
        let after = match names(true) {
            names if names.is_empty() => String::new(),
            names => format!(", after the request of {names}"),
        };
        self.add(
            Topic::Off,
            format!("confirmed {}{after}", since(at, self.now)),
        );
        if !names(false).is_empty() {
            let text = format!(
                "to be confirmed anew for {}, which came later",
                names(false)
            );
            self.add(Topic::Off, text);
        }
    }

    fn pending(&mut self) {
        let status = &self.host.status;
        let Some(at) = status.pending_reboot_since else {
            return;
        };
        if status.pending_reboot_since > status.last_powered_on {
            let text = format!("a reboot is pending {}", since(at, self.now));
            self.add(Topic::Phase, text);
        }
    }

    fn command(&mut self, command: &Intention) {
        let attempt = match (command.before, command.attempt) {
            (0, 1) => String::new(),
            (before, attempt) => format!(", attempt {attempt}, {before} sent before it"),
        };
        let text = format!(
            "{} decided {}{}{attempt} ({})",
            command.command,
            since(command.at, self.now),
            at_level(self.host, command.level),
            command.why
        );
        self.add(Topic::Command, text);
        let end = match &command.end {
            End::Open => "its end is not written down: it may be under way".to_owned(),
            End::Answered { at } => format!("the BMC took it {}", ago(*at, self.now)),
            End::Failed { at, message } => format!("it failed {}: {message}", ago(*at, self.now)),
            End::Unknown { at, message } => format!(
                "given up {}, and the BMC may still run it: {message}",
                ago(*at, self.now)
            ),
        };
        self.add(Topic::Command, end);
    }

    /// Whose remediation holds it off, or did last.
    fn remediation(&mut self) {
        let Some(record) = record_on(self.host) else {
            return;
        };
        let Some(last) = record.steps.last() else {
            return;
        };
        let (step, at) = (last.step.as_str(), since(last.at, self.now));
        let text = format!("of {}: {step} {at}", record.subject);
        self.add(Topic::Remediation, text);
    }

    /// The decision's own words; and what it will say where it has not looked since.
    fn says(&mut self) {
        let said = host_condition(self.host, POWER_AS_WANTED);
        if let Some(said) = said {
            self.add(Topic::Says, format!("{}: {}", said.reason, said.message));
        }
        if let Some(because) = foretold(self.view, self.now)
            && said.is_none_or(|said| said.reason != because.reason)
        {
            let text = format!("as it stands now: {}: {}", because.reason, because.message);
            self.add(Topic::Says, text);
        }
    }

    fn bmc(&mut self) {
        for (level, devices) in self.host.levels.iter().enumerate() {
            let places: Vec<String> = devices
                .devices
                .iter()
                .map(|device| match &device.address {
                    Ok(address) if device.verify => place(address),
                    Ok(address) => format!("{} (its certificate is not verified)", place(address)),
                    Err(bad) => format!("no address: {bad}"),
                })
                .collect();
            let text = format!("level {level}: {}", places.join(" and "));
            self.add(Topic::Bmc, text);
        }
        match host_condition(self.host, POWER_CONTROL_READY) {
            Some(ready) => {
                let works = match ready.status.as_str() {
                    "True" => "works",
                    "False" => "does not work",
                    _ => "is not known to work",
                };
                let text = format!("power control {works}: {}: {}", ready.reason, ready.message);
                self.add(Topic::Bmc, text);
            }
            None if !self.host.levels.is_empty() => {
                self.add(Topic::Bmc, "power control was never checked");
            }
            None => {}
        }
    }

    fn past(&mut self) {
        for done in self.host.status.power.history.iter().take(PAST) {
            self.add(Topic::Last, past(done));
        }
    }

    fn controller(&mut self) {
        if let Some(text) = self.view.controller.in_words(self.now) {
            self.add(Topic::Controller, text);
        }
    }
}
