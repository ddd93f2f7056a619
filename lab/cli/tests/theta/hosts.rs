//! Hosts that are compared by their pages: the truth within the bounds, and liars named.

use crate::common::{FFCLOCK_LAB, Place, analyse, events, has, has_namespaces, json, run_four};
use ffclock_counter::{Choice, choose, nominal, read_ordered};
use ffclock_page::{BootId, Publication, Writer};
use ffclock_sys::SharedPage;
use ffclock_theta::analysis::{Ratio, SwitchStamping};
use ffclock_theta::certified::{CertifyOptions, certify_events};
use ffclock_theta::log::{LogReader, WayInColumns};
use ffclock_theta::record::{ClockSample, HostId};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapTable, Moment, Period, Rate, Span, StandardUncertainty,
    Status, Tai, Ticks, Utc,
};
use std::path::Path;
use std::process::Command;

/// All hosts read one counter, so what it shows is the truth, and each page errs from it by the amount that the test
/// chooses.
struct Pages {
    begun: Counter,
    period: Period,
    writers: Vec<Writer<SharedPage>>,
    paths: Vec<String>,
}

impl Pages {
    /// A page for each error, all with a bound of 50 us.
    fn new(place: &Place, errors_us: &[i64]) -> Self {
        let kind = choose(Choice::Auto).kind;
        let boot = BootId::parse(&ffclock_counter::boot_id());
        let paths: Vec<String> =
            (0..errors_us.len()).map(|host| place.0.join(format!("page{host}")).display().to_string()).collect();
        let writer = |path: &String| Writer::open(SharedPage::create(Path::new(path)).expect("works in a test"), boot);
        let mut pages = Pages {
            begun: read_ordered(kind),
            period: nominal(kind).expect("works in a test").period,
            writers: paths.iter().map(writer).collect(),
            paths,
        };
        (0..errors_us.len()).for_each(|host| pages.publish(host, errors_us[host]));
        pages
    }

    fn publish(&mut self, host: usize, error_us: i64) {
        let kind = choose(Choice::Auto).kind;
        let counter = read_ordered(kind);
        let begin: Moment<Tai> =
            LeapTable::built_in().tai_from_utc(Moment::<Utc>::from_origin(Span::from_secs(1_795_253_400)));
        let time = begin + self.period * (counter - self.begun) + Span::from_micros(error_us);
        let estimate = Estimate {
            counter,
            time,
            period: self.period,
            uncertainty: StandardUncertainty::of(Span::from_micros(20)),
            noise: StandardUncertainty::of(Span::from_micros(10)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(10.0)),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: GrowthRate::of(Rate::from_ppb(50.0)),
            difference_period: self.period,
            difference_bound: GrowthRate::of(Rate::from_ppb(50.0)),
            difference_uncertainty: GrowthRate::of(Rate::from_ppb(5.0)),
            status: Status::Synchronised,
        };
        self.writers[host].publish(&Publication {
            counter_id: kind,
            epoch: CounterEpoch::from_raw(3),
            epoch_begin: Counter::from_raw(0),
            estimate,
            leap: LeapTable::built_in().step_around(time),
            valid_until: counter + Ticks::from_raw(4_000_000_000_000),
            server: None,
        });
    }
}

/// Omega over first switches as it was: the counter is every host's clock.
pub fn truth(log: &str) -> f64 {
    let log = LogReader::open(Path::new(log)).expect("works in a test");
    let sample = |host: usize| ClockSample {
        host: HostId(host as u32),
        bound_ps: 0,
        drift_bound: Rate::ZERO,
        ..log.clocks()[0]
    };
    let clocks: Vec<_> = (0..log.run().hosts.len()).map(sample).collect();
    let events = events(&log, WayInColumns::Skip);
    let options = CertifyOptions { stamping: SwitchStamping::AfterBroadcast, ..CertifyOptions::default() };
    let bounds = certify_events(log.run(), &clocks, &events, &options).expect("the counter does not lie").first;
    let bounds = bounds.expect("there are switches");
    assert!(bounds.high.as_f64() / bounds.low.as_f64() < 1.001, "{bounds:?}");
    Ratio::as_f64(bounds.high)
}

/// The bounds hold the truth, and messages make them tighter than the pages alone do.
fn judge_bounds(log: &str) {
    let (is_well, report, said) = analyse(log, &["--certify"]);
    let certified = &report["certified"];
    let bound = |side: &str| certified["first"][side]["value"].as_f64().unwrap_or_else(|| panic!("{report} {said}"));
    let truth = truth(log);
    assert!(bound("low") <= truth * 1.001 && truth <= bound("high") * 1.001, "{truth}: {certified}");
    assert!(bound("low") < bound("high"), "{certified}");
    // Two pages of +- 50 us know their difference to +- 100 us.
    assert!(certified["half_width_max_ps"].as_i64() < Some(99_000_000), "{certified}");
    // Clocks that err put some messages before their sending, which is no lie as long as the bounds allow it.
    assert!(is_well || said.contains("partial"), "{said}");
}

