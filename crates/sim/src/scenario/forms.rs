//! What a line of a script can look like.

/// Every form that a line can have.
pub(super) const FORMS: &str = r#"each NAME=A,B,C NAME=1..9
cluster nodes=N control-plane=N seed=N boot=TIME ready-after=TIME start="DATE TIME ZONE"
node NODE KEY=VALUE KEY=VALUE
policies installed|removed
policy NAME nodes=all|KEY=VALUE,KEY priority=N max=N|N% zones=KEY min-interval=TIME window="DAYS|FREQ=RULE HH:MM-HH:MM ZONE except=DATE" paused=REASON until="DATE TIME ZONE" gate-pods=SELECTOR gate-query=QUERY gate-alerts=all|firing|only:NAME|ignore:NAME drain-timeout=TIME on-drain-timeout=Abort|Delete|Force exclude=SELECTOR reboot-timeout=TIME reboot-attempts=N settle=TIME return-gates=all|none|DaemonSetPods,DisruptionBudgets,Volumes gate-timeout=TIME on-gate-timeout=Keep|Release; FIELD=none takes it away
policy-json NAME {"FIELD": VALUE}
workload NAME replicas=N|kind=daemonset stops-after=TIME starts-after=TIME grace=TIME pdb=min:N|max:N [volume] [apart]
config max-unavailable=N|N% drain-timeout=TIME on-drain-timeout=abort|delete|force settle=TIME reboot-timeout=TIME reboot-attempts=N gate-timeout=TIME on-gate-timeout=keep|release volume-detach-timeout=TIME
start
touch NODE PATH [REASON]
remove NODE PATH
break NODE PATH WHY
request NODE [reason=TEXT] [not-before=TIME]
cordon NODE
uncordon NODE
annotate NODE NAME VALUE
label NODE NAME VALUE
unannotate NODE NAME
delete node|pod|policy NAME
abort NODE [reason=TEXT]
alert NAME fires|pends|ends
prometheus away|back
prometheus finds QUERY WHAT|nothing
kill NODE [at call N before|after]
hold NODE
resume NODE
power-off NODE
power-on NODE
when CONDITION: COMMAND
after TIME: COMMAND
partition NODE for TIME [coordinator]
api down for TIME
compact
cut-watches NODE
lose|lose-answer|duplicate|delay|delay-answer|refuse next [N] VERB RESOURCE of NODE [by=TIME] [code=N]
clock NODE +TIME|-TIME
reboot-command NODE missing|fails|nothing|hangs|works [after=TIME]
budget NAME min=N|max=N
pod NAME on NODE [stops-after=TIME] [labels=KEY=VALUE,KEY=VALUE]
budgets may break
wait until CONDITION at most TIME
run TIME
run until "DATE TIME ZONE"
explain NODE
expect explain NODE contains TEXT
expect CONDITION"#;
