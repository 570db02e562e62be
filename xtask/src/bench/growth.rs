//! How figures grow with the size of the cluster: each is measured at several sizes.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::peer_programs::PeerPrograms;
use super::{BenchProgram, figure_table::BenchFigure, run_program_with, source_tree};

/// A figure and what it grows with.
struct GrowthSeries {
    /// The target of the bench program.
    bench: &'static str,
    /// The words that the figure's name contains.
    figure: &'static str,
    /// What there is more of, in words.
    of_what: &'static str,
    /// The environment variable that says how many there are.
    variable: &'static str,
    sizes: &'static [u32],
    /// Other variables of the bench.
    environment: &'static [(&'static str, &'static str)],
    /// The largest exponent of the last two sizes: 1 is linear, 0 is no growth.
    reach: f64,
}

/// Measured times scatter: what is linear may seem to grow a little faster.
const LINEAR: f64 = 1.1;
const NO_GROWTH: f64 = 0.05;

const SERIES: &[GrowthSeries] = &[
    GrowthSeries {
        bench: "coordinator",
        figure: "idle coordinator: RSS",
        of_what: "other Nodes",
        variable: "OTHER_NODES",
        sizes: &[10, 100, 1_000],
        environment: &[("RUNS", "3")],
        reach: NO_GROWTH,
    },
    GrowthSeries {
        bench: "handover_real",
        figure: "lock handover",
        of_what: "waiting nodes",
        variable: "CROWD",
        sizes: &[10, 100, 1_000],
        environment: &[("HANDOVERS", "60")],
        reach: LINEAR,
    },
    GrowthSeries {
        bench: "handover_real",
        figure: "writes for it",
        of_what: "waiting nodes",
        variable: "CROWD",
        sizes: &[10, 100, 1_000],
        environment: &[("HANDOVERS", "60")],
        reach: NO_GROWTH,
    },
    GrowthSeries {
        bench: "controller",
        figure: "controller's RSS",
        of_what: "hosts that wait at the lock API",
        variable: "WAITERS",
        sizes: &[10, 100, 1_000],
        environment: &[("SERVED", "10")],
        reach: LINEAR,
    },
    GrowthSeries {
        bench: "power",
        figure: "RSS of a controller",
        of_what: "hosts",
        variable: "MANY",
        sizes: &[100, 1_000, 10_000],
        environment: &[("PARTS", "idle"), ("WINDOW", "60")],
        reach: LINEAR,
    },
    GrowthSeries {
        bench: "power",
        figure: "its processor time",
        of_what: "hosts",
        variable: "MANY",
        sizes: &[100, 1_000, 10_000],
        environment: &[("PARTS", "idle"), ("WINDOW", "60")],
        reach: LINEAR,
    },
    GrowthSeries {
        bench: "power",
        figure: "fences at once",
        of_what: "fences",
        variable: "FENCES",
        sizes: &[1, 10, 100],
        environment: &[("PARTS", "fences"), ("HOSTS", "400"), ("HUNG", "40")],
        reach: LINEAR,
    },
    GrowthSeries {
        bench: "rollout",
        figure: "by flags simulated",
        of_what: "nodes",
        variable: "NODES",
        sizes: &[500, 5_000, 15_000],
        environment: &[],
        reach: LINEAR,
    },
    GrowthSeries {
        bench: "rollout",
        figure: "windows simulated",
        of_what: "nodes",
        variable: "NODES",
        sizes: &[500, 5_000, 15_000],
        environment: &[],
        reach: LINEAR,
    },
];

