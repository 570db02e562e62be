//! Random short sequences of requests: both servers must give the same answers.
//!
//! `DOGWATCH_CONFORMANCE_SEED` and `DOGWATCH_CONFORMANCE_CASES` run more than the tests of every
//! build. A sequence that shows a difference is shortened as far as possible before it is reported.

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};

use super::compare::differences;
use super::normal::Normal;
use super::servers::Server;
use super::step::{JSON, Kept, MERGE, STRATEGIC, Step, apply, delete, get, patch, post, put};

const CASES: u32 = 200;
const STEPS: std::ops::Range<usize> = 2..9;

/// The kinds that Dogwatch writes, and a plain one.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Lease,
    ConfigMap,
    Node,
    Pod,
}

/// The precondition of a request on version or uid.
#[derive(Debug, Clone, Copy)]
enum Claim {
    Nothing,
    Newest,
    First,
    Wrong,
}

#[derive(Debug, Clone)]
enum Act {
    Create,
    Get,
    List,
    Put(Content, Claim),
    Patch(&'static str, Content, Claim),
    Apply(&'static str, Content, Claim, Claim, bool),
    Status(&'static str, Content),
    Delete(Claim, Claim, Option<i64>),
}

/// The written content: few fields and few values, so that writers conflict.
#[derive(Debug, Clone, Copy)]
struct Content {
    label: Option<&'static str>,
    annotation: Option<&'static str>,
    one: Option<&'static str>,
    two: Option<&'static str>,
    finalizer: bool,
}

#[test]
fn both_servers_answer_every_sequence_alike() {
    let number = |name: &str, default: u64| {
        let said = std::env::var(name).ok();
        said.map_or(default, |text| text.parse().expect("a number"))
    };
    let cases = number("DOGWATCH_CONFORMANCE_CASES", CASES.into());
    let seed = number("DOGWATCH_CONFORMANCE_SEED", 1);
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let real = runtime.block_on(Server::real());
    let outcome = TestRunner::new(config).run(&sequence(), |(kind, acts)| {
        let found = runtime.block_on(run(&real, kind, &acts));
        prop_assert!(found.is_empty(), "{}", found.join("\n"));
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, (kind, acts))) => {
            panic!("seed {seed}: {kind:?} {acts:#?}\n{}", why.message())
        }
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// The differences of one sequence, from the first step that has any.
async fn run(real: &Server, kind: Kind, acts: &[Act]) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let namespace = format!("gen-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut ours = Side::on(Server::embedded(), &namespace).await;
    let mut theirs = Side::on(real.clone(), &namespace).await;
    for (index, act) in acts.iter().enumerate() {
        let step = act.step(kind);
        let (our, their) = tokio::join!(ours.take(&step), theirs.take(&step));
        let found = differences(&our, &their);
        if !found.is_empty() {
            let title = format!("step {index}, {}:", step.title());
            return [vec![title], found].concat();
        }
    }
    Vec::new()
}

/// One server, and what its answers showed of the object.
struct Side {
    server: Server,
    kept: Kept,
    normal: Normal,
    first: bool,
}

impl Side {
    async fn on(server: Server, namespace: &str) -> Self {
        server.make_namespace(namespace).await;
        let mut kept = Kept::default();
        kept.put("ns", namespace);
        // Values for preconditions before the object exists.
        for (name, value) in [("rv", "1"), ("old", "1"), ("uid", WRONG), ("olduid", WRONG)] {
            kept.put(name, value);
        }
        Self {
            server,
            kept,
            normal: Normal::default(),
            first: true,
        }
    }

    async fn take(&mut self, step: &Step) -> super::servers::Answer {
        let answer = self.server.ask(step.request(&self.kept)).await;
        let meta = |field| answer.body["metadata"].get(field).and_then(Value::as_str);
        let one = answer.body.get("items").is_none();
        if let (true, Some(uid), Some(version)) = (one, meta("uid"), meta("resourceVersion")) {
            self.kept.put("uid", uid);
            self.kept.put("rv", version);
            if std::mem::take(&mut self.first) {
                self.kept.put("olduid", uid);
                self.kept.put("old", version);
            }
        }
        self.normal.answer(answer)
    }
}

const WRONG: &str = "11111111-1111-4111-8111-111111111111";

impl Kind {
    fn api_version(self) -> &'static str {
        match self {
            Self::Lease => "coordination.k8s.io/v1",
            Self::ConfigMap | Self::Node | Self::Pod => "v1",
        }
    }

    fn collection(self) -> &'static str {
        match self {
            Self::Lease => "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
            Self::ConfigMap => "/api/v1/namespaces/{ns}/configmaps",
            Self::Node => "/api/v1/nodes",
            Self::Pod => "/api/v1/namespaces/{ns}/pods",
        }
    }

    fn one(self) -> String {
        format!("{}/{{ns}}-x", self.collection())
    }

    fn has_status(self) -> bool {
        matches!(self, Self::Node | Self::Pod)
    }

    /// The object with this content, as requests for this kind write it.
    fn object(self, content: Content) -> Value {
        let mut object = json!({ "apiVersion": self.api_version(), "kind": format!("{self:?}"),
            "metadata": { "name": "{ns}-x" } });
        let meta: [&[&str]; 2] = [
            &["metadata", "labels", "l"],
            &["metadata", "annotations", "a"],
        ];
        set(&mut object, meta[0], content.label.map(Value::from));
        set(&mut object, meta[1], content.annotation.map(Value::from));
        let finalizers = content.finalizer.then(|| json!(["example.com/f"]));
        set(&mut object, &["metadata", "finalizers"], finalizers);
        let ([first, second], [one, two]) = self.fields(content);
        set(&mut object, first, one);
        set(&mut object, second, two);
        object
    }

    /// The two fields over which writers conflict, and their values.
    fn fields(self, content: Content) -> ([&'static [&'static str]; 2], [Option<Value>; 2]) {
        let (one, two) = (content.one, content.two);
        let texts = [one.map(Value::from), two.map(Value::from)];
        match self {
            Self::Lease => (
                [&["spec", "holderIdentity"], &["spec", "leaseTransitions"]],
                [one.map(Value::from), two.map(|two| two.len().into())],
            ),
            Self::ConfigMap => ([&["data", "one"], &["data", "two"]], texts),
            Self::Node => (
                [
                    &["spec", "unschedulable"],
                    &["metadata", "annotations", "two"],
                ],
                [one.map(|one| (one == "a").into()), two.map(Value::from)],
            ),
            Self::Pod => (
                [
                    &["metadata", "labels", "one"],
                    &["metadata", "annotations", "two"],
                ],
                texts,
            ),
        }
    }

    /// The complete object, as a plain create or a PUT needs it.
    fn whole(self, content: Content) -> Value {
        let mut object = self.object(content);
        if matches!(self, Self::Pod) {
            object["spec"] =
                json!({ "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] });
        }
        object
    }
}

fn set(object: &mut Value, path: &[&str], value: Option<Value>) {
    if let Some(value) = value {
        let place = path.iter().fold(object, |place, field| &mut place[*field]);
        *place = value;
    }
}

impl Claim {
    fn version(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Newest => Some("{rv}"),
            Self::First | Self::Wrong => Some("{old}"),
        }
    }

    fn uid(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Newest => Some("{uid}"),
            Self::First => Some("{olduid}"),
            Self::Wrong => Some(WRONG),
        }
    }

    fn put_in(self, object: &mut Value) {
        if let Some(version) = self.version() {
            object["metadata"]["resourceVersion"] = version.into();
        }
    }
}

impl Act {
    fn step(&self, kind: Kind) -> Step {
        match self {
            Self::Create => post(kind.collection(), kind.whole(START)),
            Self::List => get(format!(
                "{}?fieldSelector=metadata.name={{ns}}-x",
                kind.collection()
            )),
            Self::Put(content, claim) => {
                let mut body = kind.whole(*content);
                claim.put_in(&mut body);
                put(kind.one(), body)
            }
            Self::Patch(JSON, content, claim) => {
                let mut tests = vec![];
                if let Some(version) = claim.version() {
                    tests.push(json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version }));
                }
                let labels = json!({ "l": content.label.unwrap_or("j") });
                tests.push(json!({ "op": "add", "path": "/metadata/labels", "value": labels }));
                patch(JSON, kind.one(), tests.into())
            }
            Self::Patch(form, content, claim) => {
                let mut body = kind.object(*content);
                if content.annotation.is_none() {
                    body["metadata"]["annotations"] = Value::Null;
                }
                claim.put_in(&mut body);
                patch(form, format!("{}?fieldManager=person", kind.one()), body)
            }
            Self::Apply(manager, content, version, uid, force) => {
                let mut body = kind.whole(*content);
                version.put_in(&mut body);
                if let Some(uid) = uid.uid() {
                    body["metadata"]["uid"] = uid.into();
                }
                let force = if *force { "?force=true" } else { "" };
                apply(manager, &format!("{}{force}", kind.one()), body)
            }
            Self::Status(form, content) if kind.has_status() => {
                let status = content.one.map_or("False", |_| "True");
                let condition = json!({ "type": content.two.unwrap_or("Ready"), "status": status });
                let body = json!({ "status": { "conditions": [condition] } });
                patch(form, format!("{}/status", kind.one()), body)
            }
            // A kind without a status: read the object instead.
            Self::Get | Self::Status(_, _) => get(kind.one()),
            Self::Delete(version, uid, grace) => {
                let mut body = json!({});
                if let Some(version) = version.version() {
                    body["preconditions"]["resourceVersion"] = version.into();
                }
                if let Some(uid) = uid.uid() {
                    body["preconditions"]["uid"] = uid.into();
                }
                if let Some(grace) = grace {
                    body["gracePeriodSeconds"] = (*grace).into();
                }
                delete(kind.one()).with(body)
            }
        }
    }
}

