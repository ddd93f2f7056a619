//! The pass against the definitions taken word by word, on random small logs full of equal times.

mod common;

use common::Scratch;
use common::brute::{self, AtSwitches, Truth};
use common::generator::{Generated, Random, Shape, generate};
use ffclock_theta::analysis::{
    Clocks, DelayMode, LogIndex, LogPass, Options, PassTally, Ratio, Shard, SwitchStamping, SwitchTally, ThetaMode,
    ThetaReport, TimeRange, analyse, analyse_shard,
};
use ffclock_theta::log::{EventColumns, LogReader, LogWriter};

const STAMPINGS: [SwitchStamping; 2] = [SwitchStamping::AfterBroadcast, SwitchStamping::BeforeBroadcast];

fn full(stamping: SwitchStamping) -> Options {
    Options {
        stamping,
        theta: ThetaMode::Compute,
        delays: DelayMode::Histograms,
        delay_bin_ps: 1,
        block_messages: 50,
        ..Options::default()
    }
}

/// One stream, cut into batches of `batch` events.
fn passed(generated: &Generated, options: Options, batch: usize) -> PassTally {
    let clocks = Clocks::new(&generated.run, &generated.clocks).expect("every host has a clock");
    let mut pass = LogPass::new(&generated.run, clocks, 1, options);
    for events in generated.events.chunks(batch) {
        let mut columns = EventColumns::default();
        events.iter().for_each(|event| columns.push(event));
        pass.take(0, &columns).expect("events that can be");
    }
    pass.finish()
}

/// A stream for each process.
fn passed_apart(generated: &Generated, options: Options) -> PassTally {
    let clocks = Clocks::new(&generated.run, &generated.clocks).expect("every host has a clock");
    let processes = generated.run.processes as usize;
    let mut pass = LogPass::new(&generated.run, clocks, processes, options);
    let mut streams: Vec<_> = (0..processes)
        .map(|process| generated.events.iter().filter(move |event| event.process().index() == process))
        .collect();
    let mut open = processes;
    while open > 0 {
        let stream = pass.hungriest();
        let mut columns = EventColumns::default();
        streams[stream].by_ref().take(3).for_each(|event| columns.push(event));
        if columns.is_empty() {
            pass.end_stream(stream);
            open -= 1;
        } else {
            pass.take(stream, &columns).expect("events that can be");
        }
    }
    pass.finish()
}

fn at_switches(tally: &SwitchTally) -> AtSwitches {
    AtSwitches {
        times: tally.times,
        idle: tally.idle,
        at_most_one: tally.at_most_one,
        omega: tally.omega.map(|peak| peak.ratio),
        omega_with_delay: tally.omega_with_delay,
        relevant_min: tally.relevant_min_ps,
        relevant_max: tally.relevant_max_ps,
    }
}

fn compare(tally: &PassTally, truth: &Truth, what: &str) {
    let delays = tally.delays.as_ref().expect("asked for");
    assert_eq!(tally.counts.messages, truth.messages, "{what}");
    assert_eq!(delays.all.total(), truth.messages, "{what}");
    assert_eq!((tally.delay_max_ps, tally.delay_min_ps), (truth.delay_max, truth.delay_min), "{what}");
    assert_eq!(at_switches(&tally.first), truth.first, "first switches, {what}");
    assert_eq!(at_switches(&tally.all), truth.all, "all switches, {what}");
    assert_eq!(tally.throughout.map(|peak| peak.ratio), truth.throughout, "throughout, {what}");
    assert_eq!(tally.theta, truth.theta, "theta, {what}");
    let ranks: Vec<_> = delays.by_rank.iter().map(|histogram| histogram.total()).collect();
    assert_eq!(ranks, truth.contributions, "{what}");
    let mut contributed = vec![];
    for histogram in &delays.by_rank {
        let bins = histogram.bins.iter().enumerate();
        contributed.extend(bins.flat_map(|(delay, &times)| std::iter::repeat_n(delay as i64, times as usize)));
    }
    contributed.sort_unstable();
    assert_eq!(contributed, truth.contributed_delays, "{what}");
}

