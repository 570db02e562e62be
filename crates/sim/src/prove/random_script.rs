//! Makes a script from a seed: planned and forced work, requests, schedules, locks and policies,
//! with all faults at once, on a few nodes. It ends everything that it began, and expects a clean
//! cluster.

use std::time::Duration;

use dogwatch_kubesim::seed::{RandomStream, SimulationSeed};

use super::minimal_script::EPILOGUE;
use crate::scenario::{PatientOutcome, ScenarioError, parse_script, run_patiently};

/// Runs the script as [`random_script`] makes it.
pub async fn run_random_script(text: &str) -> Result<PatientOutcome, ScenarioError> {
    run_patiently(&parse_script(text)?, Duration::ZERO).await
}

const ALL_COMPONENTS: &str = "healer,lock,power,remediation";
/// Each fault ends by itself, and is shorter than a confirm interval: longer lies no reading can
/// detect.
const BMC_FAULTS: [&str; 10] = [
    "off-reported-early 3s once",
    "comes-back 2s once",
    "off-ignored once",
    "on-ignored once",
    "soft-ignored once",
    "answer-lost 20s once",
    "hang of commands once",
    "refuses 503 3 times",
    "slow 15s of commands once",
    "breaks once",
];
const POLICY_CHANGES: [&str; 9] = [
    "max=1",
    "max=2",
    "max=50%",
    "paused=\"a storm\"",
    "paused=none",
    "drain-timeout=1m",
    "on-drain-timeout=delete",
    "settle=20s",
    "priority=3",
];
const CALL_FAULTS: [&str; 4] = ["lose", "lose-answer", "duplicate", "delay"];
const CALLS: [&str; 8] = [
    "patch leases",
    "create leases",
    "list leases",
    "patch nodes",
    "get nodes",
    "create pods/eviction",
    "patch baremetalhosts",
    "delete nodes",
];
const EVENT_KINDS: [&str; 5] = [
    "nodes",
    "pods",
    "leases",
    "rebootpolicies",
    "baremetalhosts",
];
const REBOOT_COMMANDS: [&str; 5] = ["nothing", "hangs", "fails", "missing", "works after=90s"];
const LOCK_CLIENTS: [&str; 3] = ["outside", "default/m1", "n1"];

/// The script of a seed.
pub fn random_script(seed: u64) -> String {
    let mut script = ScriptWriter {
        random: SimulationSeed(seed).stream_for_actor("script"),
        nodes: Vec::new(),
        lines: vec![format!("# S1 to S6: all faults at once, from seed {seed}.")],
        made: 0,
    };
    script.write_setup(seed);
    for _ in 0..10 + script.random.next_below(25) {
        script.write_deed();
        let pause = script.pick_pause();
        script.write(format!("run {pause}s"));
    }
    script.write_epilogue();
    script.lines.join("\n") + "\n"
}

struct ScriptWriter {
    random: RandomStream,
    nodes: Vec<String>,
    lines: Vec<String>,
    /// How many objects were named so far.
    made: u32,
}

impl ScriptWriter {
    fn write(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let count = u64::try_from(all.len()).expect("a short list");
        let at = usize::try_from(self.random.next_below(count)).expect("below its length");
        all[at]
    }

    fn any_node(&mut self) -> String {
        let nodes = self.nodes.clone();
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        self.one_of(&nodes).to_owned()
    }

    /// A coordinator's node or a controller.
    fn any_process(&mut self) -> String {
        if self.random.next_below(3) == 0 {
            return self.one_of(&["c1", "c2"]).to_owned();
        }
        self.any_node()
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("x{}", self.made)
    }

    /// Seconds: mostly short, so that things overlap.
    fn pick_pause(&mut self) -> u64 {
        let most = [3, 20, 90, 400][usize::try_from(self.random.next_below(4)).expect("below 4")];
        1 + self.random.next_below(most)
    }

    fn write_setup(&mut self, seed: u64) {
        let nodes = 2 + self.random.next_below(3);
        let control_plane = self.random.next_below(2);
        self.nodes = (1..=nodes).map(|number| format!("n{number}")).collect();
        self.write(format!(
            "cluster nodes={nodes} control-plane={control_plane} seed={seed}"
        ));
        let budget = self.one_of(&["", " pdb=max:1", " pdb=min:1"]);
        self.write(format!("workload web replicas=3 stops-after=2s{budget}"));
        self.write("config reboot-timeout=10m reboot-attempts=2 drain-timeout=10m gate-timeout=5m on-gate-timeout=release");
        for number in 1..=nodes {
            self.write(format!("host h{number} node=n{number}"));
            self.write(format!("machine m{number} host=h{number} node=n{number}"));
        }
        for kind in ["node-reboots", "schedules", "remediations", "policies"] {
            self.write(format!("{kind} installed"));
        }
        self.write("start");
        self.write("budgets may break");
        self.write("policy workers nodes=all max=1");
        self.write("policy team nodes=team=b max=1");
        self.write(format!("controller c1 components={ALL_COMPONENTS}"));
        self.write(format!("controller c2 components={ALL_COMPONENTS}"));
        self.write("run 61s");
    }

    fn write_deed(&mut self) {
        match self.random.next_below(10) {
            0..=2 => self.write_planned_work(),
            3 => self.write_forced_work(),
            4 => self.write_lock_call(),
            5 => self.write_policy_change(),
            6 => self.write_bmc_fault(),
            7 => self.write_process_fault(),
            _ => self.write_call_fault(),
        }
    }

