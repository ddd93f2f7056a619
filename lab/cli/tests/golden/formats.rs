//! The same exchanges written as other programs write them give the same clock.

use super::world::{Row, World, decimal};
use super::{replay, worlds};
use std::fmt::Write as _;
use std::path::Path;

/// Seconds from 1900 to 1970.
const NTP_EPOCH: i128 = 2_208_988_800;

/// TAI - UTC since 2017, s.
const TAI_AHEAD: i128 = 37;

/// Counter, UTC and period of each row of an output.
fn clock(output: &str) -> Vec<String> {
    let columns = |line: &str| line.split(',').skip(1).take(3).collect::<Vec<_>>().join(",");
    output.lines().map(columns).collect()
}

fn written(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn replayed(name: &str, text: &str, frequency: &str) -> Vec<String> {
    let path = written(&format!("formats-{name}"), text);
    clock(&replay(&format!("formats-{name}"), &["--counter-frequency", frequency, &path]).rows)
}

fn lines(world: &World, line: impl Fn(&Row) -> Option<String>) -> String {
    world.rows().iter().filter_map(line).fold(String::new(), |text, line| text + &line + "\n")
}

/// `Ta Tb Te Tf`, which is all that the program of the papers keeps.
#[test]
fn radclock_stamps_give_the_clock_of_the_csv() {
    let world = worlds::of("losses").unwrap();
    let stamps = lines(&world, |row| {
        let reply = row.reply.as_ref()?;
        let times = [reply.server_in, reply.server_out].map(decimal);
        Some(format!("{} {} {} {}", row.sent, times[0], times[1], reply.received))
    });
    let wanted = replayed("losses.csv", &world.csv(), "2994374000");
    assert!(wanted.len() > 500);
    assert_eq!(replayed("losses.radclock", &stamps, "2994374000"), wanted);
}

/// ntpd's clock is UTC, so the counter is one of 1 GHz that shows TAI in nanoseconds. Here it is right, and all four
/// stamps are exact multiples of 2^-9 s, so that a CSV can hold the same values.
#[test]
fn rawstats_give_the_clock_of_a_csv_with_the_same_values() {
    let mut raw = String::new();
    let mut csv = String::from("Ta,Tb,Te,Tf,server,root_distance\n");
    // 2^-24 s of precision, 2^-6 s of root delay, and 2^-7 s of root dispersion.
    let distance = "0.015625059604644775";
    for number in 0..300i128 {
        let second = 1_795_219_200 + number * 64;
        let forward = 1_953_125 * (2 + number * 7 % 5);
        let backward = 1_953_125 * (3 + number * 11 % 7);
        let times = [0, forward, forward + 1_953_125, forward + backward + 1_953_125];
        let ntp = times.map(|time| format!("{}.{time:09}", second + NTP_EPOCH));
        let (day, moment) = (second / 86_400 + 40_587, second % 86_400);
        let origin = format!("{day} {moment}.000 192.0.2.1 10.0.0.1");
        let [sent, server_in, server_out, received] = &ntp;
        let tail = "0 4 4 1 6 -24 0.015625 0.0078125 GPS 0";
        let _ = writeln!(raw, "{origin} {sent} {server_in} {server_out} {received} {tail}");
        let counter = |time: i128| (second + TAI_AHEAD) * 1_000_000_000 + time;
        let server = |time: i128| format!("{second}.{time:09}");
        let ticks = [counter(times[0]), counter(times[3])];
        let stamps = format!("{},{},{},{}", ticks[0], server(times[1]), server(times[2]), ticks[1]);
        let _ = writeln!(csv, "{stamps},192.0.2.1,{distance}");
    }
    let wanted = replayed("raw.csv", &csv, "1e9");
    assert_eq!(wanted.len(), 301);
    assert_eq!(replayed("rawstats", &raw, "1e9"), wanted);
}
