//! `dogwatch abort`.

use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::explain;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{Abort, NodeSeen, Outcome, Parsed, Phase};
use dogwatch_k8s::fleet::AbortAsked;
use tokio::time::Instant;

use crate::args::Cluster;
use crate::cluster::Connected;
use crate::exit::{Exit, Failure};
use crate::output::say;
use crate::person;
use crate::table::printable;

/// Which reboot to stop.
#[derive(Debug, clap::Args)]
pub struct AbortArgs {
    /// The node (NAME or node/NAME)
    #[arg(value_name = "NODE", value_parser = super::explain::node)]
    node: NodeName,

    /// Why; shown wherever the reboot is
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// Who asks; the name of the user at this machine where it is not given
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Does not wait until it is done
    #[arg(long)]
    no_wait: bool,

    /// How long to wait until it is done
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    timeout: Duration,

    /// Does not ask, even if the machine may be going down already
    #[arg(long, short)]
    yes: bool,
}

/// Asks for it, and waits until it is done.
pub async fn run(cluster: &Cluster, args: &AbortArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    let node = &args.node;
    let mut asked = ask(&connected, args, args.yes).await?;
    if let AbortAsked::Rebooting(_) = asked {
        person::confirm(
            &format!(
                "{node} is rebooting: the command may have been started, and a shutdown that was ordered still comes. \
                 Stop waiting for it, uncordon the node and free its lock?"
            ),
            args.yes,
        )?;
        asked = ask(&connected, args, true).await?;
    }
    let before = match asked {
        AbortAsked::Written(before) => before,
        AbortAsked::Already(before) => {
            say(&format!("node/{node} is asked to stop already"))?;
            before
        }
        AbortAsked::TakenBack(request) => {
            return say(&format!(
                "node/{node}: the request by {} is taken back; nothing had begun",
                printable(&request.requester)
            ));
        }
        AbortAsked::Rebooting(_) => {
            let text = format!("node {node} is not asked to stop");
            return Err(Failure::new(Exit::Failed, text).next("say --yes"));
        }
        AbortAsked::Unreadable(why) => return Err(unreadable(node, &why)),
        AbortAsked::NothingUnderWay(seen) => return Err(nothing(&seen)),
        AbortAsked::NoSuchNode => return Err(connected.no_such_node(node).await),
    };
    if args.no_wait {
        return say(&format!("node/{node} is asked to stop its reboot"));
    }
    wait(&connected, node, &before, args.timeout).await
}

async fn ask(
    connected: &Connected,
    args: &AbortArgs,
    although_rebooting: bool,
) -> Result<AbortAsked, Failure> {
    let abort = Abort {
        reason: args.reason.clone(),
        requester: args.requester.clone().unwrap_or_else(person::name),
    };
    connected
        .fleet
        .request_abort(&args.node, &abort, although_rebooting)
        .await
        .map_err(|error| {
            connected.failed(&format!("stop the reboot of node {}", args.node), &error)
        })
}

/// Nobody can undo what nobody can read.
fn unreadable(node: &NodeName, why: &str) -> Failure {
    let text = format!(
        "annotation dogwatch.dev/reboot on node {node} cannot be read, so nobody can undo it: {}",
        printable(why)
    );
    Failure::new(Exit::Failed, text).next(format!(
        "mend it; or remove it (kubectl annotate node {node} dogwatch.dev/reboot-), then look at the cordon and \
         at the lock: dogwatch unlock {node}"
    ))
}

fn nothing(seen: &NodeSeen) -> Failure {
    let name = &seen.name;
    let failure = Failure::new(Exit::Failed, format!("no reboot of {name} is under way"));
    if seen.api_lock {
        return failure.next(format!(
            "the lock API has taken it out of service: whoever locked it unlocks it, or dogwatch unlock {name}"
        ));
    }
    if matches!(seen.request, Parsed::Bad { .. }) {
        return failure.next(format!(
            "its request cannot be read; remove it: kubectl annotate node {name} dogwatch.dev/reboot-requested-"
        ));
    }
    failure.next(format!("dogwatch explain {name}"))
}

