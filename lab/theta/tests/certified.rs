//! Bounds on Omega hold the truth whenever the clocks keep their promises, and a clock that does not is found.

mod common;

use common::brute::{self, Truth};
use common::generator::{Generated, Random, Shape, generate};
use ffclock_theta::analysis::{Ratio, SwitchStamping, ThetaMode, TimeRange};
use ffclock_theta::certified::{Certified, CertifyError, CertifyOptions, Lie, OmegaBounds, certify_events};
use ffclock_theta::record::{ClockSample, HostId};
use ffclock_units::{Counter, Period, Rate};

/// One part in a thousand: a bad clock, so that drift matters within a run.
const DRIFT: f64 = 1e-3;
const BETWEEN_SAMPLES: i64 = 20_000;
/// Short epochs, so that there are several.
const EPOCH: i64 = 50_000;

struct World {
    generated: Generated,
    clocks: Vec<ClockSample>,
    bound: i64,
    delay_max: i64,
    lie: Option<(usize, i64)>,
}

/// Clocks whose error wanders within the bound, no faster than the drift; that of the liar lies beyond by `excess`.
fn clocks(generated: &Generated, bound: i64, random: &mut Random, liar: Option<(usize, i64)>) -> Vec<ClockSample> {
    let period = Period::from_seconds(1e-12).expect("a picosecond");
    let mut samples = vec![];
    for (host, &offset) in generated.offsets.iter().enumerate() {
        let excess = liar.filter(|&(liar, _)| liar == host).map_or(0, |(_, excess)| excess);
        let mut error = random.below(2 * bound as u64 + 1) as i64 - bound;
        if excess != 0 {
            error = bound * excess.signum();
        }
        for number in 0..40 {
            let time = number * BETWEEN_SAMPLES;
            let clock = ClockSample {
                host: HostId(host as u32),
                counter: Counter::from_raw(offset.wrapping_add(time as u64)),
                time_ps: time + error + excess,
                bound_ps: bound as u64,
                period,
                drift_bound: Rate::from_fraction(DRIFT),
            };
            samples.push(clock);
            let step = (BETWEEN_SAMPLES as f64 * DRIFT) as u64;
            if excess == 0 {
                error = (error + random.below(2 * step + 1) as i64 - step as i64).clamp(-bound, bound);
            }
        }
    }
    samples
}

fn world(random: &mut Random, lie: impl Fn(&Generated, i64, &mut Random) -> Option<(usize, i64)>) -> World {
    let tolerated = random.below(2) as u32;
    let shape = Shape {
        processes: 3 * tolerated + 2 + random.below(2) as u32,
        tolerated,
        byzantine: random.below(u64::from(tolerated) + 1) as u32,
        rounds: 2 + random.below(10),
        delay_min: 500 + random.below(2000),
        delay_spread: [10, 1000, 20_000][random.below(3) as usize],
        wait: [0, 0, 1000][random.below(3) as usize],
        loss: 0,
        duplication: 0,
        disorder: 4,
    };
    let mut generated = generate(shape, random);
    generated.run.delay_min_ps = [0, 400][random.below(2) as usize];
    let bound = [10, 300, 3000, 30_000][random.below(4) as usize];
    let lie = lie(&generated, bound, random);
    let clocks = clocks(&generated, bound, random, lie);
    World { clocks, bound, delay_max: (shape.delay_min + shape.delay_spread) as i64, lie, generated }
}

fn certify(world: &World, stamping: SwitchStamping) -> Result<Certified, CertifyError> {
    certify_within(world, stamping, TimeRange::ALL)
}

fn certify_within(world: &World, stamping: SwitchStamping, range: TimeRange) -> Result<Certified, CertifyError> {
    let theta = ThetaMode::Compute;
    let options = CertifyOptions { stamping, theta, epoch_ps: EPOCH as u64, range };
    certify_events(&world.generated.run, &world.clocks, &world.generated.events, &options)
}

/// Whether there was anything to be inside of.
fn assert_inside(bounds: Option<OmegaBounds>, truth: Option<Ratio>, what: &str) -> bool {
    let Some(truth) = truth else { return false };
    let OmegaBounds { low, high } = bounds.expect("there were switches");
    assert!(low <= truth && truth <= high, "{what}: {truth:?} is not in {low:?} .. {high:?}");
    true
}

/// How much larger the upper bound is.
fn of_width(bounds: Option<OmegaBounds>) -> f64 {
    bounds.map_or(1.0, |OmegaBounds { low, high }| high.as_f64() / low.as_f64())
}

fn assert_holds(bounds: Option<(f64, f64)>, truth: Option<f64>, what: &str) {
    let Some(truth) = truth else { return };
    let (low, high) = bounds.expect("there were switches");
    assert!(low <= truth && truth <= high, "{what}: {truth} is not in {low} .. {high}");
}

/// Which switches count is said by the clock of their host, so the range may be another one by what that is off. Those
/// of a longer range have no smaller ratio. Returns whether some certainly counted.
fn assert_of_cut(cut: &Certified, world: &World, stamping: SwitchStamping, range: TimeRange) -> bool {
    let off = world.bound + (BETWEEN_SAMPLES as f64 * DRIFT) as i64;
    let truth = |off: i64| {
        let range = TimeRange { after_ps: range.after_ps - off, until_ps: range.until_ps + off };
        brute::truth_within(&world.generated, stamping, range)
    };
    let (least, most) = (truth(-off), truth(off));
    let judged = [
        (cut.first, least.first.omega, most.first.omega),
        (cut.all, least.all.omega, most.all.omega),
        (cut.throughout, least.throughout, most.throughout),
    ];
    for (bounds, least, most) in judged {
        let what = format!("{range:?}, {stamping:?}, bound {}: {bounds:?}, {least:?}, {most:?}", world.bound);
        assert!(least.is_none() || bounds.is_some_and(|bounds| Some(bounds.high) >= least), "{what}");
        // Where it is open whether any switch counts, the lower bound is 1.
        assert!(bounds.is_none_or(|bounds| bounds.low <= most.unwrap_or(Ratio::ONE)), "{what}");
    }
    least.first.omega.is_some()
}

