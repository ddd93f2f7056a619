//! The program, on a page whose time is known. Every run here is a dry one: this machine's clock is not touched.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::{BootId, Publication, VoteCounts, VotedPart, Writer};
use ffclock_sys::{SharedPage, system_utc_now};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowingBound, GrowthRate, LeapTable, Moment, Period, Rate, Span,
    StandardUncertainty, Status, Ticks,
};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The counter of the pages: it counts ns.
const COUNTER: CounterId = CounterId::MonotonicRaw;

/// A directory of its own, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("ffclock-steer-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Place(directory)
    }

    /// A page that is ahead of the system clock by this, with this status.
    fn page(&self, ahead: Span, status: Status) -> PathBuf {
        let path = self.0.join("page");
        let memory = SharedPage::create(&path).unwrap();
        let mut writer = Writer::open(memory, BootId::parse(&ffclock_counter::boot_id()));
        let counter = read_ordered(COUNTER);
        let time = LeapTable::built_in().tai_from_utc(Moment::from_origin(system_utc_now().since_origin() + ahead));
        let (period, growth) = (Period::from_seconds(1e-9).unwrap(), GrowthRate::of(Rate::from_ppm(1.0)));
        let uncertainty = StandardUncertainty::of(Span::from_micros(10));
        let bound = Bound::of(Span::from_micros(50));
        let estimate = Estimate {
            counter,
            time,
            period,
            uncertainty,
            noise: uncertainty,
            uncertainty_growth: growth,
            bound,
            bound_growth: growth,
            difference_period: period,
            difference_bound: growth,
            difference_uncertainty: growth,
            status,
        };
        let publication = Publication {
            counter_id: COUNTER,
            epoch: CounterEpoch::from_raw(3),
            epoch_begin: Counter::from_raw(0),
            estimate,
            leap: LeapTable::built_in().step_around(time),
            valid_until: counter + Ticks::from_raw(Span::from_secs(3600).as_nanos() as i64),
            server: None,
        };
        let counts = VoteCounts { deciders: 1, tolerated: 0, believed: 1 };
        writer.publish_voted(&publication, &VotedPart { strict: GrowingBound { bound, growth }, counts });
        path
    }

    fn configured(&self, lines: &str) -> Command {
        let path = self.0.join("steer.toml");
        std::fs::write(&path, lines).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ffclock-steer"));
        command.arg("--config").arg(path).env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_dry_run_shows_the_step_or_the_slew() {
    let place = Place::new("dry");
    let page = place.page(Span::from_secs(3), Status::Synchronised);
    let run = |lines: &str| {
        let output = place.configured(lines).args(["--dry-run", "--once", "--page"]).arg(&page).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        shown(&output)
    };
    let stepped = run("poll = \"200 ms\"\nstep_at_start = \"1 s\"\n");
    assert!(stepped.contains("the kernel's clock is stepped by +"), "{stepped}");
    let slewed = run("poll = \"200 ms\"\nslew_max = \"100 ppm\"\n");
    // The ticks of the page are those of the raw clock, so the frequency is the slew alone, but for the widths of two
    // brackets.
    let (_, frequency) = slewed.split_once("frequency +").unwrap();
    let (frequency, errors) = frequency.split_once(" ppm, largest error ").unwrap();
    assert!((frequency.parse::<f64>().unwrap() - 100.0).abs() < 10.0, "{slewed}");
    assert!(errors.starts_with("30000") && !slewed.contains("stepped"), "{slewed}");
}

#[test]
fn a_page_that_is_not_synchronised_is_waited_for_until_a_signal() {
    let place = Place::new("waits");
    let page = place.page(Span::ZERO, Status::WarmingUp);
    let mut command = place.configured("poll = \"100 ms\"\n");
    let child = command.args(["--dry-run", "--page"]).arg(&page).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("waiting: the page is warming-up"), "{line}");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_faulty_configuration_is_refused_with_its_line() {
    let place = Place::new("faulty");
    let output = place.configured("poll = \"1 s\"\nslew_mx = \"1 ppm\"\n").arg("--check-config").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("line 2") && said.contains("slew_max"), "{said}");
    let output = place.configured("poll = \"1 s\"\n").arg("--check-config").output().unwrap();
    assert!(output.status.success() && shown(&output).contains("no problem found"));
}
