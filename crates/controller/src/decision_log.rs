//! The controller's decision log (`--decision-log`): decisions about hosts and remediations, readings
//! of BMCs, power commands and releases, for `dogwatch verify-trace`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::{
    BmcFault, CommandAnswer, HostName, LevelReading, PendingCommand, PowerAction, PowerDecision,
    PowerReading,
};
use dogwatch_core::remediation::{RemediationDecision, RemediationSubject, WorkloadRelease};
use dogwatch_core::verify::trace::{POWER_DOMAIN, REMEDIATION_DOMAIN, TraceEvent, TraceSeen};
use dogwatch_runtime::decision_log::DecisionLogWriter;

use crate::remediation::action_label;

/// Where the controller logs. Clones share one file; the default logs nothing.
#[derive(Debug, Clone, Default)]
pub struct ControllerDecisionLog(Option<Arc<DecisionLogWriter>>);

impl ControllerDecisionLog {
    pub fn new(writer: DecisionLogWriter) -> Self {
        Self(Some(Arc::new(writer)))
    }

    fn push_event(&self, domain: &str, key: &str, event: TraceEvent) {
        if let Some(writer) = &self.0 {
            writer.push_event(domain, key, event);
        }
    }

    /// Power control begins a term as the leader.
    pub(crate) fn log_term(&self, confirm_interval: Duration) {
        let confirm_interval = confirm_interval.as_secs_f64();
        let event = TraceEvent::TermBegun { confirm_interval };
        self.push_event(POWER_DOMAIN, "controller", event);
    }

    /// The log of one host, in one term.
    pub(crate) fn open_host(&self, host: &HostName) -> HostDecisionLog {
        HostDecisionLog {
            host: self.open_subject(POWER_DOMAIN, host_key(host)),
            readings: BTreeMap::new(),
        }
    }

    /// The log of one remediation, in one term.
    pub(crate) fn open_remediation(&self, subject: &RemediationSubject) -> RemediationDecisionLog {
        RemediationDecisionLog(self.open_subject(REMEDIATION_DOMAIN, subject.to_string()))
    }

    fn open_subject(&self, domain: &'static str, key: String) -> SubjectLog {
        SubjectLog {
            log: self.clone(),
            domain,
            key,
            decided: None,
        }
    }

    /// Right before the Node is deleted or tainted.
    pub(crate) fn log_release(&self, subject: &RemediationSubject, release: &WorkloadRelease) {
        let proof = release.permit.proof();
        let event = TraceEvent::ReleaseBegun {
            host: host_key(proof.host()),
            node: release.permit.node().to_string(),
            node_uid: release.permit.node_uid().to_owned(),
            proof: proof.source().as_str().to_owned(),
        };
        self.push_event(REMEDIATION_DOMAIN, &subject.to_string(), event);
    }
}

/// The log of one object in one domain.
#[derive(Debug, Default)]
struct SubjectLog {
    log: ControllerDecisionLog,
    domain: &'static str,
    key: String,
    /// The last decision: only changes are logged.
    decided: Option<TraceEvent>,
}

impl SubjectLog {
    fn push_event(&self, event: TraceEvent) {
        self.log.push_event(self.domain, &self.key, event);
    }

    fn log_decision(&mut self, reason: &str, actions: impl Iterator<Item = &'static str>) {
        if self.log.0.is_none() {
            return;
        }
        let event = TraceEvent::Decided {
            reason: reason.to_owned(),
            actions: actions.map(str::to_owned).collect(),
            seen: TraceSeen::default(),
        };
        if self.decided.as_ref() != Some(&event) {
            self.push_event(event.clone());
            self.decided = Some(event);
        }
    }
}

/// Logs what one host's reconciler does.
pub(crate) struct HostDecisionLog {
    host: SubjectLog,
    /// The last reading of each level.
    readings: BTreeMap<usize, String>,
}

impl HostDecisionLog {
    fn push_event(&self, event: TraceEvent) {
        self.host.push_event(event);
    }

    pub(crate) fn log_decision(&mut self, decision: &PowerDecision) {
        let actions = decision.actions.iter().map(name_power_action);
        let reason = decision.cause.reason.as_str();
        self.host.log_decision(reason, actions);
    }

    /// Logs a reading that says off, or differs from the one before.
    pub(crate) fn log_reading(&mut self, read: &LevelReading) {
        if self.host.log.0.is_none() {
            return;
        }
        let reading = name_reading(read);
        let last = self.readings.insert(read.level, reading.clone());
        if reading == PowerReading::Off.as_str() || last.as_ref() != Some(&reading) {
            self.push_event(TraceEvent::PowerRead {
                level: read.level,
                asked: read.asked.as_secs_f64(),
                reading,
            });
        }
    }

    pub(crate) fn log_written_command(&self, id: &str) {
        let id = id.to_owned();
        self.push_event(TraceEvent::PowerCommandWritten { id });
    }

    pub(crate) fn log_sent_command(&self, command: &PendingCommand) {
        self.push_event(TraceEvent::PowerCommandSent {
            id: command.id.clone(),
            command: command.command.as_str().to_owned(),
            level: command.level,
        });
    }

    pub(crate) fn log_ended_command(&self, id: &str, how: &Result<CommandAnswer, BmcFault>) {
        let end = match how {
            Ok(answer) => answer.as_str(),
            Err(fault) => fault.class.power_reason().as_str(),
        };
        self.push_event(TraceEvent::PowerCommandEnded {
            id: id.to_owned(),
            end: end.to_owned(),
        });
    }
}

/// Logs the decisions about one remediation.
#[derive(Debug, Default)]
pub(crate) struct RemediationDecisionLog(SubjectLog);

impl RemediationDecisionLog {
    pub(crate) fn log_decision(&mut self, decision: &RemediationDecision) {
        let actions = decision.actions.iter().map(action_label);
        self.0.log_decision(decision.cause.reason.as_str(), actions);
    }
}

fn host_key(host: &HostName) -> String {
    format!("host/{host}")
}

fn name_power_action(action: &PowerAction) -> &'static str {
    match action {
        PowerAction::WriteStatus(_) => "WriteStatus",
        PowerAction::RemoveAnnotations(_) => "RemoveAnnotations",
        PowerAction::Send(_) => "Send",
    }
}

fn name_reading(read: &LevelReading) -> String {
    let name = match &read.result {
        Ok(reading) => reading.as_str(),
        Err(fault) => fault.class.power_reason().as_str(),
    };
    name.to_owned()
}