fn honest_runs(seeds: std::ops::Range<u64>) {
    let (mut widths, mut judged, mut widest, mut narrow) = (0.0, 0.0, 0.0f64, 0.0);
    let (mut in_cuts, mut cuts_with_switches) = (0, 0);
    let count = (seeds.end - seeds.start) as f64;
    for seed in seeds {
        let mut random = Random(seed);
        let world = world(&mut random, |_, _, _| None);
        let stamping = [SwitchStamping::AfterBroadcast, SwitchStamping::BeforeBroadcast][random.below(2) as usize];
        let what = format!("seed {seed}, {stamping:?}, bound {}", world.bound);
        let certified = certify(&world, stamping).unwrap_or_else(|error| panic!("{what}: {error}"));
        let truth = brute::truth(&world.generated, stamping);
        let Truth { first, all, throughout, theta, .. } = &truth;
        let had_switches = assert_inside(certified.first, first.omega, &what);
        assert_inside(certified.all, all.omega, &what);
        assert_inside(certified.throughout, *throughout, &format!("throughout, {what}"));
        assert_inside(certified.theta, *theta, &format!("Theta, {what}"));
        assert_holds(certified.g_r_first, brute::g_r(&truth, first), &format!("g_r, first, {what}"));
        assert_holds(certified.g_r_all, brute::g_r(&truth, all), &format!("g_r, all, {what}"));
        let after_ps = random.below(20_000) as i64;
        let range = TimeRange { after_ps, until_ps: after_ps + random.below(20_000) as i64 };
        let cut = certify_within(&world, stamping, range).unwrap_or_else(|error| panic!("{what}: {error}"));
        let cut_truth = brute::truth_within(&world.generated, stamping, range);
        in_cuts += u64::from(assert_inside(cut.theta, cut_truth.theta, &format!("Theta of {range:?}, {what}")));
        cuts_with_switches += u64::from(assert_of_cut(&cut, &world, stamping, range));
        widest = widest.max(of_width(certified.theta)).max(of_width(certified.throughout));
        narrow += f64::from(u8::from(of_width(certified.theta) < 1.5 && of_width(certified.throughout) < 1.5));
        judged += f64::from(u8::from(had_switches));
        // What the messages say can only narrow what both clocks of a difference claim.
        let claimed = 2.0 * (world.bound as f64 + DRIFT * EPOCH as f64);
        assert!(certified.half_width_max_ps as f64 <= claimed + 2.0, "{what}: {}", certified.half_width_max_ps);
        widths += certified.half_width_max_ps as f64 / count;
    }
    assert!(judged > 0.5 * count, "{judged} of {count} runs had switches");
    assert!(in_cuts as f64 > 0.3 * count, "Theta of {in_cuts} cuts");
    assert!(cuts_with_switches as f64 > 0.3 * count, "Omega of {cuts_with_switches} cuts");
    assert!(widest > 1.5 && narrow > 0.2 * count, "bounds of Theta: {narrow} narrow ones, up to {widest} times");
    println!("{judged} of {count} runs with the truth inside; half width {widths:.0} ps on average");
}

/// More than anything can hide: an honest clock can be off by its bound the other way, and the fastest message took
/// this long.
fn lie(generated: &Generated, bound: i64, random: &mut Random) -> (usize, i64) {
    let correct = generated.run.correct().iter().filter(|&&correct| correct).count();
    let slowest = 3 + 23_000 + (2.0 * DRIFT * (EPOCH + 100_000) as f64) as i64;
    let excess = 2 * bound + slowest + random.below(1_000_000) as i64;
    (random.below(correct as u64) as usize, if random.one_in(2) { excess } else { -excess })
}

fn lying_runs(seeds: std::ops::Range<u64>) {
    let (mut named, count) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let mut random = Random(seed);
        let world = world(&mut random, |generated, bound, random| Some(lie(generated, bound, random)));
        let (host, excess) = world.lie.expect("one host lies");
        let error = certify(&world, SwitchStamping::AfterBroadcast).err();
        let Some(CertifyError::Lied(Lie { suspects, .. })) = error else {
            panic!(
                "seed {seed}: host {host} lied by {excess} ps and got away, bound {}, delays up to {}",
                world.bound, world.delay_max
            )
        };
        assert!(suspects.contains(&format!("h{host}")), "seed {seed}: host {host} lied, accused: {suspects:?}");
        named += u64::from(suspects.len() == 1);
    }
    println!("{count} lies found, {named} of them with the liar named alone");
}

#[test]
fn the_truth_is_inside() {
    honest_runs(0..3000);
}

#[test]
fn a_lie_is_found_and_its_host_named() {
    lying_runs(0..3000);
}

#[test]
#[ignore = "the campaign: minutes of CPU"]
fn the_truth_is_inside_in_a_hundred_thousand_runs() {
    honest_runs(1_000_000..1_100_000);
}

#[test]
#[ignore = "the campaign: minutes of CPU"]
fn a_hundred_thousand_lies_are_found() {
    lying_runs(2_000_000..2_100_000);
}
