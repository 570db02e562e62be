//! Recounts S2 (off is proved before a Node is released) and S5 (one command is sent once) from the
//! decision logs of controllers.
//!
//! Each term of a controller is judged by itself: a new leader reads every BMC again, so its own
//! readings have to be enough. A term of which lines are missing (its beginning, or lines that were
//! lost) accuses nobody.

use std::collections::BTreeMap;

use super::BrokenRule;
use super::history::WriteSource;
use super::trace::{
    POWER_DOMAIN, PROOF_BY_PERSON, REMEDIATION_DOMAIN, TraceEvent, TraceLine, source_of_trace_line,
};
use crate::power::PowerReading;
use dogwatch_api::bare_metal_host::PowerCommand;

/// Seconds are written with fewer digits than clocks have.
const ROUNDING: f64 = 0.001;

/// The result of a recount of power commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerRecount {
    /// Lines that were judged.
    pub lines: usize,
    /// How many power commands were sent.
    pub commands: usize,
    /// How many Nodes were released.
    pub releases: usize,
    pub broken: Vec<BrokenRule>,
}

/// Judges the lines of many controllers; `(FILE, LINE, …)`, those of one file in their order.
pub fn recount_power<'a>(
    lines: impl IntoIterator<Item = (usize, usize, &'a TraceLine)>,
) -> PowerRecount {
    let mut history = PowerHistory::default();
    for (file, line, trace) in lines {
        if trace.domain != POWER_DOMAIN && trace.domain != REMEDIATION_DOMAIN {
            continue;
        }
        history.recount.lines += 1;
        let source = source_of_trace_line(file, line, trace);
        history.judge_line(trace, source);
    }
    history.recount
}

#[derive(Default)]
struct PowerHistory {
    /// The present term of each process, if the log has all of its lines so far.
    terms: BTreeMap<String, KnownTerm>,
    /// Every command that was sent, by its id.
    sent: BTreeMap<String, WriteSource>,
    recount: PowerRecount,
}

struct KnownTerm {
    confirm_interval: f64,
    hosts: BTreeMap<String, KnownHost>,
}

/// What one term has seen of a host.
#[derive(Default)]
struct KnownHost {
    /// Commands that the host's status has.
    written: Vec<String>,
    last_command: Option<LoggedCommand>,
    /// The first and the newest reading of off by level, since anything else was read or sent.
    off: BTreeMap<usize, OffRun>,
}

struct LoggedCommand {
    id: String,
    powers_on: bool,
    /// When it was answered, in monotonic seconds. `None`: it may still run.
    ended: Option<f64>,
    source: WriteSource,
}

struct OffRun {
    first: f64,
    newest: f64,
}

impl PowerHistory {
    fn judge_line(&mut self, trace: &TraceLine, source: WriteSource) {
        match &trace.event {
            TraceEvent::TermBegun { confirm_interval } => {
                let term = KnownTerm {
                    confirm_interval: *confirm_interval,
                    hosts: BTreeMap::new(),
                };
                self.terms.insert(trace.run.clone(), term);
            }
            // What follows cannot be judged before the next term.
            TraceEvent::Dropped { .. } => {
                self.terms.remove(&trace.run);
            }
            TraceEvent::PowerRead {
                level,
                asked,
                reading,
            } => self.with_host(trace, |host| host.add_reading(*level, *asked, reading)),
            TraceEvent::PowerCommandWritten { id } => {
                self.with_host(trace, |host| host.written.push(id.clone()));
            }
            TraceEvent::PowerCommandSent { id, command, .. } => {
                self.judge_command(trace, id, command, source);
            }
            TraceEvent::PowerCommandEnded { id, .. } => {
                self.with_host(trace, |host| host.end_command(id, trace.mono));
            }
            TraceEvent::ReleaseBegun {
                host, node, proof, ..
            } => self.judge_release(&trace.run, host, node, proof, source),
            TraceEvent::Decided { .. }
            | TraceEvent::NodeWritten { .. }
            | TraceEvent::LeaseWritten { .. }
            | TraceEvent::CommandStarted { .. } => {}
        }
    }

    fn with_host(&mut self, trace: &TraceLine, change: impl FnOnce(&mut KnownHost)) {
        if let Some(term) = self.terms.get_mut(&trace.run) {
            change(term.hosts.entry(trace.key.clone()).or_default());
        }
    }

    fn judge_command(&mut self, trace: &TraceLine, id: &str, command: &str, source: WriteSource) {
        self.recount.commands += 1;
        if let Some(earlier) = self.sent.insert(id.to_owned(), source.clone()) {
            let what = format!("command {id} is sent to {} twice", trace.key);
            self.accuse("S5", what, vec![earlier, source.clone()]);
        }
        let Some(term) = self.terms.get_mut(&trace.run) else {
            return;
        };
        let host = term.hosts.entry(trace.key.clone()).or_default();
        let is_written = host.written.iter().any(|written| written == id);
        host.send_command(id, command, source.clone());
        if !is_written {
            let what = format!(
                "command {id} is sent to {} before it is in the host's status",
                trace.key
            );
            self.accuse("S5", what, vec![source]);
        }
    }