/// Until the coordinator has done it, at once; or the healer, if the coordinator is dead.
async fn wait(
    connected: &Connected,
    node: &NodeName,
    before: &NodeSeen,
    timeout: Duration,
) -> Result<(), Failure> {
    let mut watch = connected.fleet.watch_node(node);
    let deadline = Instant::now() + timeout;
    let mut told = String::new();
    loop {
        tokio::select! {
            next = watch.next() => match next {
                Ok(None) => {
                    let text = format!("Node {node} was deleted meanwhile");
                    return Err(Failure::new(Exit::NotFound, text));
                }
                Ok(Some(seen)) if is_served(before, &seen) => return done(before, &seen),
                Ok(Some(seen)) => progress(&seen, &mut told)?,
                Err(error) if error.kind() == dogwatch_k8s::Kind::Forbidden => {
                    return Err(connected.failed(&format!("watch node {node}"), &error));
                }
                Err(error) => eprintln!("dogwatch: {}; trying again", error.in_words()),
            },
            () = tokio::time::sleep_until(deadline) => {
                let text = format!("node {node} was not freed within {}", duration::format(timeout));
                return Err(Failure::new(Exit::Failed, text).next(format!(
                    "the wish to stop stays on the Node: its coordinator serves it at once, the healer of \
                     `dogwatch controller` after half a minute; is either running? dogwatch explain {node}"
                )));
            }
            _ = tokio::signal::ctrl_c() => {
                let text = format!("not waiting any more; the wish to stop stays on node {node}");
                return Err(Failure::new(Exit::Interrupted, text));
            }
        }
    }
}

/// What was under way is gone. A list from before our write shows it still.
fn is_served(before: &NodeSeen, seen: &NodeSeen) -> bool {
    let planned = |node: &NodeSeen| node.record.get().map(|record| record.planned);
    let gone = seen.record == Parsed::Absent
        || (planned(before).is_some() && planned(seen) != planned(before));
    gone && seen.abort == Parsed::Absent
}

fn progress(seen: &NodeSeen, told: &mut String) -> Result<(), Failure> {
    let phase = seen.record.get().map_or("", |record| record.phase.as_str());
    let said = explain::said(seen).map(|condition| format!(": {}", condition.reason));
    let text = format!("node/{} {phase}{}", seen.name, said.unwrap_or_default());
    if *told != text {
        say(&text)?;
        *told = text;
    }
    Ok(())
}

fn done(before: &NodeSeen, after: &NodeSeen) -> Result<(), Failure> {
    let name = &after.name;
    let rebooted = after.last.get().map(|last| last.outcome) == Some(Outcome::Rebooted);
    if rebooted && before.record.get().map(|record| record.phase) == Some(Phase::Returning) {
        say(&format!(
            "node/{name} had rebooted already; its return was cut short"
        ))?;
    } else {
        say(&format!("node/{name} is stopped"))?;
    }
    for line in undone(before, after) {
        say(&format!("  {line}"))?;
    }
    Ok(())
}

fn undone(before: &NodeSeen, after: &NodeSeen) -> Vec<String> {
    let Some(record) = before.record.get() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    match (record.cordoned_by_us, after.unschedulable) {
        (true, false) => {
            lines.push("uncordoned; pods that were evicted stay where they went".into());
        }
        (true, true) => lines.push("still cordoned: somebody else wants it so".into()),
        (false, true) => lines.push("cordoned by somebody else, and left so".into()),
        (false, false) => {}
    }
    if let Some(lease) = &record.lease {
        lines.push(format!("Lease {lease} was given back"));
    }
    lines.push(match record.trigger.source.as_str() {
        "request" => format!(
            "the request was removed; to ask again: dogwatch reboot {}",
            after.name
        ),
        source => format!(
            "{} counts as served; touch it anew for another reboot",
            printable(source)
        ),
    });
    lines
}