/// Measures each series of the chosen benches, and prints it as a line of a table.
pub fn measure_growth(chosen: &[&BenchProgram], peers: &PeerPrograms) -> Result<()> {
    let mut too_fast = Vec::new();
    println!("| what | grows with | measured | exponent of the last two | at most |");
    println!("|---|---|---|---|---|");
    let mut measured: Vec<MeasuredSize> = Vec::new();
    for series in SERIES {
        let Some(bench) = chosen.iter().find(|bench| bench.target == series.bench) else {
            continue;
        };
        for size in series.sizes {
            // Series of the same bench and sizes share its runs.
            if measured.iter().all(|run| !run.is_of(series, *size)) {
                eprintln!("{}: {size} {}", bench.target, series.of_what);
                measured.push(MeasuredSize::measure(bench, series, *size, peers)?);
            }
        }
        let values = read_values(series, &measured)?;
        let exponent = last_exponent(&values);
        let cells = values
            .iter()
            .map(|(size, text, _)| format!("{size}: {text}"));
        println!(
            "| {} | {} | {} | {exponent:.2} | {} |",
            series.figure,
            series.of_what,
            cells.collect::<Vec<_>>().join("; "),
            series.reach
        );
        if exponent > series.reach {
            too_fast.push(series.figure);
        }
    }
    ensure!(
        too_fast.is_empty(),
        "grows too fast: {}",
        too_fast.join(", ")
    );
    Ok(())
}

/// What a bench measured at one size.
struct MeasuredSize {
    bench: &'static str,
    variable: &'static str,
    size: u32,
    figures: Vec<BenchFigure>,
}

impl MeasuredSize {
    fn measure(
        bench: &BenchProgram,
        series: &GrowthSeries,
        size: u32,
        peers: &PeerPrograms,
    ) -> Result<Self> {
        let root: &Path = source_tree::workspace_root();
        let figures = run_program_with(bench, root, |command| {
            command.envs(series.environment.iter().copied());
            command.env(series.variable, size.to_string());
            peers.add_to_environment(command)
        })?;
        Ok(Self {
            bench: series.bench,
            variable: series.variable,
            size,
            figures,
        })
    }

    fn is_of(&self, series: &GrowthSeries, size: u32) -> bool {
        (self.bench, self.variable, self.size) == (series.bench, series.variable, size)
    }
}

/// Each size with the figure's text and its first number.
fn read_values<'a>(
    series: &GrowthSeries,
    measured: &'a [MeasuredSize],
) -> Result<Vec<(u32, &'a str, f64)>> {
    let mut values = Vec::new();
    for size in series.sizes {
        let run = measured.iter().find(|run| run.is_of(series, *size));
        let run = run.expect("each size was measured");
        let figure = run
            .figures
            .iter()
            .find(|figure| figure.what.contains(series.figure));
        let Some(figure) = figure else {
            bail!(
                "the bench {} printed no figure \"{}\"",
                series.bench,
                series.figure
            );
        };
        let value = read_first_number(&figure.measured)
            .with_context(|| format!("no number in \"{}\"", figure.measured))?;
        values.push((*size, figure.measured.as_str(), value));
    }
    Ok(values)
}

/// `p99 438 ms, median 401 ms` gives 438.
fn read_first_number(text: &str) -> Option<f64> {
    text.split(' ').find_map(|word| word.parse().ok())
}

/// By which power of the size the value has grown from the last but one size to the last.
fn last_exponent(values: &[(u32, &str, f64)]) -> f64 {
    let [.., (small_size, _, small), (large_size, _, large)] = values else {
        return 0.0;
    };
    // A figure that is rounded to 0 would give no exponent.
    let ratio = large.max(0.001) / small.max(0.001);
    ratio.ln() / (f64::from(*large_size) / f64::from(*small_size)).ln()
}

#[cfg(test)]
mod tests {
    use super::super::BENCHES;
    use super::*;

    #[test]
    fn series_name_benches() {
        for series in SERIES {
            let exists = BENCHES.iter().any(|bench| bench.target == series.bench);
            assert!(exists, "there is no bench {}", series.bench);
        }
    }

    #[test]
    fn twice_the_value_for_twice_the_size_is_linear() {
        let values = [(10, "", 3.0), (20, "", 6.0)];
        assert!((last_exponent(&values) - 1.0).abs() < 1e-9);
        let values = [(10, "", 7.5), (1_000, "", 7.5)];
        assert!(last_exponent(&values).abs() < 1e-9);
    }

    #[test]
    fn the_first_number_of_a_figure_is_read() {
        assert_eq!(read_first_number("p99 438 ms, median 401 ms"), Some(438.0));
        assert_eq!(read_first_number("65.2 MiB, most 66.3 MiB"), Some(65.2));
        assert_eq!(read_first_number("none"), None);
    }
}
