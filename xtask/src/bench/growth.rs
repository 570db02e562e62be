//! How figures grow with the size of the cluster: each is measured at several sizes.

use anyhow::{Context, Result, ensure};

use super::{
    BenchEnvironment, BenchProgram, build_program, figure_table::BenchFigure, run_and_observe,
};

/// Runs of one bench at several sizes.
struct GrowthSeries {
    /// The target of the bench program.
    bench: &'static str,
    /// What there is more of, in words.
    of_what: &'static str,
    /// The environment variable that says how many there are.
    variable: &'static str,
    sizes: [u32; 3],
    /// Other variables of the bench.
    environment: &'static [(&'static str, &'static str)],
    figures: &'static [GrowingFigure],
}

/// What a bench measured at one size.
struct GrowthRun {
    size: u32,
    figures: Vec<BenchFigure>,
    /// Nobody else used the machine meanwhile.
    quiet: bool,
}

struct GrowingFigure {
    /// The words that the figure's name contains.
    name: &'static str,
    /// The largest exponent of the last two sizes: 1 is linear, 0 is no growth.
    reach: f64,
}

/// Measured times scatter: what is linear may seem to grow a little faster.
const fn linear(name: &'static str) -> GrowingFigure {
    GrowingFigure { name, reach: 1.1 }
}

const fn constant(name: &'static str) -> GrowingFigure {
    GrowingFigure { name, reach: 0.05 }
}

const SERIES: &[GrowthSeries] = &[
    GrowthSeries {
        bench: "coordinator",
        of_what: "other Nodes",
        variable: "OTHER_NODES",
        sizes: [10, 100, 1_000],
        environment: &[("RUNS", "3")],
        figures: &[constant("idle coordinator: RSS")],
    },
    GrowthSeries {
        bench: "handover_real",
        of_what: "waiting nodes",
        variable: "CROWD",
        sizes: [10, 100, 1_000],
        environment: &[("HANDOVERS", "60")],
        figures: &[linear("lock handover"), constant("writes for it")],
    },
    GrowthSeries {
        bench: "controller",
        of_what: "hosts that wait at the lock API",
        variable: "WAITERS",
        sizes: [10, 100, 1_000],
        environment: &[("SERVED", "10")],
        figures: &[linear("controller's RSS")],
    },
    GrowthSeries {
        bench: "power",
        of_what: "hosts",
        variable: "MANY",
        sizes: [100, 1_000, 10_000],
        environment: &[("PARTS", "idle"), ("WINDOW", "60")],
        figures: &[linear("RSS of a controller"), linear("its processor time")],
    },
    GrowthSeries {
        bench: "power",
        of_what: "fences",
        variable: "FENCES",
        sizes: [1, 10, 100],
        environment: &[("PARTS", "fences"), ("HOSTS", "400"), ("HUNG", "40")],
        figures: &[linear("fences at once")],
    },
    GrowthSeries {
        bench: "rollout",
        of_what: "nodes",
        variable: "NODES",
        sizes: [500, 5_000, 15_000],
        environment: &[],
        figures: &[linear("by flags simulated"), linear("windows simulated")],
    },
];

/// Measures the series of the chosen benches, and prints each figure as a line of a table.
pub fn measure_growth(chosen: &[&BenchProgram]) -> Result<()> {
    let mut too_fast = Vec::new();
    let mut not_taken = Vec::new();
    println!("| what | grows with | measured | exponent of the last two | at most |");
    println!("|---|---|---|---|---|");
    for series in SERIES {
        let Some(bench) = chosen.iter().find(|bench| bench.target == series.bench) else {
            continue;
        };
        let runs = series.measure_sizes(bench)?;
        let quiet = runs.iter().all(|run| run.quiet);
        for figure in series.figures {
            let values = read_values(figure.name, &runs)?;
            let exponent = quiet.then(|| last_exponent(&values));
            print_row(series, figure, &values, exponent);
            match exponent {
                None => not_taken.push(figure.name),
                Some(exponent) if exponent > figure.reach => too_fast.push(figure.name),
                Some(_) => {}
            }
        }
    }
    let too_fast = too_fast.join(", ");
    ensure!(too_fast.is_empty(), "grows too fast: {too_fast}");
    ensure!(
        not_taken.is_empty(),
        "not taken, because others used the machine: {}; run it again on a quiet one",
        not_taken.join(", ")
    );
    Ok(())
}

fn print_row(
    series: &GrowthSeries,
    figure: &GrowingFigure,
    values: &[(u32, &str, f64)],
    exponent: Option<f64>,
) {
    let cells = values
        .iter()
        .map(|(size, text, _)| format!("{size}: {text}"));
    let exponent = exponent.map_or("not taken".to_owned(), |exponent| format!("{exponent:.2}"));
    println!(
        "| {} | {} | {} | {exponent} | {} |",
        figure.name,
        series.of_what,
        cells.collect::<Vec<_>>().join("; "),
        figure.reach
    );
}

impl GrowthSeries {
    /// What the bench measures at each size.
    fn measure_sizes(&self, bench: &BenchProgram) -> Result<Vec<GrowthRun>> {
        build_program(bench)?;
        let others = self.environment.iter();
        let others = others.map(|(name, value)| (*name, (*value).into()));
        let others: BenchEnvironment = others.collect();
        let mut runs = Vec::new();
        for size in self.sizes {
            eprintln!("{}: {size} {}", self.bench, self.of_what);
            let size_variable = [(self.variable, size.to_string().into())];
            let environment = [&others[..], &size_variable].concat();
            let (figures, used) = run_and_observe(bench, &environment)?;
            eprintln!("{used}");
            runs.push(GrowthRun {
                size,
                figures,
                quiet: used.was_quiet(),
            });
        }
        Ok(runs)
    }
}

/// Each size with the figure's text and its first number.
fn read_values<'a>(name: &str, runs: &'a [GrowthRun]) -> Result<Vec<(u32, &'a str, f64)>> {
    let mut values = Vec::new();
    for run in runs {
        let mut all = run.figures.iter();
        let figure = all.find(|figure| figure.what.contains(name));
        let figure = figure.with_context(|| format!("no figure \"{name}\" was printed"))?;
        let value = read_first_number(&figure.measured)
            .with_context(|| format!("no number in \"{}\"", figure.measured))?;
        values.push((run.size, figure.measured.as_str(), value));
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
