//! The chain of a host's explanation, from what is requested to what was done.

use super::forecast::{forecast_without_reading, host_summary};
use super::lines::{annotation_line, level_suffix, past_action_line};
use super::requests::{ExplainedAnnotation, explained_annotations};
use super::row::scheme_and_host;
use super::{
    HostExplanation, HostReportInput, POWER_AS_WANTED, POWER_CONTROL_READY, advice, host_condition,
};
use crate::Now;
use crate::explain::human_format::{format_ago, format_since};
use crate::explain::{ExplanationLine, ExplanationTopic};
use crate::power::{HostOwner, HostSnapshot, PendingCommand, PendingCommandEnd, PowerState};
use crate::remediation::record_on_host;

const MAX_PAST_ACTIONS: usize = 3;

pub fn explain_host(view: &HostReportInput, now: Now) -> HostExplanation {
    let mut chain = HostExplainer {
        view,
        host: &view.host,
        now,
        lines: Vec::new(),
    };
    chain.add_requests();
    chain.add_owner();
    chain.add_node();
    chain.add_power();
    chain.add_off_proof();
    chain.add_pending_reboot();
    if let Some(command) = &view.host.status.power.command {
        chain.add_command(command);
    }
    chain.add_remediation();
    chain.add_decision();
    chain.add_bmc();
    chain.add_past_actions();
    chain.add_controller();
    HostExplanation {
        host: view.host.name.to_string(),
        summary: host_summary(view, now),
        advice: advice::host_advice(view, now),
        chain: chain.lines,
    }
}

struct HostExplainer<'a> {
    view: &'a HostReportInput,
    host: &'a HostSnapshot,
    now: Now,
    lines: Vec<ExplanationLine>,
}

