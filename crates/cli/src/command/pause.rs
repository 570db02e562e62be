//! `dogwatch pause`; `dogwatch resume` is in [`resume`].

mod decide;
mod effect;
pub mod resume;

use std::collections::BTreeSet;
use std::io::Write as _;

use dogwatch_api::reboot_policy::Paused;
use dogwatch_core::explain::Fleet;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy;
use dogwatch_k8s::Kind;
use dogwatch_k8s::fleet::PauseChange;
use dogwatch_k8s::policy::PolicyObject;
use jiff::Timestamp;

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output::{self, say};
use crate::table::printable;
use dogwatch_core::near::near;

/// The policy that `pause --all` makes for nodes that no other rules: of the same name as the group
/// that those nodes are in, so that none changes its group by it.
const FOR_THE_REST: &str = "default";
/// Below what anybody would give a policy of their own.
const LAST: i32 = -1000;

/// What to pause.
#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// The policies; all of them where none is named
    #[arg(value_name = "POLICY", value_parser = policy_name)]
    policies: Vec<String>,

    /// Why; shown wherever the pause holds something up
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// It ends by itself at this time (RFC 3339), or after this long (2h)
    #[arg(long, value_name = "TIME|DURATION", value_parser = super::reboot::moment)]
    until: Option<Timestamp>,

    /// All policies, and the nodes that no policy rules: a policy "default" is made for them
    #[arg(long, conflicts_with = "policies")]
    all: bool,

    /// Replaces a pause that ends earlier than this one
    #[arg(long)]
    replace: bool,
}

/// `rebootpolicy/NAME`, or the name alone.
fn policy_name(text: &str) -> Result<String, String> {
    let name = match text.split_once('/') {
        None => text,
        Some(("rebootpolicy" | "rebootpolicies" | "policy", name)) => name,
        Some((kind, _)) => return Err(format!("{kind:?} is no policy: write rebootpolicy/NAME")),
    };
    GroupName::new(name)
        .map(|name| name.to_string())
        .map_err(|error| error.to_string())
}

/// Pauses; the first trouble gives the exit code.
pub async fn run(cluster: &Cluster, args: &PauseArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    if args.until.is_some_and(|until| until <= now().wall) {
        return Err(Failure::new(Exit::Usage, "--until has passed already"));
    }
    let objects = objects(&connected).await?;
    let wanted = Paused {
        reason: Some(args.reason.clone()),
        until: args.until.map(|until| until.to_string()),
    };
    let names = chosen(&objects, &args.policies)?;
    let mut trouble = None;
    for name in &names {
        let done = pause_one(&connected, name, &wanted, args.replace).await;
        keep_first(&mut trouble, done);
    }
    let fleet = fleet(&connected).await?;
    let rest = decide::without_policy(&fleet);
    if args.all && !rest.is_empty() {
        keep_first(
            &mut trouble,
            pause_the_rest(&connected, &objects, wanted).await,
        );
    }
    let fleet = self::fleet(&connected).await?;
    let mut out = output::stdout();
    effect::of_pause(&mut out, &fleet, now())?;
    out.flush()?;
    if names.is_empty() && !args.all {
        return Err(Failure::new(
            Exit::NotFound,
            "there is no RebootPolicy, so nothing is paused",
        )
        .next("to pause every node: dogwatch pause --all --reason …"));
    }
    trouble.map_or(Ok(()), Err)
}

fn keep_first(trouble: &mut Option<Failure>, done: Result<(), Failure>) {
    let Err(failure) = done else {
        return;
    };
    match trouble {
        None => *trouble = Some(failure),
        // Only the first one's code can be the program's.
        Some(_) => {
            let _ = failure.report();
        }
    }
}

async fn objects(connected: &Connected) -> Result<Vec<PolicyObject>, Failure> {
    connected.fleet.policy_objects().await.map_err(|error| {
        if error.kind() == Kind::NotFound {
            Failure::no_policies_installed()
        } else {
            connected.failed("list RebootPolicies", &error)
        }
    })
}

async fn fleet(connected: &Connected) -> Result<Fleet, Failure> {
    connected
        .fleet
        .read()
        .await
        .map_err(|error| connected.failed("list Nodes and Leases", &error))
}

