//! OCI images of both programs: a layer with what the system must give, and a layer with the program.

mod layout;
mod root_fs;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use layout::{ImageConfig, ImageLayout};
pub use layout::{ImageLayer, ImageSize};
use root_fs::RootFs;

use crate::{
    VERSION,
    file_tree::{self, FileTree},
    sbom::CrateGraph,
    shipped_program::{ProgramFolder, SHIPPED_PROGRAMS, ShippedProgram},
    write_output,
};

/// From where an image takes what is not built here.
#[derive(Clone, Debug)]
pub struct ImageSources {
    /// The authorities that the programs trust, PEM.
    pub ca_certificates: PathBuf,
    /// Seconds since 1970: the time of every file.
    pub source_date: u64,
    /// How hard the layers are compressed, 1 to 22: [`SHIPPED_ZSTD_LEVEL`](file_tree::SHIPPED_ZSTD_LEVEL) for an image
    /// that is pulled.
    pub zstd_level: i32,
}

/// An image that was written.
#[derive(Clone, Debug)]
pub struct WrittenImage {
    pub name: &'static str,
    pub size: ImageSize,
}

/// Writes each image as a folder in OCI's layout, as one archive of it, and its list of parts.
pub fn write_images(
    programs: &ProgramFolder,
    sources: &ImageSources,
    output: &Path,
) -> Result<Vec<WrittenImage>> {
    let mut written = Vec::new();
    for program in SHIPPED_PROGRAMS {
        let name = program.file_name();
        let image = write_image(program, programs, sources, output);
        written.push(image.with_context(|| format!("failed to make the image of {name}"))?);
    }
    Ok(written)
}

fn write_image(
    program: ShippedProgram,
    programs: &ProgramFolder,
    sources: &ImageSources,
    output: &Path,
) -> Result<WrittenImage> {
    let name = program.file_name();
    let architecture = programs.read_needs(program)?.architecture;
    let root_fs = RootFs::collect(program, programs, sources)?;
    let graph = CrateGraph::read_workspace(architecture)?;
    let sbom = graph.describe_program(program, root_fs.system_packages())?;
    let layers = [
        ImageLayer::pack(root_fs.system_files(), "the system's libraries", sources)?,
        ImageLayer::pack(
            &program_files(program, programs, &sbom)?,
            "the program",
            sources,
        )?,
    ];
    let config = ImageConfig::of_program(program, architecture, sources.source_date)?;
    let layout = ImageLayout::build(&config, &layers)?;
    layout.write_folder(&output.join(name))?;
    let archive = layout.to_file_tree().to_tar("", sources.source_date)?;
    let file = format!("{name}-{VERSION}-{}.tar", architecture.go_name());
    write_output(&output.join(file), &archive)?;
    write_output(&output.join(format!("{name}.cdx.json")), &sbom)?;
    let size = layout.measure_size();
    Ok(WrittenImage { name, size })
}

fn program_files(
    program: ShippedProgram,
    programs: &ProgramFolder,
    sbom: &[u8],
) -> Result<FileTree> {
    let name = program.file_name();
    let mut files = FileTree::default();
    let bytes = programs.read_program(program)?;
    files.add_file(&format!("usr/bin/{name}"), file_tree::PROGRAM_MODE, bytes);
    files.add_file(
        &format!("usr/share/sbom/{name}.cdx.json"),
        file_tree::DATA_MODE,
        sbom,
    );
    let license = crate::read_tree_file("LICENSE")?;
    files.add_file(
        "usr/share/doc/dogwatch/copyright",
        file_tree::DATA_MODE,
        license,
    );
    Ok(files)
}
