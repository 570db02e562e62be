//! How figures are told.

use std::time::Duration;

use dogwatch_testbed::bench::print_figure;

/// One line of `cargo xtask bench`'s table.
pub fn figure(what: &str, measured: &str, reach: &str, kept: bool) {
    let measured = format!("{measured}, load {}", load());
    print_figure(what, &measured, reach, kept);
}

/// Something that nothing is promised of.
pub fn note(what: &str, measured: &str) {
    figure(what, measured, "-", true);
}

/// The machine's, of the last minute.
fn load() -> String {
    let all = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    all.split(' ').next().unwrap_or_default().to_owned()
}

/// Median, 99th percentile, most.
pub fn spread(mut taken: Vec<Duration>) -> [Duration; 3] {
    taken.sort();
    let at = |part: usize| taken[(taken.len() - 1) * part / 100];
    [at(50), at(99), at(100)]
}

/// `p99 1 ms, median 1 ms, most 1 ms`
pub fn in_words([median, p99, most]: [Duration; 3]) -> String {
    format!(
        "p99 {} ms, median {} ms, most {} ms",
        p99.as_millis(),
        median.as_millis(),
        most.as_millis()
    )
}