#[test]
fn bounds_from_pages_hold_the_truth() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("pages");
    let pages = Pages::new(&place, &[40, -35, 10, -45]);
    let (output, run) = run_four("paged", 300, &["--pages", &pages.paths.join(",")]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(json(&output)["failures"], serde_json::json!([]));
    judge_bounds(&run.log());
}

/// No corrections within the bounds put what host 2 received after its sending.
#[test]
fn a_page_that_lies_is_named() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("liar");
    let pages = Pages::new(&place, &[40, -35, -60_000, -45]);
    let (output, run) = run_four("lied", 200, &["--pages", &pages.paths.join(",")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let failures = json(&output)["failures"].to_string();
    assert!(failures.contains("the clock of host host2 broke its bound"), "{failures}");
    let (is_well, report, said) = analyse(&run.log(), &["--certify"]);
    assert!(!is_well && said.contains("the clock of host host2 broke its bound"), "{said}");
    assert_eq!((&report["whole"], &report["certified"]), (&serde_json::json!(false), &serde_json::Value::Null));
}

/// A daemon that steps beyond its bound contradicts itself.
#[test]
fn a_page_that_steps_during_the_run_is_named() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("stepper");
    let mut pages = Pages::new(&place, &[0, 0, 0, 0]);
    let words = pages.paths.join(",");
    let run = std::thread::spawn(move || run_four("stepped", 2000, &["--pages", &words]));
    // Namespaces take their time; rounds take two seconds and more.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    pages.publish(3, 900);
    let (output, _place) = run.join().expect("works in a test");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let failures = json(&output)["failures"].to_string();
    assert!(failures.contains("the clock of host host3 broke its bound"), "{failures}");
}

#[test]
fn a_page_that_is_not_there_is_named() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("absent");
    let pages = Pages::new(&place, &[0, 0, 0]);
    let words = format!("{},{}", pages.paths.join(","), place.0.join("none").display());
    let (output, _run) = run_four("absence", 10, &["--patience", "3 s", "--pages", &words]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("none") && said.contains("missing: [3]"), "{said}");
}

/// `mpirun` starts the ranks, each enters the namespace that plays its host, and the hosts are compared by their pages.
#[test]
fn mpirun_over_namespaces_with_pages() {
    if !has_namespaces() || !has("mpirun") {
        return;
    }
    let place = Place::new("mpi-hosts");
    let pages = Pages::new(&place, &[20, -35, 40, -10]);
    let script = format!(
        r#"set -e
        ip link set lo up
        ip link add name hub type bridge && ip link set hub up
        for rank in 0 1 2 3; do
            unshare --net sleep 120 &
            eval "export HOLDER_$rank=$!"
            while [ "$(readlink /proc/$!/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
            ip link add name port$rank type veth peer name eth0 netns $!
            ip link set port$rank master hub up
            nsenter --target $! --net ip link set lo up
            nsenter --target $! --net ip address add 10.79.0.$((rank + 1))/24 dev eth0
            nsenter --target $! --net ip link set eth0 up
        done
        code=0
        mpirun --allow-run-as-root --oversubscribe --mca btl self --mca oob_tcp_if_include lo -n 4 sh -c '
            eval "holder=\$HOLDER_$OMPI_COMM_WORLD_RANK"
            exec nsenter --target $holder --net -- {FFCLOCK_LAB} --json --page {pages}/page$OMPI_COMM_WORLD_RANK theta rank \
                --host node$OMPI_COMM_WORLD_RANK --rendezvous 10.79.0.1:9217 --f 1 --rounds 300 --delay "1 ms" \
                --patience "60 s" --limit "60 s" --log {log}' || code=$?
        kill $HOLDER_0 $HOLDER_1 $HOLDER_2 $HOLDER_3
        exit $code"#,
        pages = place.0.display(),
        log = place.log()
    );
    let output = Command::new("timeout")
        .args([
            "-k",
            "5",
            "100",
            "unshare",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "bash",
            "-c",
            &script,
        ])
        .output()
        .expect("works in a test");
    drop(pages);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(json(&output)["failures"], serde_json::json!([]));
    let run = std::fs::read_to_string(Path::new(&place.log()).join("run.json")).expect("works in a test");
    assert!((0..4).all(|rank| run.contains(&format!("\"node{rank}\""))), "{run}");
    judge_bounds(&place.log());
}
