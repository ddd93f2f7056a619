//! The program, on a page whose time is known. Every run here is a dry one: this machine's clock is not touched.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::{BootId, Publication, VoteCounts, VotedPart, Writer};
use ffclock_sys::{SharedPage, system_utc_now};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowingBound, GrowthRate, LeapTable, MachineMark, Moment, Period, Rate,
    Span, StandardUncertainty, Status, Ticks,
};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
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
        publish(&mut self.writer(), (ahead, status), 3);
        self.0.join("page")
    }

    fn writer(&self) -> Writer<SharedPage> {
        let memory = SharedPage::create(&self.0.join("page")).unwrap();
        Writer::open(memory, BootId::parse(&ffclock_counter::boot_id()))
    }

    /// A VMClock with this disruption marker.
    fn vm_clock(&self, marker: u8) -> PathBuf {
        let path = self.0.join("vmclock");
        let mut bytes = vec![0; 4096];
        bytes[..12].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0");
        bytes[16] = marker;
        // In place: the program has it mapped.
        let file = std::fs::File::options().write(true).create(true).truncate(false).open(&path).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
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

/// A time that is ahead of the system clock by this, with this status, in this epoch.
fn publish(writer: &mut Writer<SharedPage>, (ahead, status): (Span, Status), epoch: u64) {
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
        epoch: CounterEpoch::from_raw(epoch),
        epoch_begin: Counter::from_raw(0),
        estimate,
        leap: LeapTable::built_in().step_around(time),
        valid_until: counter + Ticks::from_raw(Span::from_secs(3600).as_nanos() as i64),
        server: None,
    };
    let counts = VoteCounts { deciders: 1, tolerated: 0, believed: 1 };
    writer.publish_voted(&publication, &VotedPart { strict: GrowingBound { bound, growth }, counts });
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
    assert!(stepped.starts_with("dry run: "), "{stepped}");
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

/// A guest is restored an hour later: the page is refused from the host's mark on, and the next one is stepped to.
#[test]
fn a_restored_machine_is_a_new_start() {
    let place = Place::new("restored");
    let vm_clock = place.vm_clock(7);
    let mut writer = place.writer();
    writer.show_machine(Some(MachineMark::of_disruption(7)));
    publish(&mut writer, (Span::ZERO, Status::Synchronised), 3);
    let mut command = place.configured("poll = \"100 ms\"\nstep_at_start = \"100 s\"\n");
    command.args(["--dry-run", "--page"]).arg(place.0.join("page")).env("FFCLOCK_VMCLOCK", vm_clock);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |words: &str| lines.by_ref().take(600).take_while(|line| !line.contains(words)).collect::<Vec<_>>();
    until("is called synchronised");
    place.vm_clock(8);
    let seen = until("restored, migrated or copied");
    assert!(seen.iter().all(|line| line.contains("synchronised, frequency")), "{seen:?}");
    // Its daemon has noticed, and has asked its servers.
    writer.show_machine(Some(MachineMark::of_disruption(8)));
    publish(&mut writer, (Span::from_secs(3600), Status::Synchronised), 4);
    let seen = until("the kernel's clock is stepped by +3");
    assert!(seen.iter().all(|line| line.contains("the kernel's clock is taken")), "{seen:?}");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    assert!(!rest.iter().any(|line| line.contains("restored")), "{rest:?}");
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
