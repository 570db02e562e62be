//! Implements `dogwatch demo`: a simulated cluster on which three stories happen.

mod screen;
mod serve;
mod top_view;

use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;

use dogwatch_sim::demo::{Demo, DemoConfig, DemoError};
use dogwatch_top::wrap_text;
use tokio::signal::unix::{SignalKind, signal};

use self::screen::{DemoScreen, MAX_LINE_WIDTH};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output;
use crate::paint::{TerminalColour, TerminalPaint};

#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Worker nodes, in addition to one control-plane node; at least two, because a drain needs a
    /// second node
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100))]
    nodes: u32,

    /// Seed of everything random; only real time is not reproducible
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Speed factor; at 1 the demo takes some 30 seconds
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_speed)]
    speed: f64,

    /// Serve the cluster's API here, for kubectl, and go on until Ctrl-C
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = parse_loopback_address)]
    serve: Option<SocketAddr>,

    /// Show the cluster as `dogwatch top` does, instead of a timeline; q ends it
    #[arg(long, conflicts_with = "dashboard")]
    top: bool,

    /// Serve the dashboard of the cluster too, and open it in a browser; includes --serve
    #[arg(long)]
    dashboard: bool,
}

impl DemoArgs {
    fn serve_address(&self) -> Option<SocketAddr> {
        let any_port = || SocketAddr::from(([127, 0, 0, 1], 0));
        self.serve.or_else(|| self.dashboard.then(any_port))
    }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.1..=20.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("write a number from 0.1 to 20".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Only loopback addresses are accepted: the embedded API server authenticates nobody.
fn parse_loopback_address(text: &str) -> Result<SocketAddr, String> {
    crate::args::parse_loopback_address(text, "the demo's API accepts everybody")
}

/// Fails if one of the demo's promises did not hold.
pub async fn run(args: &DemoArgs) -> Result<(), CommandFailure> {
    if args.top {
        super::top::require_terminal()?;
    }
    let folder = tempfile::Builder::new()
        .prefix("dogwatch-demo-")
        .tempdir()
        .map_err(|error| {
            CommandFailure::new(
                CliExitCode::Failed,
                format!("failed to make a folder for the nodes' files: {error}"),
            )
        })?;
    let mut demo = tokio::select! {
        demo = start_demo(args, folder.path()) => demo?,
        () = wait_for_end_signal() => return Ok(()),
    };
    if args.top {
        return top_view::watch_in_top(&mut demo, args.serve, folder.path()).await;
    }
    let mut screen = DemoScreen::new(std::io::stdout().is_terminal(), TerminalPaint::of_stdout());
    let serving = match args.serve_address() {
        Some(address) => {
            Some(serve::DemoApiServer::start_serving(&demo, address, folder.path()).await?)
        }
        None => None,
    };
    if let (true, Some(serving)) = (args.dashboard, &serving) {
        serving.open_dashboard().await?;
    }
    screen.print_lines(&intro_lines())?;
    if let Some(serving) = &serving {
        screen.print_lines(&serving.usage_lines(&demo))?;
    }
    let finished = play_until(&mut demo, &mut screen, Demo::is_finished).await?;
    if !finished {
        return Ok(());
    }
    let rest = demo.remaining_lines();
    screen.print_events(&demo, &rest)?;
    screen.freeze_table(&demo)?;
    let verdict = demo.judge_demo();
    print_verdict(&demo, &verdict)?;
    if serving.is_some() && verdict.has_passed() {
        screen.print_lines(&serve::after_demo_lines())?;
        play_until(&mut demo, &mut screen, |_| false).await?;
        screen.freeze_table(&demo)?;
    }
    if verdict.has_passed() {
        return Ok(());
    }
    Err(
        CommandFailure::new(CliExitCode::Failed, "a promise did not hold").with_next_step(format!(
            "run it again with --seed {}, and report its output",
            args.seed
        )),
    )
}

fn intro_lines() -> Vec<String> {
    let text = "Three stories, one after the other, on a simulated cluster with real coordinators and a real controller.";
    wrap_text(text, MAX_LINE_WIDTH)
}

async fn start_demo(args: &DemoArgs, folder: &std::path::Path) -> Result<Demo, CommandFailure> {
    let config = DemoConfig {
        nodes: args.nodes,
        control_plane: 1,
        seed: args.seed,
        speed: args.speed,
        folder: folder.to_owned(),
        now: jiff::Timestamp::now(),
    };
    Demo::start_demo(config)
        .await
        .map_err(|error| demo_failure(&error))
}

/// Shows events until `over` holds; returns false when a signal ended the demo first.
async fn play_until(
    demo: &mut Demo,
    screen: &mut DemoScreen,
    over: impl Fn(&Demo) -> bool,
) -> Result<bool, CommandFailure> {
    let mut end = std::pin::pin!(wait_for_end_signal());
    while !over(demo) {
        tokio::select! {
            told = demo.next_lines() => {
                let told = told.map_err(|error| demo_failure(&error))?;
                screen.print_events(demo, &told)?;
            }
            () = &mut end => {
                screen.freeze_table(demo)?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Resolves on SIGINT or SIGTERM.
pub async fn wait_for_end_signal() {
    let mut terminated = signal(SignalKind::terminate()).ok();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        Some(()) = async { terminated.as_mut()?.recv().await } => {}
    }
}

fn demo_failure(error: &DemoError) -> CommandFailure {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    CommandFailure::new(CliExitCode::Failed, text)
}

fn print_verdict(
    demo: &Demo,
    verdict: &dogwatch_sim::demo::DemoVerdict,
) -> Result<(), CommandFailure> {
    let paint = TerminalPaint::of_stdout();
    let mut out = output::buffered_stdout();
    let time = demo.elapsed_time().as_secs_f64();
    writeln!(
        out,
        "\n{}",
        paint.paint_text(
            TerminalColour::Bold,
            &format!("These promises were checked at every change, for {time:.1} seconds:")
        )
    )?;
    for check in &verdict.0 {
        let mark = if check.held {
            paint.paint_text(TerminalColour::Green, "ok    ")
        } else {
            paint.paint_text(TerminalColour::Red, "BROKEN")
        };
        let text = format!("{}: {}", check.what, check.observed);
        for (index, line) in wrap_text(&text, MAX_LINE_WIDTH - 10).iter().enumerate() {
            let mark = if index == 0 { &mark } else { "      " };
            writeln!(out, "  {mark}  {line}")?;
        }
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_served_on_loopback_only() {
        assert!(parse_loopback_address("127.0.0.1:0").is_ok());
        assert!(parse_loopback_address("localhost:8001").is_ok());
        assert!(parse_loopback_address("[::1]:0").is_ok());
        assert!(
            parse_loopback_address("0.0.0.0:8001")
                .unwrap_err()
                .contains("not loopback")
        );
        assert!(parse_loopback_address("8001").is_err());
    }

    #[test]
    fn a_speed_is_within_what_the_clock_can_show() {
        assert!(parse_speed("4").is_ok());
        assert!(parse_speed("0").is_err());
        assert!(parse_speed("1000").is_err());
    }
}
