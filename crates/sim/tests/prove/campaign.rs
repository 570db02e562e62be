//! Many runs on all processors, with progress, and a state file from which they go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a simulation on a clock of its own.
pub fn block_on_simulation<R>(run: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(run)
}

/// The same, where a panic is a result.
pub fn catch_simulation<R>(run: impl Future<Output = R>) -> Result<R, String> {
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on_simulation(run)));
    caught.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "a panic".to_owned())
    })
}

/// A setting of `cargo xtask prove`.
pub fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
    )
}

/// Calls `work` for each item, on as many threads as there are processors.
pub fn for_each_in_parallel<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let mut items = items;
    items.reverse();
    let queue = Mutex::new(items);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = { queue.lock().unwrap().pop() } {
                    work(item);
                }
            });
        }
    });
}

/// Prints a line now and then.
pub struct RunProgress {
    total: usize,
    done: AtomicUsize,
    every: usize,
}

impl RunProgress {
    pub fn of_total(total: usize) -> Self {
        Self {
            total,
            done: AtomicUsize::new(0),
            every: (total / 100).clamp(1, 500),
        }
    }

    pub fn count_one(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(self.every) || done == self.total {
            println!("{done} of {} runs", self.total);
        }
    }
}

/// What earlier calls of this program have found: one line `KEY<tab>VERDICT<tab>DETAILS` each.
pub struct CampaignState {
    known: BTreeMap<String, (String, String)>,
    file: Option<Mutex<File>>,
}

impl CampaignState {
    /// Results of another program are of no use: `program` names this one.
    pub fn open_file(path: Option<PathBuf>, program: &str) -> Self {
        let mut known = BTreeMap::new();
        let Some(path) = path else {
            return Self { known, file: None };
        };
        if let Ok(file) = File::open(&path) {
            let mut lines = BufReader::new(file).lines().map_while(Result::ok);
            if lines.next().as_deref() == Some(program) {
                known.extend(lines.filter_map(|line| {
                    let mut parts = line.splitn(3, '\t');
                    let (key, verdict) = (parts.next()?.to_owned(), parts.next()?.to_owned());
                    Some((key, (verdict, parts.next()?.to_owned())))
                }));
            }
        }
        let mut file = File::create(&path).unwrap();
        writeln!(file, "{program}").unwrap();
        for (key, (verdict, details)) in &known {
            writeln!(file, "{key}\t{verdict}\t{details}").unwrap();
        }
        let file = Some(Mutex::new(file));
        Self { known, file }
    }

    pub fn known_verdict(&self, key: &str) -> Option<&(String, String)> {
        self.known.get(key)
    }

    pub fn record_verdict(&self, key: &str, verdict: &str, details: &str) {
        if let Some(file) = &self.file {
            let details = details.replace(['\n', '\t'], " ");
            writeln!(file.lock().unwrap(), "{key}\t{verdict}\t{details}").unwrap();
        }
    }
}
