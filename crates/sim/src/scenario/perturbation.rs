//! Perturbations: one event of a watch, one read or one write of one process goes wrong.
//!
//! Events, reads and writes of a process are counted from its first, over all its runs. The same
//! script gives the same counts, so a run without perturbations tells what can be perturbed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use dogwatch_core::duration::format_duration;
use dogwatch_kubesim::api::{ApiVerb, FaultEffect, RequestInfo, WatchEventFault, WatchEventInfo};

use super::line_words::LineWords;

/// How late a perturbed event or answer is, unless the script says otherwise.
pub const USUAL_DELAY: Duration = Duration::from_secs(20);

/// What happens to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventChange {
    /// It is lost until the watch ends.
    Drop,
    /// It and all later events come late.
    Hold(Duration),
    /// It comes after its successor.
    Overtake,
}

/// What happens to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadChange {
    /// The answer comes late: the world has moved on.
    Late(Duration),
    /// The list is as it was before the last change of its kind.
    Older,
}

/// When a process dies at a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteCrash {
    /// Before the API server has the write.
    Before,
    /// After the API server has applied the write, before its answer.
    After,
}

/// One thing that goes wrong. `nth` counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Perturbation {
    Event {
        process: String,
        /// The plural of the watched kind.
        resource: String,
        nth: u32,
        change: EventChange,
    },
    Read {
        process: String,
        nth: u32,
        change: ReadChange,
    },
    Write {
        process: String,
        nth: u32,
        crash: WriteCrash,
    },
}

impl fmt::Display for Perturbation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |time: &Duration| {
            if *time == USUAL_DELAY {
                String::new()
            } else {
                format!(" by={}", format_duration(*time))
            }
        };
        match self {
            Self::Event {
                process,
                resource,
                nth,
                change,
            } => {
                let change = match change {
                    EventChange::Drop => "drop".to_owned(),
                    EventChange::Hold(time) => format!("hold{}", by(time)),
                    EventChange::Overtake => "overtake".to_owned(),
                };
                write!(out, "perturb event {nth} {resource} of {process} {change}")
            }
            Self::Read {
                process,
                nth,
                change,
            } => {
                let change = match change {
                    ReadChange::Late(time) => format!("late{}", by(time)),
                    ReadChange::Older => "older".to_owned(),
                };
                write!(out, "perturb read {nth} of {process} {change}")
            }
            Self::Write {
                process,
                nth,
                crash,
            } => {
                let crash = match crash {
                    WriteCrash::Before => "before",
                    WriteCrash::After => "after",
                };
                write!(out, "perturb write {nth} of {process} crash-{crash}")
            }
        }
    }
}

/// Reads `event N RESOURCE of PROCESS CHANGE`, `read N of PROCESS CHANGE` or
/// `write N of PROCESS CRASH`.
pub(super) fn parse_perturbation(words: &mut LineWords) -> Result<Perturbation, String> {
    let kind = words.next_word("event, read or write")?;
    let nth = words.next_word("its number")?;
    let nth = nth
        .parse()
        .map_err(|_| format!("{nth:?} is not a number"))?;
    let resource = match kind.as_str() {
        "event" => words.next_word("the resource")?,
        _ => String::new(),
    };
    words.expect_word("of")?;
    let process = words.next_word("the node or controller")?;
    let change = words.next_word("what happens")?;
    let by = words.duration_option("by")?.unwrap_or(USUAL_DELAY);
    Ok(match (kind.as_str(), change.as_str()) {
        ("event", change) => Perturbation::Event {
            process,
            resource,
            nth,
            change: match change {
                "drop" => EventChange::Drop,
                "hold" => EventChange::Hold(by),
                "overtake" => EventChange::Overtake,
                other => return Err(format!("{other:?} is not drop, hold or overtake")),
            },
        },
        ("read", change) => Perturbation::Read {
            process,
            nth,
            change: match change {
                "late" => ReadChange::Late(by),
                "older" => ReadChange::Older,
                other => return Err(format!("{other:?} is not late or older")),
            },
        },
        ("write", change) => Perturbation::Write {
            process,
            nth,
            crash: match change {
                "crash-before" => WriteCrash::Before,
                "crash-after" => WriteCrash::After,
                other => return Err(format!("{other:?} is not crash-before or crash-after")),
            },
        },
        (other, _) => return Err(format!("{other:?} is not event, read or write")),
    })
}

/// What a perturbation does to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PerturbedRequest {
    Effect(FaultEffect),
    Crash(WriteCrash),
}

/// What the processes of a run received and sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Events, by process and resource.
    pub events: BTreeMap<(String, String), u32>,
    /// Reads, by process: whether a watch from this list followed.
    pub reads: BTreeMap<String, Vec<ReadCall>>,
    /// Writes, by process.
    pub writes: BTreeMap<String, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCall {
    resource: String,
    is_list: bool,
    /// Whether the next request for this kind was a watch, so that the list need not be the newest.
    is_watched: bool,
}

