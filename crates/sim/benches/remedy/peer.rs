//! What people do instead, as far as it can be had here: a Node that is deleted by hand, without anybody having
//! looked whether its machine is off. The fence agent beside it is in the bench `power`.

use std::time::{Duration, Instant};

use super::stage::{Stage, name};
use super::table::{in_words, note, spread};

const DELETED: usize = 5;

pub async fn measure(stage: &Stage) {
    let hosts = stage.bmcs.len();
    let mut taken: Vec<Duration> = Vec::new();
    for number in hosts - DELETED..hosts {
        let (node, began) = (name(number).name, Instant::now());
        let words = ["delete", "node", &node];
        stage.plane.run_kubectl(&words, "").await.unwrap();
        taken.push(began.elapsed());
    }
    note(
        "kubectl delete node, by hand, of a machine that may still run",
        &in_words(spread(taken)),
    );
}
