//! How many random runs a model makes. A change in this crate is tested in seconds at the usual depth; `cargo xtask test`
//! runs the whole workspace at full depth, which takes 3 to 5 minutes of processor time here.

/// `DOGWATCH_MODEL_DEPTH=full` asks for full depth.
const DEPTH_VARIABLE: &str = "DOGWATCH_MODEL_DEPTH";
/// One run in so many at the usual depth.
const USUAL_SHARE: u32 = 16;
const FEWEST_CASES: u32 = 4;

/// The number of runs of a model that makes `full` of them at full depth.
#[expect(
    clippy::disallowed_methods,
    reason = "tests read how deep they are to go"
)]
pub fn model_cases(full: u32) -> u32 {
    match std::env::var(DEPTH_VARIABLE) {
        Ok(depth) if depth == "full" => full,
        Ok(_) | Err(_) => (full / USUAL_SHARE).max(FEWEST_CASES),
    }
}