    fn judge_release(
        &mut self,
        run: &str,
        host: &str,
        node: &str,
        proof: &str,
        source: WriteSource,
    ) {
        self.recount.releases += 1;
        let Some(term) = self.terms.get(run).filter(|_| proof != PROOF_BY_PERSON) else {
            return;
        };
        let nothing = KnownHost::default();
        let known = term.hosts.get(host).unwrap_or(&nothing);
        let Err(why) = known.check_off(term.confirm_interval) else {
            return;
        };
        let what = format!("Node {node} is released, and {host} is not proved off: {why}");
        let command = known.last_command.as_ref();
        let command = command.map(|command| command.source.clone());
        self.accuse("S2", what, command.into_iter().chain([source]).collect());
    }

    fn accuse(&mut self, promise: &'static str, what: String, lines: Vec<WriteSource>) {
        self.recount.broken.push(BrokenRule {
            promise,
            what,
            lines,
        });
    }
}

impl KnownHost {
    fn add_reading(&mut self, level: usize, asked: f64, reading: &str) {
        if reading == PowerReading::Off.as_str() {
            let command = self.last_command.as_ref();
            // A reading from before the command's answer says nothing about its effect.
            if command.is_some_and(|command| command.ended.is_none_or(|ended| asked < ended)) {
                return;
            }
            let run = self.off.entry(level).or_insert(OffRun {
                first: asked,
                newest: asked,
            });
            run.newest = run.newest.max(asked);
        } else if is_power_reading(reading) {
            // Any level that says that the machine runs contradicts the others.
            self.off.clear();
        }
        // A failed reading says nothing.
    }

    fn send_command(&mut self, id: &str, command: &str, source: WriteSource) {
        self.off.clear();
        self.last_command = Some(LoggedCommand {
            id: id.to_owned(),
            powers_on: command == PowerCommand::On.as_str(),
            ended: None,
            source,
        });
    }

    fn end_command(&mut self, id: &str, at: f64) {
        if let Some(command) = &mut self.last_command
            && command.id == id
        {
            command.ended = Some(at);
        }
    }

    /// Checks that two readings of one level, the confirm interval apart, say off since the last
    /// command was answered.
    fn check_off(&self, confirm_interval: f64) -> Result<(), String> {
        if let Some(command) = &self.last_command {
            if command.powers_on {
                return Err(format!("its last command, {}, powers it on", command.id));
            }
            if command.ended.is_none() {
                return Err(format!("its last command, {}, may still run", command.id));
            }
        }
        let is_long = |run: &OffRun| run.newest - run.first + ROUNDING >= confirm_interval;
        if self.off.values().any(is_long) {
            return Ok(());
        }
        Err(format!(
            "no two readings {confirm_interval} s apart say off"
        ))
    }
}

fn is_power_reading(reading: &str) -> bool {
    PowerReading::ALL
        .iter()
        .any(|known| known.as_str() == reading)
}

#[cfg(test)]
mod tests {
    use super::super::trace::TRACE_VERSION;
    use super::*;

    const PROOF_BY_COMMAND: &str = "OurCommand";

    const HOST: &str = "host/metal/h1";

    fn line(mono: f64, key: &str, event: TraceEvent) -> TraceLine {
        TraceLine {
            version: TRACE_VERSION,
            at: jiff::Timestamp::UNIX_EPOCH,
            mono,
            run: "p1".into(),
            domain: POWER_DOMAIN.into(),
            key: key.into(),
            event,
        }
    }

    fn term() -> TraceLine {
        let confirm_interval = 5.0;
        line(0.0, "", TraceEvent::TermBegun { confirm_interval })
    }

    fn read(at: f64, reading: &str) -> TraceLine {
        let reading = reading.to_owned();
        let (level, asked) = (0, at);
        let event = TraceEvent::PowerRead {
            level,
            asked,
            reading,
        };
        line(at + 0.2, HOST, event)
    }

    fn command(at: f64, id: &str, command: &str) -> [TraceLine; 3] {
        let (id, command) = (id.to_owned(), command.to_owned());
        let end = "Accepted".to_owned();
        [
            line(at, HOST, TraceEvent::PowerCommandWritten { id: id.clone() }),
            line(
                at,
                HOST,
                TraceEvent::PowerCommandSent {
                    id: id.clone(),
                    command,
                    level: 0,
                },
            ),
            line(at + 1.0, HOST, TraceEvent::PowerCommandEnded { id, end }),
        ]
    }

