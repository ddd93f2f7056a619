//! How well the clock keeps time in the simulated laboratory. Figures are printed with `--nocapture`.

mod common;

use common::{DAY, HOUR, Lab, Report, World};

fn show(name: &str, report: &Report, from: f64) {
    let quantiles = [0.01, 0.25, 0.5, 0.75, 0.99].map(|q| report.quantile(from, q) * 1e6);
    let worst = report.worst(from, f64::INFINITY) * 1e6;
    let unlikely = report.unlikely as f64 / report.errors.len() as f64;
    let mut bounds = report.bounds.clone();
    bounds.sort_by(f64::total_cmp);
    let bound = bounds[bounds.len() / 2] * 1e6;
    println!(
        "{name}: IQR {:.2} us, largest {worst:.1} us, quantiles {quantiles:.1?}, beyond the likely error {unlikely:.3}, median bound {bound:.0} us",
        report.iqr(from) * 1e6
    );
}

#[test]
fn quiet_lan() {
    for seed in 1..4 {
        let mut lab = Lab::new(World::lan(seed));
        lab.run(16.0, DAY, |_| ());
        show("world 1, 16 s", &lab.report, 4.0 * HOUR);
    }
    let mut world = World::lan(7);
    world.wave = (0.1e-6, 1_000.0);
    let mut lab = Lab::new(world);
    lab.run(16.0, DAY, |_| ());
    show("world 2, 16 s", &lab.report, 4.0 * HOUR);
    for poll in [0.25, 1.0, 64.0, 256.0] {
        let mut lab = Lab::new(World::lan(9));
        lab.run(poll, if poll < 1.0 { 4.0 * HOUR } else { DAY }, |_| ());
        show(&format!("world 1, {poll} s"), &lab.report, 2.0 * HOUR);
    }
    let mut lab = Lab::new(World::far(9));
    lab.run(16.0, DAY, |_| ());
    show("far, 16 s", &lab.report, 2.0 * HOUR);
}
