//! Runs a case on both servers, checks each answer against the case, and compares the two servers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::differences::forgive;
use super::differences_1_32::{forgive_1_32, is_uncompared};
use super::normal::Normal;
use super::servers::{Answer, Server};
use super::step::{Kept, Step};

/// Time limit until a definition is served.
const PATIENCE: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Checks that both servers give the expected answers, and otherwise equal ones.
pub async fn hold(steps: Vec<Step>) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let namespace = format!("conf-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let (embedded, real) = (Server::embedded(), Server::real().await);
    let (ours, theirs) = tokio::join!(
        run(&embedded, &namespace, &steps),
        run(&real, &namespace, &steps)
    );
    let mut faults = Vec::new();
    faults.extend(theirs.faults);
    faults.extend(ours.faults);
    for ((step, ours), theirs) in steps.iter().zip(&ours.answers).zip(&theirs.answers) {
        if step.apart || is_uncompared(&step.title()) {
            continue;
        }
        let differences = differences(ours, theirs);
        faults.extend(
            differences
                .iter()
                .map(|what| format!("{}: {what}", step.title())),
        );
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

struct Run {
    answers: Vec<Answer>,
    faults: Vec<String>,
}

async fn run(server: &Server, namespace: &str, steps: &[Step]) -> Run {
    server.make_namespace(namespace).await;
    let mut kept = Kept::default();
    kept.put("ns", namespace);
    let mut answers: Vec<Option<Answer>> = vec![None; steps.len()];
    let mut open = Vec::new();
    let mut faults = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let request = step.request(&kept);
        if step.open {
            let server = server.clone();
            open.push((
                index,
                tokio::spawn(async move { server.ask(request).await }),
            ));
            continue;
        }
        let answer = ask(server, step, request).await;
        if !is_uncompared(&step.title()) {
            faults.extend(told(server, step, &answer, &kept));
        }
        if answer.code < 400 {
            step.remember(&answer, &mut kept);
        }
        answers[index] = Some(answer);
    }
    for (index, answer) in open {
        let answer = answer.await.unwrap();
        faults.extend(told(server, &steps[index], &answer, &kept));
        answers[index] = Some(answer);
    }
    let mut normal = Normal::default();
    let answers = answers.into_iter().flatten();
    let answers = answers.map(|answer| normal.answer(answer)).collect();
    Run { answers, faults }
}

async fn ask(server: &Server, step: &Step, request: http::Request<Vec<u8>>) -> Answer {
    let mut answer = server.ask(request.clone()).await;
    let begun = tokio::time::Instant::now();
    while step.until_served && answer.code != 200 && begun.elapsed() < PATIENCE {
        tokio::time::sleep(PAUSE).await;
        answer = server.ask(request.clone()).await;
    }
    answer
}

fn told(server: &Server, step: &Step, answer: &Answer, kept: &Kept) -> Vec<String> {
    let faults = step.faults(answer, kept);
    let (name, title, body) = (server.name, step.title(), &answer.body);
    let tell = |fault| format!("{name}: {title}: {fault}\n    {body}");
    faults.into_iter().map(tell).collect()
}

/// The differences of two normalised answers, without those that `differences` lists.
pub fn differences(ours: &Answer, theirs: &Answer) -> Vec<String> {
    let mut out = Vec::new();
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    for answer in [&mut ours, &mut theirs] {
        forgive_1_32(answer);
        forgive(&mut answer.body);
    }
    let head = |answer: &Answer| {
        (
            answer.code,
            answer.media_type.clone(),
            answer.retry_after.clone(),
            answer.warnings.clone(),
        )
    };
    if head(&ours) != head(&theirs) {
        out.push(format!(
            "ours {:?}, theirs {:?}",
            head(&ours),
            head(&theirs)
        ));
    }
    differ("", Some(&ours.body), Some(&theirs.body), &mut out);
    out
}

fn differ(path: &str, ours: Option<&Value>, theirs: Option<&Value>, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let all: std::collections::BTreeSet<&String> =
                ours.keys().chain(theirs.keys()).collect();
            for key in all {
                differ(
                    &format!("{path}/{key}"),
                    ours.get(key),
                    theirs.get(key),
                    out,
                );
            }
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            for index in 0..ours.len().max(theirs.len()) {
                differ(
                    &format!("{path}/{index}"),
                    ours.get(index),
                    theirs.get(index),
                    out,
                );
            }
        }
        _ if ours == theirs => {}
        _ => {
            let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            out.push(format!(
                "{path}: ours {}, theirs {}",
                show(ours),
                show(theirs)
            ));
        }
    }
}
