//! What a reading costs through ClockBound's own clients: of the segments that `ffclock feed --clockbound` writes, of
//! segments as ClockBound's daemon writes them, and by our client from the page itself. Prints one JSON line for each
//! figure.
//!
//! `cargo bench -p ffclock-cli`. The candidates are measured in turns, a block of each, and the medians are compared.
//! That the truth is in each reading is a test (`cargo test -p ffclock-cli --test command clockbound`).

#[path = "../../client/benches/turns/mod.rs"]
mod turns;

use clock_bound::{Client, ClockStatus};
use clock_bound_client::{ClockBoundClient, ClockStatus as ClockStatus2};
use ffclock::Clock;
use ffclock_counter::{CounterId, nominal, read_ordered};
use ffclock_page::{BootId, Publication, Writer};
use ffclock_sys::{SharedPage, mono_now};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapTable, Moment, Rate, Span, StandardUncertainty, Status, Utc,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use turns::{block, medians};

/// How much slower a client may be on our segment than on its own daemon's.
const GOAL: f64 = 1.05;
const SECOND: i128 = 1_000_000_000;

fn main() {
    let directory = std::env::temp_dir().join(format!("ffclock-bench-clockbound-{}", std::process::id()));
    let page = directory.join("page");
    std::fs::create_dir_all(&directory).expect("a directory for temporary files");
    // It outlives the writing of the segments, since only a living page is fed.
    let memory = SharedPage::create(&page).expect("a page in the directory just made");
    let mut writer = Writer::open(memory, BootId::parse(&ffclock_counter::boot_id()));
    writer.publish(&publication());
    let ours = directory.join("ours");
    let fed = Command::new(env!("CARGO_BIN_EXE_ffclock"))
        .arg("--page")
        .arg(&page)
        .args(["feed", "--count", "1", "--clockbound"])
        .arg(&ours)
        .status();
    assert!(fed.is_ok_and(|status| status.success()), "the page is fed");
    let theirs = directory.join("theirs");
    std::fs::create_dir_all(&theirs).expect("a directory in the one just made");
    write_as_their_daemon(&theirs);
    compare(&page, [&ours, &theirs]);
    std::fs::remove_dir_all(&directory).expect("what was made here");
}

fn compare(page: &Path, directories: [&PathBuf; 2]) {
    let name = |directory: &PathBuf, file: &str| directory.join(file).to_str().expect("a plain path").to_owned();
    let [mut ours_3, mut theirs_3] = directories.map(|directory| {
        let mut client = Client::new_with_path(&name(directory, "shm1")).expect("a segment of version 3");
        assert_eq!(client.now().expect("a time").clock_status, ClockStatus::Synchronized, "{directory:?}");
        client
    });
    let [mut ours_2, mut theirs_2] = directories.map(|directory| {
        let mut client = ClockBoundClient::new_with_path(&name(directory, "shm0")).expect("a segment of version 2");
        assert_eq!(client.now().expect("a time").clock_status, ClockStatus2::Synchronized, "{directory:?}");
        client
    });
    let clock = Clock::open_at(page).expect("the page just made");
    let [fenced, now, v3, v3_theirs, v2, v2_theirs] = medians([
        &mut || block(|| read_ordered(CounterId::CPU)),
        &mut || block(|| clock.now().is_ok()),
        &mut || block(|| ours_3.now().is_ok()),
        &mut || block(|| theirs_3.now().is_ok()),
        &mut || block(|| ours_2.now().is_ok()),
        &mut || block(|| theirs_2.now().is_ok()),
    ]);
    let its_own = "on a segment as its daemon writes it";
    report("ClockBound 3.0, our segment", v3, (its_own, v3_theirs), Some(GOAL));
    report("ClockBound 2.0, our segment", v2, (its_own, v2_theirs), Some(GOAL));
    report("ffclock now, the same line", now, ("ClockBound 3.0, our segment", v3), None);
    report("fenced counter read", fenced, ("ffclock now, the same line", now), None);
}

fn report(name: &str, value: f64, (against, base): (&str, f64), goal: Option<f64>) {
    let ratio = value / base;
    let (goal, met) = goal.map_or(("null".to_owned(), "null".to_owned()), |goal| {
        (format!("\"ratio <= {goal}\""), (ratio <= goal).to_string())
    });
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.2},\"unit\":\"ns\",\"against\":\"{against}: {base:.2}\",\
         \"ratio\":{ratio:.3},\"goal\":{goal},\"met\":{met}}}"
    );
}

fn utc_now() -> Moment<Utc> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a system clock after 1970");
    Moment::from_origin(Span::from_nanos(since.as_nanos().cast_signed()))
}

/// The system's time, good for an hour.
fn publication() -> Publication {
    let period = nominal(CounterId::CPU).expect("a CPU with a counter").period;
    let counter = read_ordered(CounterId::CPU);
    let time = LeapTable::built_in().tai_from_utc(utc_now());
    Publication {
        counter_id: CounterId::CPU,
        epoch: CounterEpoch::from_raw(1),
        epoch_begin: Counter::from_raw(0),
        estimate: Estimate {
            counter,
            time,
            period,
            uncertainty: StandardUncertainty::of(Span::from_micros(2)),
            noise: StandardUncertainty::of(Span::from_micros(2)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(50.0)),
            bound: Bound::of(Span::from_micros(40)),
            bound_growth: GrowthRate::of(Rate::from_ppm(15.0)),
            difference_period: period,
            difference_bound: GrowthRate::of(Rate::from_ppm(15.0)),
            difference_uncertainty: GrowthRate::of(Rate::from_ppb(50.0)),
            status: Status::Synchronised,
        },
        leap: LeapTable::built_in().step_around(time),
        valid_until: counter + period.ticks_in(Span::from_secs(3600)),
        server: None,
    }
}

/// Both segments in the layout of the crates: `ClockErrorBound` of clock-bound-shm 2.0 and `ClockErrorBoundV3` of
/// clock-bound 3.0, each behind a `ShmHeader`.
fn write_as_their_daemon(directory: &Path) {
    let pair = |nanos: i128| [(nanos / SECOND) as u64, (nanos % SECOND) as u64];
    let (growth_and_status, bound) = (1_u64 << 32 | 15_000, 40_000);
    // Its client reads the coarse clock, which is behind.
    let since = mono_now().since_origin().as_nanos() - 20_000_000;
    let v2 = [&pair(since)[..], &pair(since + 3600 * SECOND), &[bound, 0, growth_and_status, 0]].concat();
    let period = nominal(CounterId::CPU).expect("a CPU with a counter").period;
    let (counter, time) = (read_ordered(CounterId::CPU), utc_now().since_origin().as_nanos());
    let shifts = u64::from_ne_bytes([0, period.shift(), 0, 0, 0, 0, 0, 0]);
    // The relative error of its period: 2^-24.
    let v3 = [
        &[counter.raw()][..],
        &pair(time),
        &pair(time + 3600 * SECOND),
        &[period.mantissa(), 1 << 40, bound, 0, growth_and_status, shifts],
    ]
    .concat();
    for (file, version, payload) in [("shm0", 2, v2), ("shm1", 3_u64 << 8 | 3, v3)] {
        let length = 8 * (payload.len() as u64 + 2);
        let mark = u64::from(0x414d_5a4e_u32) | u64::from(0x4342_0200_u32) << 32;
        let header = [mark, length | version << 32 | 2 << 48];
        let bytes: Vec<u8> = header.iter().chain(&payload).flat_map(|word| word.to_ne_bytes()).collect();
        std::fs::write(directory.join(file), bytes).expect("a file in the directory just made");
    }
}