const START: Content = Content {
    label: Some("a"),
    annotation: None,
    one: Some("a"),
    two: None,
    finalizer: false,
};

fn sequence() -> impl Strategy<Value = (Kind, Vec<Act>)> {
    let kind = select(vec![Kind::Lease, Kind::ConfigMap, Kind::Node, Kind::Pod]);
    (kind, proptest::collection::vec(act(), STEPS))
}

fn act() -> impl Strategy<Value = Act> {
    let manager = || select(vec!["one", "two", "three"]);
    let form = || select(vec![MERGE, STRATEGIC, JSON]);
    let status = select(vec![MERGE, STRATEGIC]);
    let grace = proptest::option::of(select(vec![0i64, 5, 40]));
    prop_oneof![
        3 => Just(Act::Create),
        1 => Just(Act::Get),
        1 => Just(Act::List),
        2 => (content(), claim()).prop_map(|(content, claim)| Act::Put(content, claim)),
        4 => (form(), content(), claim()).prop_map(|(form, content, claim)| Act::Patch(form, content, claim)),
        6 => (manager(), content(), claim(), claim(), proptest::bool::weighted(0.1))
            .prop_map(|(manager, content, version, uid, force)| Act::Apply(manager, content, version, uid, force)),
        2 => (status, content()).prop_map(|(form, content)| Act::Status(form, content)),
        2 => (claim(), claim(), grace).prop_map(|(version, uid, grace)| Act::Delete(version, uid, grace)),
    ]
}

fn claim() -> impl Strategy<Value = Claim> {
    prop_oneof![
        5 => Just(Claim::Nothing),
        3 => Just(Claim::Newest),
        1 => Just(Claim::First),
        1 => Just(Claim::Wrong),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    let value = || proptest::option::of(select(vec!["a", "bb"]));
    let finalizer = proptest::bool::weighted(0.15);
    (value(), value(), value(), value(), finalizer).prop_map(
        |(label, annotation, one, two, finalizer)| Content {
            label,
            annotation,
            one,
            two,
            finalizer,
        },
    )
}