    fn release(at: f64, proof: &str) -> TraceLine {
        let event = TraceEvent::ReleaseBegun {
            host: HOST.into(),
            node: "n1".into(),
            node_uid: "u1".into(),
            proof: proof.into(),
        };
        TraceLine {
            domain: REMEDIATION_DOMAIN.into(),
            ..line(at, "machine/m1", event)
        }
    }

    fn off(at: f64) -> [TraceLine; 3] {
        command(at, "p1/1", "PowerOff")
    }

    fn judge(parts: &[&[TraceLine]]) -> PowerRecount {
        let lines = parts.iter().copied().flatten().enumerate();
        recount_power(lines.map(|(line, trace)| (0, line + 1, trace)))
    }

    fn broken(parts: &[&[TraceLine]]) -> Vec<String> {
        let broken = judge(parts).broken;
        broken.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_release_after_two_readings_of_off_breaks_nothing() {
        let recount = judge(&[
            &[term(), read(1.0, "On")],
            &off(2.0),
            &[read(4.0, "Off"), read(9.0, "Off")],
            &[release(10.0, PROOF_BY_COMMAND)],
        ]);
        let (broken, sent, released) = (recount.broken, recount.commands, recount.releases);
        assert_eq!((broken, sent, released), (Vec::new(), 1, 1));
    }

    #[test]
    fn a_release_without_the_proof_breaks_s2() {
        let cases: [(&str, Vec<TraceLine>); 7] = [
            ("never read", vec![]),
            ("one reading", vec![read(4.0, "Off")]),
            ("too close", vec![read(4.0, "Off"), read(7.0, "Off")]),
            (
                "on between",
                vec![read(4.0, "Off"), read(6.0, "On"), read(9.5, "Off")],
            ),
            (
                "before the answer",
                vec![read(2.5, "Off"), read(7.0, "Off")],
            ),
            (
                "unknown",
                vec![read(4.0, "TimedOut"), read(9.5, "TimedOut")],
            ),
            (
                "powered on since",
                [
                    vec![read(4.0, "Off"), read(9.0, "Off")],
                    command(10.0, "p1/2", "PowerOn").to_vec(),
                    vec![read(12.0, "Off"), read(20.0, "Off")],
                ]
                .concat(),
            ),
        ];
        for (case, readings) in cases {
            let release = release(21.0, PROOF_BY_COMMAND);
            let broken = broken(&[&[term()], &off(2.0), &readings, &[release]]);
            assert_eq!(broken.len(), 1, "{case}: {broken:?}");
            assert!(broken[0].starts_with("S2: Node n1 is released"), "{case}");
        }
    }

    #[test]
    fn a_command_without_an_answer_may_still_run() {
        let [written, sent, _] = off(2.0);
        let readings = [read(4.0, "Off"), read(9.0, "Off")];
        let release = [release(10.0, PROOF_BY_COMMAND)];
        let broken = broken(&[&[term(), written, sent], &readings, &release]);
        assert!(broken[0].contains("may still run"), "{broken:?}");
    }

    #[test]
    fn a_failed_reading_between_two_of_off_says_nothing() {
        let readings = [read(4.0, "Off"), read(6.0, "Refused"), read(9.0, "Off")];
        let release = [release(10.0, PROOF_BY_COMMAND)];
        assert!(broken(&[&[term()], &off(2.0), &readings, &release]).is_empty());
    }

    #[test]
    fn a_command_is_sent_once_and_only_from_the_hosts_status() {
        let [written, sent, ended] = off(2.0);
        let twice = [term(), written, sent.clone(), ended, sent.clone()];
        let heard = broken(&[&twice]);
        assert_eq!(heard, ["S5: command p1/1 is sent to host/metal/h1 twice"]);
        let heard = broken(&[&[term(), sent]]);
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(heard[0].contains("before it is in the host's status"));
    }

    #[test]
    fn what_a_log_does_not_show_accuses_nobody() {
        let release = release(10.0, PROOF_BY_COMMAND);
        let middle = broken(&[std::slice::from_ref(&release)]);
        let lost = line(5.0, "", TraceEvent::Dropped { lines: 3 });
        let gap = broken(&[&[term()], &off(2.0), &[lost, release]]);
        let confirmed = [term(), self::release(10.0, PROOF_BY_PERSON)];
        assert_eq!(
            (middle, gap, broken(&[&confirmed])),
            (vec![], vec![], vec![])
        );
    }

    #[test]
    fn a_new_term_needs_its_own_readings() {
        let before = [read(4.0, "Off"), read(9.0, "Off")];
        let after = [term(), read(30.0, "Off"), release(31.0, PROOF_BY_COMMAND)];
        assert_eq!(broken(&[&[term()], &off(2.0), &before, &after]).len(), 1);
    }
}
