//! The figures of the feed-forward clocks in the worlds of some files, to the last bit. `tools/mutation` compares them.
//!
//! `cargo run --release -p ffclock-sim --example figures -- FILE.toml ...`

use ffclock_sim::{Run, Scenario};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        let scenario = Scenario::parse(&name, &std::fs::read_to_string(&name)?)?;
        let result = Run { name: &name, scenario: &scenario, seed: 1 }.execute_with(&["classic", "learned"], None);
        println!("{name} {:?}", result.clocks);
    }
    Ok(())
}