/// Those that are named; all where none is.
fn chosen(objects: &[PolicyObject], named: &[String]) -> Result<Vec<String>, Failure> {
    let there = || {
        objects
            .iter()
            .filter_map(|object| object.metadata.name.as_deref())
    };
    for name in named {
        if there().all(|there| there != name) {
            let failure = Failure::new(
                Exit::NotFound,
                format!("there is no RebootPolicy {name} in this cluster; nothing was changed"),
            );
            let near = near(name, there());
            return Err(if near.is_empty() {
                failure.next("kubectl get rebootpolicies")
            } else {
                failure.next(format!("did you mean {}?", near.join(" or ")))
            });
        }
    }
    let unique: BTreeSet<String> = if named.is_empty() {
        there().map(str::to_owned).collect()
    } else {
        named.iter().cloned().collect()
    };
    Ok(unique.into_iter().collect())
}

async fn pause_one(
    connected: &Connected,
    name: &str,
    wanted: &Paused,
    replace: bool,
) -> Result<(), Failure> {
    let changed = connected
        .fleet
        .change_pause(name, |object| {
            decide::pause(object, wanted, replace, now().wall)
        })
        .await
        .map_err(|error| connected.failed(&format!("pause RebootPolicy {name}"), &error))?;
    let end = wanted.until.as_ref().map(|until| format!(" until {until}"));
    let end = end.as_deref().unwrap_or(", until somebody resumes it");
    match changed {
        Some(PauseChange::Set(_)) => say(&format!("rebootpolicy/{name} is paused{end}")),
        Some(PauseChange::Keep | PauseChange::Clear | PauseChange::Delete) => {
            let objects = objects(connected).await?;
            let there = objects
                .iter()
                .find(|object| object.metadata.name.as_deref() == Some(name));
            match there.and_then(|object| decide::in_force(object, now().wall)) {
                Some(pause) if decide::is_enough(&pause, wanted) => say(&format!(
                    "rebootpolicy/{name} is paused already: {}",
                    printable(&pause.reason)
                )),
                Some(pause) => Err(Failure::new(
                    Exit::Failed,
                    format!(
                        "RebootPolicy {name} is paused already, and that ends earlier: {}",
                        printable(&pause.reason)
                    ),
                )
                .next("leave it, or make this one of it: --replace")),
                None => Err(Failure::new(
                    Exit::Failed,
                    format!("RebootPolicy {name} changed meanwhile"),
                )
                .next("do it again")),
            }
        }
        None => Err(Failure::new(
            Exit::NotFound,
            format!("RebootPolicy {name} was deleted meanwhile"),
        )),
    }
}

async fn pause_the_rest(
    connected: &Connected,
    objects: &[PolicyObject],
    wanted: Paused,
) -> Result<(), Failure> {
    let taken = objects
        .iter()
        .any(|object| object.metadata.name.as_deref() == Some(FOR_THE_REST));
    if taken {
        return Err(Failure::new(
            Exit::Failed,
            format!("RebootPolicy {FOR_THE_REST} does not match every node, so those that no policy rules are not paused"),
        )
        .next("make a policy of your own for them, or take its nodeSelector away"));
    }
    let lowest = objects
        .iter()
        .filter_map(|object| object.spec.get("priority")?.as_i64())
        .min();
    let priority = decide::last(lowest, LAST);
    connected
        .fleet
        .make_paused(FOR_THE_REST, priority, wanted)
        .await
        .map_err(|error| connected.failed("make RebootPolicy default", &error))?;
    say(&format!(
        "rebootpolicy/{FOR_THE_REST} was made, for the nodes that no other rules, and is paused; `dogwatch resume {FOR_THE_REST}` takes it away again"
    ))
}

/// Names of the nodes that this policy rules.
fn ruled<'a>(fleet: &'a Fleet, name: &GroupName) -> Vec<&'a dogwatch_core::reboot::NodeSeen> {
    let policies = fleet.policies.known();
    let is_its = |node: &&dogwatch_core::reboot::NodeSeen| {
        policy::ruling(policies, &node.labels).is_some_and(|policy| policy.name == *name)
    };
    fleet.nodes.iter().filter(is_its).collect()
}
