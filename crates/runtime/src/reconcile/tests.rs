use std::sync::Mutex;

use dogwatch_core::decision::{DecisionCause, DecisionReport, EventSeverity, WakeTime};
use dogwatch_core::leader::LeaderTerm;
use tokio::sync::{Semaphore, mpsc, watch};

use super::*;
use crate::mutex::lock_ignoring_poison;

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_hours(24);

/// What the calls answer, and which calls there were.
struct Calls {
    sent: mpsc::UnboundedSender<String>,
    answers: Mutex<Vec<CallEnd<u8>>>,
    /// An action takes a permit, so that a test can hold it back.
    permits: Semaphore,
}

impl DomainCalls for Calls {
    type Snapshot = u8;
    type Action = &'static str;
    type Observe = &'static str;
    type Reason = &'static str;
    type Answer = u8;
    type Finding = u8;

    async fn perform_action(
        &self,
        seen: &u8,
        _decision: &DecisionOf<Self>,
        action: &&'static str,
    ) -> CallEnd<u8> {
        self.permits.acquire().await.unwrap().forget();
        self.sent.send(format!("{action} {seen}")).unwrap();
        let answer = lock_ignoring_poison(&self.answers).pop();
        answer.unwrap_or(CallEnd::Done(0))
    }

    async fn perform_observation(&self, seen: &u8, what: &&'static str) -> Option<u8> {
        self.sent.send(format!("{what} {seen}")).unwrap();
        Some(1)
    }

    async fn report_event(&self, seen: &u8, event: &DecisionEvent) -> CallEnd<()> {
        self.sent.send(format!("{} {seen}", event.message)).unwrap();
        CallEnd::Done(())
    }
}

type Decided = Decision<&'static str, &'static str>;

/// Two keys; what is decided for a key is what a test has set.
struct TwoKeys {
    calls: Arc<Calls>,
    wanted: watch::Receiver<Vec<(u8, i64, Decided)>>,
    findings: mpsc::UnboundedSender<u8>,
    /// The keys whose action was done, and those that were observed, since the last change.
    done: BTreeSet<u8>,
    observed: BTreeSet<u8>,
}

impl ReconcileDomain for TwoKeys {
    type Key = u8;
    type Calls = Calls;

    const LIMITS: LoopLimits = LoopLimits {
        name: "test",
        retry: BackoffRange::new(SECOND, Duration::from_mins(1)),
        concurrent_actions: 1,
    };

    fn domain_calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }

    async fn wait_for_change(&mut self) {
        if self.wanted.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.done.clear();
        self.observed.clear();
    }

    fn list_keys(&mut self) -> Option<Vec<u8>> {
        Some(self.wanted.borrow().iter().map(|(key, ..)| *key).collect())
    }

    fn object_generation(&self, key: &u8) -> Option<i64> {
        let wanted = self.wanted.borrow();
        Some(wanted.iter().find(|(it, ..)| it == key)?.1)
    }

    fn build_snapshot(&self, key: &u8) -> u8 {
        *key
    }

    fn decide(&self, seen: &u8, _now: Now) -> Decided {
        let wanted = self.wanted.borrow();
        let mut decided = wanted.iter().find(|(it, ..)| it == seen).unwrap().2.clone();
        decided.actions.retain(|_| !self.done.contains(seen));
        decided.observe.retain(|_| !self.observed.contains(seen));
        decided
    }

    fn apply_action_end(&mut self, key: &u8, _: &u8, _: &&'static str, end: CallEnd<u8>) {
        if matches!(end, CallEnd::Done(_)) {
            self.done.insert(*key);
        }
    }

    fn apply_finding(&mut self, key: &u8, finding: u8) {
        self.observed.insert(*key);
        self.findings.send(finding).unwrap();
    }

    fn publish_metrics(&self) {}

    fn clear_metrics(&self) {}
}

fn decided(actions: &[&'static str], observe: &[&'static str], events: &[&str]) -> Decided {
    let event = |message: &&str| DecisionEvent {
        severity: EventSeverity::Normal,
        reason: "Because",
        message: (*message).to_owned(),
    };
    Decision {
        actions: actions.to_vec(),
        observe: observe.to_vec(),
        report: DecisionReport {
            conditions: Vec::new(),
            events: events.iter().map(event).collect(),
        },
        wake: None,
        cause: DecisionCause::new("Because", "of a test"),
    }
}

struct Rig {
    calls: Arc<Calls>,
    made: mpsc::UnboundedReceiver<String>,
    findings: mpsc::UnboundedReceiver<u8>,
    wanted: watch::Sender<Vec<(u8, i64, Decided)>>,
    terms: watch::Sender<Option<LeaderTerm>>,
    clock: ProcessClock,
    run: tokio::task::JoinHandle<()>,
}