#[test]
fn the_pass_agrees_with_the_definitions() {
    let mut switches = 0;
    for seed in 0..2000 {
        let mut random = Random(seed);
        let shape = Shape::random(&mut random);
        let generated = generate(shape, &mut random);
        for stamping in STAMPINGS {
            let truth = brute::truth(&generated, stamping);
            let tally = passed(&generated, full(stamping), 1 + random.below(100) as usize);
            let what = format!("seed {seed}, {stamping:?}, {shape:?}");
            compare(&tally, &truth, &what);
            // Of a whole run every message is of one kind.
            let others = tally.delays.as_ref().expect("asked for").others().total();
            assert_eq!(others + truth.contributed_delays.len() as u64, truth.messages, "{what}");
            assert_eq!(tally.conformance.breaches, 0, "{what}: {:?}", tally.conformance.examples);
            assert_eq!(tally.counts.forged, 0, "{what}: {:?}", tally.unsent);
            assert_eq!((tally.counts.late, tally.counts.stray, tally.counts.out_of_order), (0, 0, 0), "{what}");
            switches += truth.all.times;
        }
    }
    assert!(switches > 50_000, "the logs are not trivial: {switches} switches");
}

/// Every quantity of trimmed logs too, of counters with coarse ticks, with faults: nothing but the definitions decides.
#[test]
fn trimmed_and_coarse_logs_agree_with_the_definitions() {
    let (mut trimmed, mut at_once) = (0, 0);
    for seed in 0..1000 {
        let mut random = Random(seed);
        let shape = Shape::random(&mut random);
        let tick_ps = [1, 1, 3, 10][random.below(4) as usize];
        let generated = generate(shape, &mut random).coarse(tick_ps);
        let after_ps = random.below(300) as i64;
        let cut = TimeRange { after_ps, until_ps: after_ps + random.below(600) as i64 };
        for range in [TimeRange::ALL, cut] {
            for stamping in STAMPINGS {
                let truth = brute::truth_within(&generated, stamping, range);
                let tally = passed(&generated, Options { range, ..full(stamping) }, 64);
                compare(&tally, &truth, &format!("seed {seed}, {stamping:?}, {range:?}, tick {tick_ps}, {shape:?}"));
                let report = ThetaReport::new(&generated.run, &tally, &[]);
                for (seen, by_definition) in [(&report.first, &truth.first), (&report.all, &truth.all)] {
                    assert_eq!(seen.g_r, brute::g_r(&truth, by_definition), "seed {seed}, {range:?}");
                }
                trimmed += u64::from(range == cut && truth.all.times > 0);
                at_once += u64::from(tally.counts.not_positive > 0);
            }
        }
    }
    assert!(trimmed > 500 && at_once > 200, "{trimmed} cuts with switches, {at_once} logs with delays of 0");
}

#[test]
fn shards_of_a_file_add_up_to_the_single_pass() {
    let mut random = Random(5);
    let shape = Shape {
        processes: 5,
        tolerated: 1,
        byzantine: 1,
        rounds: 30_000,
        duplication: 0,
        loss: 0,
        ..Shape::random(&mut random)
    };
    let generated = generate(shape, &mut random);
    let scratch = Scratch::new("shards");
    let mut writer = LogWriter::create(scratch.path(), &generated.run).expect("an empty directory");
    generated.events.iter().for_each(|event| writer.event(event).expect("the disk has room"));
    generated.clocks.iter().for_each(|&sample| writer.clock(sample));
    writer.finish().expect("the disk has room");
    let log = LogReader::open(scratch.path()).expect("just written");
    let index = LogIndex::new(&log).expect("just written");
    let single = analyse(&log, full(SwitchStamping::AfterBroadcast), &mut ()).expect("just written");
    let ranges = index.plan(5);
    assert!(ranges.len() > 3, "{ranges:?}");
    let shard = |range| {
        let options = Options { range, ..full(SwitchStamping::AfterBroadcast) };
        let margin_ps = if range.after_ps > i64::MIN { 3 } else { 1000 };
        analyse_shard(&log, &index, Shard { options, margin_ps }, &mut ()).expect("just written")
    };
    let tallies: Vec<PassTally> = ranges.into_iter().map(shard).collect();
    // Over the wire, as shards on other machines are.
    let sent =
        |tally: &PassTally| serde_json::from_str(&serde_json::to_string(tally).expect("plain")).expect("just written");
    let mut merged: PassTally = sent(&tallies[0]);
    tallies[1..].iter().for_each(|tally| merged.merge(&sent(tally)));
    assert_eq!(merged, single);
}

