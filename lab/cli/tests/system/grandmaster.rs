//! ffclockd follows the grandmaster of ffclock-serve over a pair of devices, by multicast and by unicast. The page that
//! is served is written by the test, which knows the truth; the follower must hold it, and see what the page is worth.

use super::hosts::{Other, Process, is_on_own_host};
use super::{fresh_directory, programs};
use ffclock::Clock;
use ffclock_counter::{CounterId, boot_id, read_ordered};
use ffclock_page::{BootId, Publication, VoteCounts, VotedPart, Writer};
use ffclock_sys::SharedPage;
use ffclock_units::{
    Bound, ClockError, Counter, CounterEpoch, Estimate, GrowingBound, GrowthRate, LeapTable, Moment, Period, Rate,
    ServerIdentity, Span, StandardUncertainty, Status, Tai, Ticks,
};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const COUNTER: CounterId = CounterId::MonotonicRaw;
/// The served page is right within this while it is synchronised, and in holdover.
const LOCKED: Span = Span::from_micros(40);
const HELD: Span = Span::from_micros(700);
const LOOKS: usize = 20;

/// The page of the grandmaster: the system clock at the start, and the counter since, which is the truth here.
struct TruePage {
    origin: Counter,
    tai: Moment<Tai>,
    writer: Writer<SharedPage>,
}

impl TruePage {
    fn create(path: &Path) -> Self {
        let (utc, origin) = (ffclock_sys::system_utc_now(), read_ordered(COUNTER));
        let writer = Writer::open(SharedPage::create(path).unwrap(), BootId::parse(&boot_id()));
        TruePage { origin, tai: LeapTable::built_in().tai_from_utc(utc), writer }
    }

    fn tai_at(&self, counter: Counter) -> Moment<Tai> {
        self.tai + Span::from_nanos((counter - self.origin).raw().into())
    }

    fn publish(&mut self, status: Status, bound: Span, valid_for: Span) {
        let counter = read_ordered(COUNTER);
        let (time, period) = (self.tai_at(counter), Period::from_seconds(1e-9).unwrap());
        // The truth is a line over the counter, so that the bound hardly grows, however slow the machine is.
        let (uncertainty, growth) = (StandardUncertainty::of(bound.halved()), GrowthRate::of(Rate::from_ppm(0.001)));
        let estimate = Estimate {
            counter,
            time,
            period,
            uncertainty,
            noise: uncertainty,
            uncertainty_growth: growth,
            bound: Bound::of(bound),
            bound_growth: growth,
            difference_period: period,
            difference_bound: growth,
            difference_uncertainty: growth,
            status,
        };
        let publication = Publication {
            counter_id: COUNTER,
            epoch: CounterEpoch::from_raw(1),
            epoch_begin: Counter::from_raw(0),
            estimate,
            leap: LeapTable::built_in().step_around(time),
            valid_until: counter + Ticks::from_raw(valid_for.as_nanos() as i64),
            server: Some(ServerIdentity { stratum: 1, reference_id: 0x4750_5300 }),
        };
        let strict = GrowingBound { bound: Bound::of(bound), growth };
        let counts = VoteCounts { deciders: 3, tolerated: 1, believed: 3 };
        self.writer.publish_voted(&publication, &VotedPart { strict, counts });
    }
}

/// A grandmaster on this host and a follower on the other one.
struct Following {
    directory: PathBuf,
    page: TruePage,
    _other: Other,
    _programs: [Process; 2],
}

impl Following {
    /// With these keys of the grandmaster, and of the follower's server.
    fn start(name: &str, served: &str, followed: &str) -> Self {
        let directory = fresh_directory(name);
        let here = directory.display();
        let mut page = TruePage::create(&directory.join("served"));
        page.publish(Status::Synchronised, LOCKED, Span::from_secs(3600));
        let other = Other::join();
        let serve = format!(
            "page = \"{here}/served\"\ndaemon = \"off\"\ncontrol = \"off\"\nlisten = [\"127.0.0.1:0\"]\n[ptp]\n\
             interfaces = [\"ours0\"]\nannounce_interval = \"500 ms\"\nsync_interval = \"125 ms\"\n\
             delay_interval = \"125 ms\"\n{served}"
        );
        let follow = format!(
            "counter = \"monotonic-raw\"\npage = \"{here}/page\"\ncontrol = \"{here}/control\"\nstate = \"off\"\n\
             [[server]]\nprotocol = \"ptp\"\n{followed}"
        );
        let program = |name: &str| programs::directory().join(name).display().to_string();
        let commands = [
            (Command::new(program("ffclock-serve")), "serve", serve),
            (other.command(&program("ffclockd")), "follower", follow),
        ];
        let _programs = commands.map(|(mut command, name, configuration)| {
            let file = directory.join(name).with_extension("toml");
            fs::write(&file, configuration).unwrap();
            command.arg("--config").arg(file).stderr(File::create(directory.join(name).with_extension("log")).unwrap());
            Process::start(command, Stdio::null())
        });
        Following { directory, page, _other: other, _programs }
    }