impl Rig {
    fn start(wanted: Vec<(u8, i64, Decided)>, answers: Vec<CallEnd<u8>>, permits: usize) -> Self {
        let (sender, made) = mpsc::unbounded_channel();
        let (found, findings) = mpsc::unbounded_channel();
        let calls = Arc::new(Calls {
            sent: sender,
            answers: Mutex::new(answers),
            permits: Semaphore::new(permits),
        });
        let (wanted, seen) = watch::channel(wanted);
        let clock = ProcessClock::system_clock();
        let (terms, leadership) = LeadershipHandle::new(clock.clone());
        let until = Now {
            wall: clock.now().wall_after(LONG),
            mono: LONG,
        };
        terms.send_replace(Some(LeaderTerm { number: 1, until }));
        let domain = TwoKeys {
            calls: Arc::clone(&calls),
            wanted: seen,
            findings: found,
            done: BTreeSet::new(),
            observed: BTreeSet::new(),
        };
        let heart = LoopHeartbeat::new();
        let run = ReconcileLoop::new(domain, clock.clone(), leadership, heart).run_as_leader();
        Self {
            calls,
            made,
            findings,
            wanted,
            terms,
            clock,
            run: tokio::spawn(run),
        }
    }

    fn want(&self, wanted: Vec<(u8, i64, Decided)>) {
        self.wanted.send_replace(wanted);
    }

    async fn next_call(&mut self) -> String {
        self.made.recv().await.unwrap()
    }

    /// Lets half a second of paused time pass; nothing is called in it.
    async fn assert_quiet(&mut self) {
        let quiet = tokio::time::timeout(SECOND / 2, self.made.recv()).await;
        assert!(quiet.is_err(), "{quiet:?}");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.run.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_job_at_a_time_and_holds_up_no_other_key() {
    let both = || {
        vec![
            (1, 0, decided(&["write"], &[], &[])),
            (2, 0, decided(&[], &["read"], &[])),
        ]
    };
    let mut rig = Rig::start(both(), Vec::new(), 0);
    assert_eq!(rig.next_call().await, "read 2");
    assert_eq!(rig.findings.recv().await, Some(1));
    rig.want(vec![(1, 0, decided(&["write"], &[], &[]))]);
    rig.assert_quiet().await;
    rig.want(vec![(1, 0, decided(&[], &[], &[]))]);
    rig.calls.permits.add_permits(2);
    assert_eq!(rig.next_call().await, "write 1");
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn actions_go_before_observations_and_those_before_events_which_are_sent_once() {
    let all = decided(&["write"], &["read"], &["tell"]);
    let mut rig = Rig::start(vec![(1, 0, all)], Vec::new(), 1);
    for call in ["write 1", "read 1", "tell 1"] {
        assert_eq!(rig.next_call().await, call);
    }
    rig.want(vec![(1, 0, decided(&[], &[], &["tell", "tell more"]))]);
    assert_eq!(rig.next_call().await, "tell more 1");
    rig.want(vec![(1, 0, decided(&[], &[], &[]))]);
    rig.assert_quiet().await;
    rig.want(vec![(1, 0, decided(&[], &[], &["tell"]))]);
    assert_eq!(rig.next_call().await, "tell 1", "it had ceased to apply");
}

#[tokio::test(start_paused = true)]
async fn errors_make_the_pauses_longer_until_the_spec_changes() {
    let answers = vec![
        CallEnd::Failed("no".into()),
        CallEnd::Changed,
        CallEnd::Changed,
    ];
    let mut rig = Rig::start(vec![(1, 0, decided(&["write"], &[], &[]))], answers, 9);
    let mut times = Vec::new();
    for _ in 0..3 {
        rig.next_call().await;
        times.push(rig.clock.now().mono.as_secs());
    }
    assert_eq!(times, [0, 1, 3]);
    rig.want(vec![(1, 1, decided(&["write"], &[], &[]))]);
    rig.next_call().await;
    assert_eq!(
        rig.clock.now().mono.as_secs(),
        3,
        "a person has changed the spec"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_lost_the_lead_calls_nothing() {
    let mut rig = Rig::start(vec![(1, 0, decided(&[], &[], &[]))], Vec::new(), 9);
    rig.terms.send_replace(None);
    rig.want(vec![(1, 0, decided(&["write"], &[], &["tell"]))]);
    rig.assert_quiet().await;
    rig.want(vec![(1, 1, decided(&[], &[], &["tell"]))]);
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_decided_again_at_its_wake_time() {
    let mut later = decided(&[], &[], &[]);
    let at = 30 * SECOND;
    later.wake = Some(WakeTime { at, why: "a test" });
    let mut rig = Rig::start(vec![(1, 0, decided(&[], &[], &[]))], Vec::new(), 0);
    rig.assert_quiet().await;
    rig.want(vec![(1, 0, later)]);
    rig.assert_quiet().await;
    let woken = rig.wanted.send_if_modified(|wanted| {
        wanted[0].2.observe = vec!["read"];
        false
    });
    assert!(!woken, "only the wake-up makes the loop look again");
    assert_eq!(rig.next_call().await, "read 1");
    assert_eq!(rig.clock.now().mono.as_secs(), 30);
}
