//! `dogwatch demo`: a cluster that reboots itself before one's eyes, without a cluster.

mod screen;
mod serve;

use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;

use dogwatch_sim::demo::{Demo, DemoConfig, DemoError};
use tokio::signal::unix::{SignalKind, signal};

use self::screen::Screen;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::paint::{Colour, Paint};

/// What is shown.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Worker nodes, beside one of the control plane; one alone would have nowhere to drain to
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=100))]
    nodes: u32,

    /// Decides everything random but the true time
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How many times as fast; 1 takes some 30 seconds
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Serve the cluster's API here, for kubectl, and go on until Ctrl-C
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = loopback)]
    serve: Option<SocketAddr>,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.1..=20.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("from 0.1 to 20".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The embedded API server asks nobody for a password.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .replace("localhost", "127.0.0.1")
        .parse()
        .map_err(|_| "write it like 127.0.0.1:8001".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!(
            "{} is not loopback: the demo's API has no passwords",
            address.ip()
        ))
    }
}

/// Plays it. Ends with an error if one of the promises did not hold.
pub async fn run(args: &DemoArgs) -> Result<(), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("dogwatch-demo-")
        .tempdir()
        .map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("failed to make a folder for the nodes' files: {error}"),
            )
        })?;
    let mut demo = tokio::select! {
        demo = start(args, folder.path()) => demo?,
        () = ended() => return Ok(()),
    };
    let mut screen = Screen::new(std::io::stdout().is_terminal(), Paint::of_stdout());
    let serving = match args.serve {
        Some(address) => Some(serve::Serving::begin(&demo, address, folder.path()).await?),
        None => None,
    };
    screen.note(&stories(args.nodes))?;
    if let Some(serving) = &serving {
        screen.note(&serving.how_to(&demo))?;
    }
    let finished = play(&mut demo, &mut screen, Demo::is_over).await?;
    if !finished {
        return Ok(());
    }
    let rest = demo.rest();
    screen.show(&demo, &rest)?;
    screen.end(&demo)?;
    let verdict = demo.verdict();
    summary(&demo, &verdict)?;
    if serving.is_some() && verdict.held() {
        screen.note(&serve::goes_on())?;
        play(&mut demo, &mut screen, |_| false).await?;
        screen.end(&demo)?;
    }
    if verdict.held() {
        return Ok(());
    }
    Err(
        Failure::new(Exit::Failed, "a promise did not hold").next(format!(
            "run it again with --seed {}, and report what it shows",
            args.seed
        )),
    )
}

/// What is about to happen, and to whom.
fn stories(nodes: u32) -> [String; 5] {
    [
        "Three stories at once, on a simulated cluster with real coordinators and a real controller:".into(),
        format!(
            "  cp1 and n1 to n{nodes} are nodes that want a reboot: each goes in its turn, and web and db stay available"
        ),
        "  h1 and h2 are bare-metal hosts without a Node: h1 is rebooted, h2 is held off for a disk swap".into(),
        "  s1 and s2 are storage nodes: s1 fails, and is proved off before its database starts on s2".into(),
        String::new(),
    ]
}

async fn start(args: &DemoArgs, folder: &std::path::Path) -> Result<Demo, Failure> {
    let config = DemoConfig {
        nodes: args.nodes,
        control_plane: 1,
        seed: args.seed,
        speed: args.speed,
        folder: folder.to_owned(),
        now: jiff::Timestamp::now(),
    };
    Demo::start(config).await.map_err(|error| failed(&error))
}

/// Shows what happens until `over`, or until somebody ends it: then false.
async fn play(
    demo: &mut Demo,
    screen: &mut Screen,
    over: impl Fn(&Demo) -> bool,
) -> Result<bool, Failure> {
    let mut end = std::pin::pin!(ended());
    while !over(demo) {
        tokio::select! {
            told = demo.next() => {
                let told = told.map_err(|error| failed(&error))?;
                screen.show(demo, &told)?;
            }
            () = &mut end => {
                screen.end(demo)?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Ctrl-C, or being told to end.
async fn ended() {
    let mut terminated = signal(SignalKind::terminate()).ok();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        Some(()) = async { terminated.as_mut()?.recv().await } => {}
    }
}

fn failed(error: &DemoError) -> Failure {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Failure::new(Exit::Failed, text)
}

fn summary(demo: &Demo, verdict: &dogwatch_sim::demo::Verdict) -> Result<(), Failure> {
    let paint = Paint::of_stdout();
    let mut out = output::stdout();
    let time = demo.elapsed().as_secs_f64();
    writeln!(
        out,
        "\n{}",
        paint.paint(
            Colour::Bold,
            &format!("what was checked, at every change of {time:.1} seconds")
        )
    )?;
    for check in &verdict.0 {
        let mark = if check.held {
            paint.paint(Colour::Green, "ok    ")
        } else {
            paint.paint(Colour::Red, "BROKEN")
        };
        writeln!(out, "  {mark}  {}: {}", check.what, check.seen)?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_served_on_loopback_only() {
        assert!(loopback("127.0.0.1:0").is_ok());
        assert!(loopback("localhost:8001").is_ok());
        assert!(loopback("[::1]:0").is_ok());
        assert!(
            loopback("0.0.0.0:8001")
                .unwrap_err()
                .contains("not loopback")
        );
        assert!(loopback("8001").is_err());
    }

    #[test]
    fn a_speed_is_within_what_the_clock_can_show() {
        assert!(speed("4").is_ok());
        assert!(speed("0").is_err());
        assert!(speed("1000").is_err());
    }
}