    fn write_planned_work(&mut self) {
        let node = self.any_node();
        let line = match self.random.next_below(8) {
            0 | 1 => format!("touch {node} /run/reboot-needed \"kernel\""),
            2 => format!("request {node} reason=\"kernel\""),
            3 => format!("request {node} reason=\"gpu\" method=PowerCycle"),
            4 => format!("node-reboot {} of {node}", self.new_name()),
            5 => format!(
                "node-reboot {} of {node} method=PowerCycle",
                self.new_name()
            ),
            6 => format!(
                "schedule {} nodes={node} at=2m deadline=2h",
                self.new_name()
            ),
            _ => format!("abort {node} reason=\"not now\""),
        };
        self.write(line);
    }

    fn write_forced_work(&mut self) {
        let node = self.any_node();
        let number = node.trim_start_matches('n').to_owned();
        match self.random.next_below(4) {
            0 => {
                self.write(format!("kubelet-dies {node}"));
                let name = self.new_name();
                self.write(format!(
                    "after 90s: remediation {name} of {node} timeout=1h"
                ));
            }
            1 => {
                self.write(format!("kubelet-dies {node}"));
                self.write(format!(
                    "after 90s: annotate machine/m{number} host.metal3.io/external-remediation \"\""
                ));
            }
            2 => self.write(format!(
                "annotate host/h{number} reboot.metal3.io '{{\"mode\":\"hard\"}}'"
            )),
            _ => {
                let command = self.one_of(&REBOOT_COMMANDS);
                self.write(format!("reboot-command {node} {command}"));
            }
        }
    }

    fn write_lock_call(&mut self) {
        let (client, at) = (self.one_of(&LOCK_CLIENTS), self.one_of(&["c1", "c2"]));
        match self.random.next_below(4) {
            0 | 1 => self.write(format!("lock {client} at {at} always")),
            2 => self.write(format!("lock {client} at {at} nowait")),
            _ => self.write(format!("unlock {client} at {at}")),
        }
    }

    fn write_policy_change(&mut self) {
        let name = self.one_of(&["workers", "team"]);
        let change = self.one_of(&POLICY_CHANGES);
        match self.random.next_below(6) {
            0 => {
                let node = self.any_node();
                let team = self.one_of(&["a", "b"]);
                self.write(format!("label {node} team {team}"));
            }
            _ if name == "team" => self.write(format!("policy team nodes=team=b {change}")),
            _ => self.write(format!("policy workers nodes=all {change}")),
        }
    }

    fn write_bmc_fault(&mut self) {
        let node = self.any_node();
        let fault = self.one_of(&BMC_FAULTS);
        self.write(format!("bmc h{} {fault}", node.trim_start_matches('n')));
    }

    fn write_process_fault(&mut self) {
        let process = self.any_process();
        let time = self.pick_pause();
        match self.random.next_below(6) {
            0 | 1 => self.write(format!("kill {process}")),
            2 => {
                self.write(format!("hold {process}"));
                self.write(format!("after {time}s: resume {process}"));
            }
            3 => {
                let call = 1 + self.random.next_below(12);
                let side = self.one_of(&["before", "after"]);
                self.write(format!("kill {process} at call {call} {side}"));
            }
            4 => self.write(format!("partition {process} for {time}s")),
            _ => self.write(format!("api down for {time}s")),
        }
    }

    fn write_call_fault(&mut self) {
        let process = self.any_process();
        let count = 1 + self.random.next_below(4);
        match self.random.next_below(6) {
            0 => self.write("compact"),
            1 => self.write(format!("cut-watches {process}")),
            2 => {
                let nth = 1 + self.random.next_below(300);
                let kind = self.one_of(&EVENT_KINDS);
                let change = self.one_of(&["drop", "hold", "overtake"]);
                self.write(format!("perturb event {nth} {kind} of {process} {change}"));
            }
            _ => {
                let (fault, call) = (self.one_of(&CALL_FAULTS), self.one_of(&CALLS));
                let by = self.pick_pause();
                self.write(format!("{fault} next {count} {call} of {process} by={by}s"));
            }
        }
    }

    /// Ends every fault and all that a person began, and gives every host that may hang a boot.
    fn write_epilogue(&mut self) {
        self.write(EPILOGUE);
        self.write("run 10m");
        for process in self
            .nodes
            .clone()
            .iter()
            .map(String::as_str)
            .chain(["c1", "c2"])
        {
            self.write(format!("resume {process}"));
        }
        for number in 1..=self.nodes.len() {
            self.write(format!("bmc h{number} well"));
            self.write(format!("reboot-command n{number} works"));
        }
        self.write("delete policy workers");
        self.write("delete policy team");
        self.write("run 5m");
        // A call that still waits could be given the lock after the last unlock.
        for client in LOCK_CLIENTS {
            self.write(format!("hang-up {client}"));
        }
        self.unlock_all();
        self.write("run 1h or until clean");
        for number in 1..=self.nodes.len() {
            self.write(format!(
                "unless clean: annotate host/h{number} reboot.metal3.io '{{\"mode\":\"hard\"}}'"
            ));
            self.write("run 20m or until clean");
            // An earlier call of the same client may have waited until now.
            self.unlock_all();
        }
        self.write("run 10m");
        self.write("wait until clean at most 24h");
    }

    fn unlock_all(&mut self) {
        for client in LOCK_CLIENTS {
            self.write(format!("unlock {client} at c1"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_random_script_can_be_read_and_a_seed_gives_the_same_again() {
        for seed in 0..500 {
            let script = random_script(seed);
            assert_eq!(script, random_script(seed));
            if let Err(error) = parse_script(&script) {
                panic!("seed {seed}: {error}");
            }
        }
    }
}
