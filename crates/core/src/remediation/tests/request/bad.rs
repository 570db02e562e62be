//! Requests that cannot be served: their condition says what to do, and no other object suffers.

use std::time::Duration;

use super::super::super::*;
use super::super::kit::*;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};

const QUICK: RemediationStrategy = RemediationStrategy {
    timeout: Duration::from_mins(3),
    retry_limit: 0,
    ..DELETE
};

fn is_said(town: &Town, words: [&str; 2]) {
    let says = |text: &String| words.iter().all(|word| text.contains(word));
    assert!(town.events.iter().any(says), "{:?}", town.events);
}

#[test]
fn a_host_that_was_made_anew_since_is_refused() {
    let mut town = Town::new(&["a"]);
    town.config.max_fenced = 0;
    town.fails("a", DELETE);
    town.run(10);
    town.site("a").power.seen.host_mut().uid = "another".into();
    town.config.max_fenced = 5;
    town.run(60);
    assert_eq!(
        town.condition("a", "Succeeded"),
        Some(("False".into(), "BadRequest".into()))
    );
    is_said(&town, ["created again", "delete this request"]);
    assert!(!town.is_keyed("a") && town.leases.is_empty());
    town.delete("a");
    town.until("gone", |town| town.request("a").is_none());
}

#[test]
fn a_node_that_was_made_anew_and_is_not_healthy_is_refused_until_the_time_is_up() {
    let mut town = Town::new(&["a"]);
    town.config.max_fenced = 0;
    town.fails("a", QUICK);
    town.run(10);
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.uid = "another".into();
    town.config.max_fenced = 5;
    town.run(60);
    assert_eq!(
        town.condition("a", "Remediation").unwrap().1,
        "NodeReplaced"
    );
    is_said(&town, ["created again", "delete the request"]);
    assert!(!town.is_keyed("a"));
    town.until("failed", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.cuts("a"), 0);
}

/// The workloads belong to another Node now: nothing is released, and the host comes back.
#[test]
fn a_node_that_was_made_anew_while_its_host_goes_off_is_not_released() {
    for strategy in [DELETE, TAINT] {
        let mut town = Town::new(&["a"]);
        town.fails("a", strategy);
        town.until("keyed", |town| {
            town.attempt("a").is_some_and(|it| it.key_at.is_some())
        });
        let node = town.nodes.get_mut(&node_name("a")).unwrap();
        node.seen.uid = "another".into();
        town.heals_by_boot("a");
        town.until("done", |town| town.status("a").ended_at.is_some());
        assert!(!town.written.contains(&"Release".to_owned()));
        assert_eq!(town.node("a").unwrap().seen.uid, "another");
        assert!(town.is_on("a") && !town.is_keyed("a"));
    }
}

#[test]
fn a_link_that_breaks_while_the_host_is_held_off_gives_it_back() {
    let mut town = Town::new(&["a", "b"]);
    town.fails("a", QUICK);
    town.until("off", |town| !town.is_on("a"));
    town.machine("b").host = Some("machines/h-a".into());
    town.until("let go", |town| !town.is_keyed("a"));
    town.until("on", |town| town.is_on("a"));
    is_said(&town, ["both linked", "machines/h-a"]);
    assert!(town.node("a").is_some() && town.node("b").is_some());
    assert_eq!(town.cuts("b"), 0);
}

#[test]
fn a_request_whose_machine_is_gone_ends_and_the_others_are_served() {
    let mut town = Town::new(&["a", "b"]);
    town.fails("a", QUICK);
    town.change("a", |it| {
        it.node_name = None;
        it.machine = Some(machine_name("c"));
        it.machine_uid = Some("uid-c".into());
    });
    town.fails("b", DELETE);
    town.until("b released", |town| town.node("b").is_none());
    is_said(&town, ["machines/c", "no longer exists"]);
    town.until("failed", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.cuts("a"), 0);
}

#[test]
fn a_request_whose_machine_and_node_are_called_otherwise_by_their_provider_gets_no_key() {
    let mut town = Town::new(&["a"]);
    town.machine("a").provider_id = Some("metal3://machines/h-a/m3-a".into());
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.provider_id = Some("metal3://machines/h-b/m3-b".into());
    town.fails("a", DELETE);
    town.run(30);
    assert!(!town.is_keyed("a") && town.is_on("a"));
    let said = town.condition("a", "Remediation").unwrap();
    assert_eq!(
        said,
        ("True".into(), RemediationReason::BadHostLink.to_string())
    );
    town.machine("a").provider_id = Some("metal3://machines/h-b/m3-b".into());
    town.until("keyed", |town| town.is_keyed("a"));
}
