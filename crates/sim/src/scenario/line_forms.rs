//! The forms of a script's lines, for messages.

pub(super) const LINE_FORMS: &str = r#"each NAME=A,B,C NAME=1..9
cluster nodes=N control-plane=N seed=N boot=TIME ready-after=TIME start="DATE TIME ZONE"
node NODE KEY=VALUE KEY=VALUE
host NAME [node=NODE] [unlinked]
machine NAME host=HOST [node=NODE]
remediations installed
node-reboots installed
schedules installed
cluster-api installed
cluster-api-machine NAME node=NODE [labels=KEY=VALUE,KEY=VALUE]
machine-drain-rule NAME behavior=Drain|Skip|WaitCompleted [order=N] [machines=KEY=VALUE,KEY=VALUE] [pods=KEY=VALUE,KEY=VALUE]
policies installed|removed
policy NAME nodes=all|KEY=VALUE,KEY priority=N max=N|N% max-nodes=N zones=KEY min-interval=TIME window="DAYS|FREQ=RULE HH:MM-HH:MM ZONE except=DATE" paused=REASON until="DATE TIME ZONE" gate-pods=SELECTOR gate-query=QUERY gate-alerts=all|firing|only:NAME|ignore:NAME drain-timeout=TIME on-drain-timeout=abort|delete|force exclude=SELECTOR reboot-timeout=TIME reboot-attempts=N accept-soft=true|false mute-nvsentinel=true|false settle=TIME return-gates=all|none|DaemonSetPods,DisruptionBudgets,Volumes gate-timeout=TIME on-gate-timeout=Keep|Release ready-condition=TYPE:STATUS ready-no-taint=KEY ready-resource=NAME ready-timeout=TIME on-ready-timeout=Keep|Proceed; FIELD=none takes it away
policy-json NAME {"FIELD": VALUE}
workload NAME replicas=N|kind=daemonset stops-after=TIME starts-after=TIME grace=TIME pdb=min:N|max:N [volume] [apart]
config max-unavailable=N|N% drain-timeout=TIME on-drain-timeout=abort|delete|force settle=TIME reboot-timeout=TIME reboot-attempts=N request-label=KEY gate-timeout=TIME on-gate-timeout=keep|release volume-detach-timeout=TIME
start
touch NODE PATH [REASON]
remove NODE PATH
break NODE PATH WHY
request NODE [reason=TEXT] [not-before=TIME] [method=Reboot|PowerCycle|Hold]
cordon NODE
uncordon NODE
annotate NODE|host/NAME|machine/NAME NAME VALUE
label NODE NAME VALUE
unannotate NODE|host/NAME|machine/NAME NAME
condition NODE TYPE=STATUS
taint NODE KEY
untaint NODE KEY
resource NODE NAME=AMOUNT
patch NODE|host/NAME|machine/NAME|node-reboot/NAME|schedule/NAME JSON
remediation NAME of NODE [strategy=DeleteNode|OutOfServiceTaint] [timeout=TIME] [retries=N]
node-reboot NAME of NODE [method=Reboot|PowerCycle|Hold] [not-before=TIME] [deadline=TIME] [success=TYPE:STATUS] [within=TIME] [escalation=METHOD,METHOD]
schedule NAME nodes=all|NODE,NODE at=TIME [deadline=TIME]
resume-rollout POLICY
delete node|pod|policy|host|machine|remediation|node-reboot|schedule NAME
abort NODE [reason=TEXT]
alert NAME fires|pends|ends
prometheus away|back
prometheus finds QUERY WHAT|nothing
controller NAME [components=healer,lock,power,remediation]
kill NODE|CONTROLLER [at call N before|after]
hold NODE|CONTROLLER
resume NODE|CONTROLLER
stop CONTROLLER
lock HOST|GROUP/ID at CONTROLLER [nowait|always]
unlock HOST|GROUP/ID at CONTROLLER
hang-up HOST|GROUP/ID
bmc HOST FAULT|well
confirm-off HOST reason=TEXT
kubelet-dies NODE
writes HOST
power-off NODE
power-on NODE
when CONDITION: COMMAND
after TIME: COMMAND
unless CONDITION: COMMAND
partition NODE|CONTROLLER for TIME [coordinator]
api down for TIME
compact
cut-watches NODE|CONTROLLER
lose|lose-answer|duplicate|delay|delay-answer|refuse next [N] VERB RESOURCE of NODE|CONTROLLER [by=TIME] [code=N]
perturb event N RESOURCE of NODE|CONTROLLER drop|hold|overtake [by=TIME]
perturb read N of NODE|CONTROLLER late|older [by=TIME]
perturb write N of NODE|CONTROLLER crash-before|crash-after
clock NODE +TIME|-TIME
reboot-command NODE missing|fails|nothing|hangs|soft-reboots|works [after=TIME]
budget NAME min=N|max=N
pod NAME on NODE [stops-after=TIME] [labels=KEY=VALUE,KEY=VALUE] [annotations=KEY=VALUE,KEY=VALUE]
pod NAME ends
budgets may break
eviction-policy NAME refuses POD-NAME-START [message=TEXT]
eviction-policy NAME removed
wait until CONDITION at most TIME
run TIME
run TIME or until CONDITION
run until "DATE TIME ZONE"
explain NODE|host/NAME
expect explain NODE|host/NAME contains TEXT
view
expect view contains TEXT
note estimate
expect estimate within N%
expect CONDITION"#;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::scenario::{condition_parser, script_parser};

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
    }

    fn readme() -> String {
        std::fs::read_to_string(folder().join("README.md")).unwrap()
    }

    fn names() -> BTreeSet<&'static str> {
        let first = LINE_FORMS.lines().filter_map(|form| form.split(' ').next());
        first.flat_map(|names| names.split('|')).collect()
    }

    #[test]
    fn every_form_of_a_line_stands_in_the_readme_of_the_scenarios() {
        let readme = readme();
        let lines: BTreeSet<&str> = readme.lines().collect();
        let missing: Vec<&str> = LINE_FORMS
            .lines()
            .filter(|form| !lines.contains(form))
            .collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }

    #[test]
    fn every_condition_stands_in_the_readme_of_the_scenarios() {
        let readme = readme().replace("\\|", "|");
        let all = condition_parser::CONDITION_FORMS.split(", ");
        let missing: Vec<&str> = all
            .filter(|form| !readme.contains(&format!("`{form}`")))
            .collect();
        assert!(missing.is_empty(), "{missing:#?}");
    }

    #[test]
    fn no_script_has_a_command_that_the_forms_do_not_name() {
        let names = names();
        let mut unknown = BTreeSet::new();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "txt") {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            let commands = script_parser::command_lines(&text);
            let first = commands.filter_map(|(_, line)| line.split(' ').next());
            // Variables of `each` are not in this list.
            let first = first.filter(|name| !names.contains(name) && !name.starts_with('$'));
            unknown.extend(first.map(str::to_owned));
        }
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