impl HostExplainer<'_> {
    fn add_line(&mut self, topic: ExplanationTopic, text: impl Into<String>) {
        self.lines.push(ExplanationLine {
            topic,
            text: text.into(),
        });
    }

    fn add_requests(&mut self) {
        let online = if self.host.online { "on" } else { "off" };
        self.add_line(
            ExplanationTopic::Asked,
            format!("spec.online is {}: {online}", self.host.online),
        );
        for asked in explained_annotations(self.host) {
            let text = annotation_line(self.host, &asked);
            self.add_line(ExplanationTopic::Asked, text);
        }
    }

    fn add_owner(&mut self) {
        let text = match &self.view.owner {
            // A host of Dogwatch's own is the usual case.
            HostOwner::Ours => return,
            HostOwner::Metal3 { leader } => {
                format!(
                    "a baremetal-operator controls it, with leader {leader}: Dogwatch does nothing"
                )
            }
            HostOwner::NotYetKnown => {
                "Dogwatch could not check whether a baremetal-operator controls it".into()
            }
        };
        self.add_line(ExplanationTopic::Whose, text);
    }

    fn add_node(&mut self) {
        if let Some(node) = &self.view.node {
            self.add_line(ExplanationTopic::Node, format!("it runs Node {node}"));
        }
    }

    fn add_power(&mut self) {
        let power = &self.host.status.power;
        let Some(state) = power.state else {
            return self.add_line(
                ExplanationTopic::Power,
                "no power controller has checked it",
            );
        };
        let observed = power.observed_at;
        let observed = observed.map(|at| format!(", observed {}", format_ago(at, self.now)));
        // Other programs delete Nodes when `poweredOn` is false, so it stays true until off is
        // confirmed.
        let kept = self.host.status.powered_on == Some(true)
            && matches!(state, PowerState::Off | PowerState::Unknown);
        let kept = if kept {
            "; status.poweredOn is true, because a program that reads it must not take this for off"
        } else {
            ""
        };
        let text = format!("{}{}{kept}", state.as_str(), observed.unwrap_or_default());
        self.add_line(ExplanationTopic::Power, text);
    }

    fn add_off_proof(&mut self) {
        let power = &self.host.status.power;
        let Some(at) = power.off_confirmed_at else {
            if power.state == Some(PowerState::Off) {
                self.add_line(
                    ExplanationTopic::Off,
                    "not confirmed: Dogwatch releases no Node of this host",
                );
            }
            return;
        };
        let confirmed =
            |asked: &ExplainedAnnotation| power.confirmed_for.contains(&asked.request.id());
        let keys: Vec<ExplainedAnnotation> = explained_annotations(self.host)
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
        self.add_line(
            ExplanationTopic::Off,
            format!("confirmed {}{after}", format_since(at, self.now)),
        );
        if !names(false).is_empty() {
            let text = format!(
                "to be confirmed again for {}, which was added later",
                names(false)
            );
            self.add_line(ExplanationTopic::Off, text);
        }
    }

    fn add_pending_reboot(&mut self) {
        let status = &self.host.status;
        let Some(at) = status.pending_reboot_since else {
            return;
        };
        if status.pending_reboot_since > status.last_powered_on {
            let text = format!("a reboot is pending {}", format_since(at, self.now));
            self.add_line(ExplanationTopic::Phase, text);
        }
    }

    fn add_command(&mut self, command: &PendingCommand) {
        let attempt = match (command.before, command.attempt) {
            (0, 1) => String::new(),
            (before, attempt) => format!(", attempt {attempt}, {before} sent before it"),
        };
        let text = format!(
            "{} decided {}{}{attempt} ({})",
            command.command,
            format_since(command.at, self.now),
            level_suffix(self.host, command.level),
            command.why
        );
        self.add_line(ExplanationTopic::Command, text);
        let end = match &command.end {
            PendingCommandEnd::Open => "no result is recorded: it may be under way".to_owned(),
            PendingCommandEnd::Answered { at } => {
                format!("the BMC accepted it {}", format_ago(*at, self.now))
            }
            PendingCommandEnd::Failed { at, message } => {
                format!("it failed {}: {message}", format_ago(*at, self.now))
            }
            PendingCommandEnd::Unknown { at, message } => format!(
                "abandoned {}, and the BMC may still run it: {message}",
                format_ago(*at, self.now)
            ),
        };
        self.add_line(ExplanationTopic::Command, end);
    }

    /// The remediation that holds the host off, or did last.
    fn add_remediation(&mut self) {
        let Some(record) = record_on_host(self.host) else {
            return;
        };
        let Some(last) = record.steps.last() else {
            return;
        };
        let (step, at) = (last.step.as_str(), format_since(last.at, self.now));
        let text = format!("of {}: {step} {at}", record.subject);
        self.add_line(ExplanationTopic::Remediation, text);
    }

    /// The controller's condition, and what it would say now if the host has changed since.
    fn add_decision(&mut self) {
        let said = host_condition(self.host, POWER_AS_WANTED);
        if let Some(said) = said {
            self.add_line(
                ExplanationTopic::Says,
                format!("{}: {}", said.reason, said.message),
            );
        }
        if let Some(because) = forecast_without_reading(self.view, self.now)
            && said.is_none_or(|said| said.reason != because.reason.as_str())
        {
            let text = format!("current state: {}: {}", because.reason, because.message);
            self.add_line(ExplanationTopic::Says, text);
        }
    }

    fn add_bmc(&mut self) {
        for (level, devices) in self.host.levels.iter().enumerate() {
            let places: Vec<String> = devices
                .devices
                .iter()
                .map(|device| match &device.address {
                    Ok(address) if device.verify => scheme_and_host(address),
                    Ok(address) => format!(
                        "{} (its certificate is not verified)",
                        scheme_and_host(address)
                    ),
                    Err(bad) => format!("no address: {bad}"),
                })
                .collect();
            let text = format!("level {level}: {}", places.join(" and "));
            self.add_line(ExplanationTopic::Bmc, text);
        }
        match host_condition(self.host, POWER_CONTROL_READY) {
            Some(ready) => {
                let works = match ready.status.as_str() {
                    "True" => "works",
                    "False" => "does not work",
                    _ => "was not seen working",
                };
                let text = format!("power control {works}: {}: {}", ready.reason, ready.message);
                self.add_line(ExplanationTopic::Bmc, text);
            }
            None if !self.host.levels.is_empty() => {
                self.add_line(
                    ExplanationTopic::Bmc,
                    "power control has never been checked",
                );
            }
            None => {}
        }
    }

    fn add_past_actions(&mut self) {
        for done in self.host.status.power.history.iter().take(MAX_PAST_ACTIONS) {
            self.add_line(ExplanationTopic::Last, past_action_line(done));
        }
    }

    fn add_controller(&mut self) {
        if let Some(text) = self.view.controller.to_sentence(self.now) {
            self.add_line(ExplanationTopic::Controller, text);
        }
    }
}
