//! The program behind `cargo xtask image` and `cargo xtask dist`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use clap::{Parser, Subcommand};
use dogwatch_packaging::{
    dist::{DistSettings, write_packages},
    file_tree::{SHIPPED_ZSTD_LEVEL, read_source_date},
    image::{ImageSources, write_images},
    shipped_program::ProgramFolder,
};

/// Images and packages of both programs
#[derive(Parser)]
#[command(name = "dogwatch-packaging", bin_name = "cargo xtask")]
struct PackagingArguments {
    #[command(subcommand)]
    command: PackagingCommand,
}

#[derive(Subcommand)]
enum PackagingCommand {
    /// Writes OCI images of both programs; needs no container engine
    Image(ImageArguments),
    /// Writes packages of both programs (deb, rpm, archives), krew's manifest, SBOMs and checksums
    Dist(DistArguments),
}

#[derive(clap::Args)]
struct ProgramArguments {
    /// Programs that exist already; without it, both are compiled for release, which takes minutes
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
}

#[derive(clap::Args)]
struct ImageArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Where to write
    #[arg(long, value_name = "DIR", default_value = "target/images")]
    output: PathBuf,
    /// The certificate authorities in the images, PEM
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/ssl/certs/ca-certificates.crt"
    )]
    ca_certificates: PathBuf,
}

#[derive(clap::Args)]
struct DistArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Where to write
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    output: PathBuf,
    /// Where you will offer the archives; krew downloads from there
    #[arg(
        long,
        value_name = "URL",
        default_value = "https://dogwatch.dev/releases"
    )]
    download_url: String,
}

impl ProgramArguments {
    fn find_programs(&self) -> Result<ProgramFolder> {
        match &self.binaries {
            Some(folder) => ProgramFolder::use_existing(folder),
            None => ProgramFolder::build_release(),
        }
    }
}

fn main() -> ExitCode {
    let written = match PackagingArguments::parse().command {
        PackagingCommand::Image(arguments) => run_image(&arguments),
        PackagingCommand::Dist(arguments) => run_dist(&arguments),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_image(arguments: &ImageArguments) -> Result<()> {
    let programs = arguments.programs.find_programs()?;
    let sources = ImageSources {
        ca_certificates: arguments.ca_certificates.clone(),
        source_date: read_source_date()?,
        zstd_level: SHIPPED_ZSTD_LEVEL,
    };
    for image in write_images(&programs, &sources, &arguments.output)? {
        println!(
            "{:24} {} compressed, {} unpacked",
            image.name,
            in_megabytes(image.size.compressed),
            in_megabytes(image.size.unpacked)
        );
    }
    print_place(&arguments.output);
    Ok(())
}

fn run_dist(arguments: &DistArguments) -> Result<()> {
    let programs = arguments.programs.find_programs()?;
    let settings = DistSettings {
        source_date: read_source_date()?,
        download_url: arguments.download_url.clone(),
    };
    for name in write_packages(&programs, &settings, &arguments.output)? {
        println!("{name}");
    }
    print_place(&arguments.output);
    Ok(())
}

fn print_place(output: &Path) {
    println!("in {}", output.display());
}

fn in_megabytes(bytes: usize) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