#[test]
fn one_stream_for_each_process_gives_the_same() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let generated = generate(Shape::random(&mut random), &mut random);
        for stamping in STAMPINGS {
            assert_eq!(passed_apart(&generated, full(stamping)), passed(&generated, full(stamping), 64), "seed {seed}");
        }
    }
}

#[test]
fn shards_of_time_add_up_to_the_single_pass() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let generated = generate(Shape::random(&mut random), &mut random);
        for stamping in STAMPINGS {
            let whole = passed(&generated, full(stamping), 64);
            let mut cuts: Vec<_> = (0..random.below(6)).map(|_| random.below(2000) as i64).collect();
            cuts.extend([i64::MIN, i64::MAX]);
            cuts.sort_unstable();
            let shard = |range| passed(&generated, Options { range, ..full(stamping) }, 64);
            let shards = cuts.windows(2).map(|cut| shard(TimeRange { after_ps: cut[0], until_ps: cut[1] }));
            let merged = shards.reduce(|mut sum, next| {
                sum.merge(&next);
                sum
            });
            let merged = merged.expect("at least one shard");
            assert_eq!(merged, whole, "seed {seed}, {stamping:?}, cuts {cuts:?}");
        }
    }
}

/// Messages may be in transit when the range begins, while none is sent in it.
#[test]
fn theta_of_a_range_counts_what_is_in_transit_at_its_begin() {
    let mut largest_at_begin = 0;
    for seed in 0..500 {
        let mut random = Random(seed);
        let generated = generate(Shape::random(&mut random), &mut random);
        let after_ps = random.below(600) as i64;
        let range = TimeRange { after_ps, until_ps: after_ps + random.below(60) as i64 };
        let truth = brute::theta_within(&generated, range);
        for stamping in STAMPINGS {
            let tally = passed(&generated, Options { range, ..full(stamping) }, 64);
            assert_eq!(tally.theta, truth, "seed {seed}, {stamping:?}, {range:?}");
        }
        let begin = TimeRange { until_ps: range.until_ps.min(after_ps + 1), ..range };
        largest_at_begin += u64::from(truth.is_some() && brute::theta_within(&generated, begin) == truth);
    }
    assert!(largest_at_begin > 20, "Theta is largest at the begin of the range: {largest_at_begin}");
}

/// Of trimmed logs too, tau+ is no smaller than any tau+(e), so that g and g_r are at least 1; and what is asked for
/// besides changes nothing.
#[test]
fn a_trimmed_log_has_no_longer_delay_than_its_largest() {
    let mut reaching = 0;
    for seed in 0..500 {
        let mut random = Random(seed);
        let generated = generate(Shape::random(&mut random), &mut random);
        let after_ps = random.below(600) as i64;
        let range = TimeRange { after_ps, until_ps: after_ps + random.below(600) as i64 };
        for stamping in STAMPINGS {
            let tally = passed(&generated, Options { range, ..full(stamping) }, 64);
            for seen in [&tally.first, &tally.all] {
                let least =
                    seen.relevant_min_ps.zip(tally.delay_max_ps).and_then(|(under, over)| Ratio::of(over, under));
                let omega = seen.omega.map(|peak| peak.ratio).filter(|&omega| omega > Ratio::ONE);
                assert!(omega.is_none_or(|omega| Some(omega) <= least), "seed {seed}: {omega:?}, {least:?}");
            }
            let counted = tally.delays.as_ref().map_or(0, |delays| delays.all.bins.len() as i64 - 1);
            reaching += u64::from(tally.delay_max_ps.is_some_and(|longest| longest > counted));
            let plain = passed(
                &generated,
                Options { range, theta: ThetaMode::Omit, delays: DelayMode::Extremes, ..full(stamping) },
                64,
            );
            assert_eq!(PassTally { theta: plain.theta, delays: None, ..tally }, plain, "seed {seed}");
        }
    }
    assert!(reaching > 50, "messages reach into the range from before: {reaching}");
}