    fn status(&self) -> Value {
        let mut command = Command::new(programs::directory().join("ffclock"));
        let said =
            command.args(["status", "--json", "--control"]).arg(self.directory.join("control")).output().unwrap();
        serde_json::from_slice(&said.stdout).unwrap_or(Value::Null)
    }

    /// The follower's status once it is as wanted.
    fn wait_for(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if is_wanted(&status) {
                return status;
            }
            let log = |name: &str| fs::read_to_string(self.directory.join(name)).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "{what}: {status:#}\n{}\n{}", log("serve.log"), log("follower.log"));
            sleep(Duration::from_millis(100));
        }
    }

    /// The truth lies within the bound of the follower's page. The bound need not follow what the grandmaster claims:
    /// what was proven with an earlier, smaller claim still is.
    fn holds_the_truth(&self) {
        let clock = Clock::open_at(&self.directory.join("page")).unwrap();
        let bounds = (0..LOOKS).map(|_| {
            sleep(Duration::from_millis(50));
            let counter = read_ordered(COUNTER);
            let reading = clock.snapshot().unwrap().reading_at(counter).unwrap();
            let error = reading.time - LeapTable::built_in().utc_from_tai(self.page.tai_at(counter));
            assert!(reading.bound.contains(ClockError::new(error)), "error {error}, bound {}", reading.bound);
            (reading.bound.as_span(), error)
        });
        let (bound, error) = bounds.max_by_key(|(bound, _)| *bound).unwrap();
        println!("figure: error {error}, bound {bound}");
    }

    /// The clock is synchronised, and its bound holds the truth.
    fn follows(&mut self) {
        let status = self.wait_for("a synchronised clock", |status| {
            status["clock"]["status"] == "synchronised" && class_is(status, 6)
        });
        assert!((40e-6..=250e-6).contains(&claim(&status)), "{status:#}");
        self.holds_the_truth();
    }

    fn sees_what_the_page_is_worth(&mut self) {
        let status_is = |status: &Value, wanted: &str| status["clock"]["status"] == wanted;
        self.follows();

        self.page.publish(Status::Holdover, HELD, Span::from_secs(3600));
        let is_held = |status: &Value| class_is(status, 7) && claim(status) >= HELD.as_seconds();
        self.wait_for("the grandmaster's holdover", is_held);
        self.holds_the_truth();

        self.page.publish(Status::Holdover, HELD, Span::from_millis(300));
        self.wait_for("holdover without a master", |status| {
            status_is(status, "holdover") && status["sources"][0]["ptp"]["clock_class"].is_null()
        });
        self.holds_the_truth();

        self.page.publish(Status::Synchronised, LOCKED, Span::from_secs(3600));
        self.wait_for("the grandmaster again", |status| status_is(status, "synchronised") && class_is(status, 6));
        self.holds_the_truth();
    }
}

fn class_is(status: &Value, class: u64) -> bool {
    status["sources"][0]["ptp"]["clock_class"] == class
}

/// The largest error that the master claims of itself [s].
fn claim(status: &Value) -> f64 {
    status["sources"][0]["root_distance_s"].as_f64().unwrap_or(f64::NAN)
}

/// Whether the test goes on, on a host of its own; the programs are built before it has one.
fn is_here(test: &str) -> bool {
    programs::directory();
    is_on_own_host(test)
}

#[test]
fn by_multicast_a_follower_holds_the_truth_and_sees_what_the_page_is_worth() {
    let test = "grandmaster::by_multicast_a_follower_holds_the_truth_and_sees_what_the_page_is_worth";
    if !is_here(test) {
        return;
    }
    Following::start("grandmaster-multicast", "", "interface = \"theirs0\"\n").sees_what_the_page_is_worth();
}

#[test]
fn by_unicast_a_follower_holds_the_truth_and_sees_what_the_page_is_worth() {
    let test = "grandmaster::by_unicast_a_follower_holds_the_truth_and_sees_what_the_page_is_worth";
    if !is_here(test) {
        return;
    }
    let asked = "address = \"10.81.0.1\"\nsync_interval = \"125 ms\"\nannounce_interval = \"500 ms\"\n";
    Following::start("grandmaster-unicast", "multicast = false\nunicast_grants = 3\n", asked)
        .sees_what_the_page_is_worth();
}

#[test]
fn a_follower_that_measures_the_link_in_frames_holds_the_truth() {
    if !is_here("grandmaster::a_follower_that_measures_the_link_in_frames_holds_the_truth") {
        return;
    }
    let asked = "interface = \"theirs0\"\ntransport = \"ethernet\"\ndelay_mechanism = \"peer\"\n";
    Following::start("grandmaster-frames", "family = \"ethernet\"\n", asked).follows();
}