impl CallCounts {
    /// Every perturbation that these counts allow, in a fixed order.
    pub fn list_perturbations(&self) -> Vec<Perturbation> {
        let mut all = Vec::new();
        for ((process, resource), count) in &self.events {
            let changes = [
                EventChange::Drop,
                EventChange::Hold(USUAL_DELAY),
                EventChange::Overtake,
            ];
            all.extend((1..=*count).flat_map(|nth| {
                changes.map(|change| Perturbation::Event {
                    process: process.clone(),
                    resource: resource.clone(),
                    nth,
                    change,
                })
            }));
        }
        for (process, reads) in &self.reads {
            for (nth, read) in (1..).zip(reads) {
                let older = (read.is_list && read.is_watched).then_some(ReadChange::Older);
                let changes = [Some(ReadChange::Late(USUAL_DELAY)), older];
                all.extend(
                    changes
                        .into_iter()
                        .flatten()
                        .map(|change| Perturbation::Read {
                            process: process.clone(),
                            nth,
                            change,
                        }),
                );
            }
        }
        for (process, count) in &self.writes {
            all.extend((1..=*count).flat_map(|nth| {
                [WriteCrash::Before, WriteCrash::After].map(|crash| Perturbation::Write {
                    process: process.clone(),
                    nth,
                    crash,
                })
            }));
        }
        all
    }

    fn count_read(&mut self, process: &str, request: &RequestInfo, is_list: bool) -> u32 {
        let reads = self.reads.entry(process.to_owned()).or_default();
        reads.push(ReadCall {
            resource: request.resource.clone(),
            is_list,
            is_watched: false,
        });
        u32::try_from(reads.len()).unwrap_or(u32::MAX)
    }

    fn note_watch(&mut self, process: &str, request: &RequestInfo) {
        let reads = self.reads.entry(process.to_owned()).or_default();
        let of_kind = reads.iter_mut().rev();
        let last = of_kind
            .into_iter()
            .find(|read| read.resource == request.resource);
        if let Some(read) = last {
            read.is_watched = true;
        }
    }
}

/// The perturbations that a script wants, and the counts so far.
#[derive(Debug, Default)]
pub(super) struct PerturbationPlan {
    pub(super) counts: CallCounts,
    wanted: Vec<Perturbation>,
}

impl PerturbationPlan {
    pub(super) fn add_perturbation(&mut self, perturbation: Perturbation) {
        self.wanted.push(perturbation);
    }

    /// Counts an event and returns what happens to it.
    pub(super) fn take_event(
        &mut self,
        process: &str,
        event: &WatchEventInfo,
    ) -> Option<WatchEventFault> {
        let key = (process.to_owned(), event.resource.clone());
        let count = self.counts.events.entry(key).or_default();
        *count += 1;
        let at = *count;
        self.wanted.iter().find_map(|wanted| match wanted {
            Perturbation::Event {
                process: of,
                resource,
                nth,
                change,
            } if of == process && *resource == event.resource && *nth == at => Some(match change {
                EventChange::Drop => WatchEventFault::Drop,
                EventChange::Hold(time) => WatchEventFault::Hold(*time),
                EventChange::Overtake => WatchEventFault::Overtake,
            }),
            Perturbation::Event { .. } | Perturbation::Read { .. } | Perturbation::Write { .. } => {
                None
            }
        })
    }

    /// Counts a request and returns what happens to it.
    pub(super) fn take_request(
        &mut self,
        process: &str,
        request: &RequestInfo,
    ) -> Option<PerturbedRequest> {
        match request.verb? {
            ApiVerb::Watch => {
                self.counts.note_watch(process, request);
                None
            }
            verb @ (ApiVerb::Get | ApiVerb::List) => {
                let nth = self
                    .counts
                    .count_read(process, request, verb == ApiVerb::List);
                self.find_read(process, nth)
            }
            ApiVerb::Create
            | ApiVerb::Update
            | ApiVerb::Patch
            | ApiVerb::Delete
            | ApiVerb::DeleteCollection => {
                let count = self.counts.writes.entry(process.to_owned()).or_default();
                *count += 1;
                let nth = *count;
                self.find_write(process, nth)
            }
        }
    }

    fn find_read(&self, process: &str, at: u32) -> Option<PerturbedRequest> {
        self.wanted.iter().find_map(|wanted| match wanted {
            Perturbation::Read {
                process: of,
                nth,
                change,
            } if of == process && *nth == at => Some(PerturbedRequest::Effect(match change {
                ReadChange::Late(time) => FaultEffect::DelayAnswer(*time),
                ReadChange::Older => FaultEffect::OlderList,
            })),
            Perturbation::Event { .. } | Perturbation::Read { .. } | Perturbation::Write { .. } => {
                None
            }
        })
    }

    fn find_write(&self, process: &str, at: u32) -> Option<PerturbedRequest> {
        self.wanted.iter().find_map(|wanted| match wanted {
            Perturbation::Write {
                process: of,
                nth,
                crash,
            } if of == process && *nth == at => Some(PerturbedRequest::Crash(*crash)),
            Perturbation::Event { .. } | Perturbation::Read { .. } | Perturbation::Write { .. } => {
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::line_words::split_words;

    fn parse(line: &str) -> Result<Perturbation, String> {
        let mut words = LineWords::new(split_words(line)?[1..].to_vec());
        let parsed = parse_perturbation(&mut words)?;
        words.expect_end()?;
        Ok(parsed)
    }

    #[test]
    fn a_perturbation_is_written_as_it_is_read() {
        for line in [
            "perturb event 3 nodes of n1 drop",
            "perturb event 3 pods of c1 hold",
            "perturb event 3 pods of c1 hold by=1m",
            "perturb event 12 leases of n2 overtake",
            "perturb read 7 of n1 late",
            "perturb read 7 of n1 older",
            "perturb write 1 of c1 crash-before",
            "perturb write 1 of c1 crash-after",
        ] {
            assert_eq!(parse(line).unwrap().to_string(), line);
        }
        for line in [
            "perturb event x nodes of n1 drop",
            "perturb event 1 nodes of n1 lose",
            "perturb read 1 of n1 drop",
            "perturb write 1 of n1 crash",
            "perturb call 1 of n1 late",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
