use super::*;
use crate::algorithm::RoundSwitch;
use std::path::PathBuf;

fn simulation(text: &str, seed: u64) -> Simulation {
    Simulation::new(&Spec::parse(text).unwrap(), Path::new("."), seed).unwrap()
}

fn outcome(text: &str, seed: u64) -> SimulationOutcome {
    simulation(text, seed).run(&mut Unobserved, &mut |_| ()).unwrap()
}

/// Keeps everything.
#[derive(Default, PartialEq, Debug)]
struct Everything {
    broadcasts: Vec<(u32, u64, u64)>,
    perceived: Vec<Perceived>,
    switches: Vec<(u32, RoundSwitch, u64)>,
}

impl Observer for Everything {
    fn broadcast(&mut self, process: u32, round: u64, at: u64) {
        self.broadcasts.push((process, round, at));
    }
    fn perceived(&mut self, perceived: &Perceived) {
        self.perceived.push(*perceived);
    }
    fn switched(&mut self, process: u32, switch: &RoundSwitch, at: u64) {
        self.switches.push((process, *switch, at));
    }
    fn until_now(&mut self, _: u64) {}
}

fn everything(text: &str, seed: u64) -> Everything {
    let mut everything = Everything::default();
    simulation(text, seed).run(&mut everything, &mut |_| ()).unwrap();
    everything
}

#[test]
fn without_faults_everybody_comes_to_the_end() {
    for (n, f) in [(1u32, 0), (4, 1), (7, 2), (16, 5)] {
        let outcome = outcome(&format!("n = {n}\nf = {f}\nrounds = 200"), 1);
        assert_eq!(outcome.unfinished, [0u32; 0], "{outcome:?}");
        assert_eq!(outcome.perceived, u64::from(n) * u64::from(n) * 200, "each round, from each to each");
        assert_eq!(outcome.sent, outcome.perceived);
        assert_eq!(outcome.greatest_round, 201);
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    let text = "rounds = 50\n[load]\npattern = \"random\"\nhigh = 0.7\ncorrelation = 0.5";
    assert_eq!(everything(text, 3), everything(text, 3));
    assert_ne!(everything(text, 3), everything(text, 4));
}

/// Constant links of 100 us, no service, no spread: every round takes 100 us, and with D = 1 ms 1.1 ms.
#[test]
fn rounds_take_as_long_as_their_messages_and_the_delay() {
    let text = "rounds = 10\nstart_spread = \"0 s\"\nself_reception = { kind = \"constant\", value = \"100 us\" }
        delay = \"1 ms\"
        [link]\nlaw = { kind = \"constant\", value = \"100 us\" }
        [receiver]\nservice = { kind = \"constant\", value = \"0 s\" }";
    let run = everything(text, 1);
    let times: Vec<u64> = run.broadcasts.iter().filter(|(process, ..)| *process == 2).map(|b| b.2).collect();
    assert_eq!(times, (0..10).map(|round| round * 1_100_000_000).collect::<Vec<_>>());
    assert!(run.switches.iter().all(|(_, switch, at)| at - switch.decided == 1_000_000_000));
}

/// Constant links, five messages at once, a service of 7 us each: they are processed one after the other.
#[test]
fn messages_wait_at_their_receiver() {
    let text =
        "n = 5\nf = 0\nrounds = 1\nstart_spread = \"0 s\"\nself_reception = { kind = \"constant\", value = \"50 us\" }
        [link]\nlaw = { kind = \"constant\", value = \"50 us\" }
        [receiver]\nservice = { kind = \"constant\", value = \"7 us\" }";
    let run = everything(text, 1);
    let at: Vec<u64> = run.perceived.iter().filter(|p| p.process == 3).map(|p| p.at).collect();
    assert_eq!(at, [57_000_000, 64_000_000, 71_000_000, 78_000_000, 85_000_000]);
}

#[test]
fn upward_links_are_slower() {
    let run = everything("rounds = 100\n[link]\nupward = 4.0\nlaw = { kind = \"constant\", value = \"10 us\" }", 1);
    let sent = |sender, round| run.broadcasts.iter().find(|b| (b.0, b.1) == (sender, round)).map(|b| b.2);
    for message in run.perceived.iter().filter(|p| p.process != p.sender) {
        let delay = message.came_at - sent(message.sender, message.round).unwrap();
        assert_eq!(delay, if message.process > message.sender { 40_000_000 } else { 10_000_000 });
    }
}

/// With at most f faulty processes nothing stops the others, and no message of a correct process is lost.
#[test]
fn faulty_processes_do_not_stop_the_others() {
    for (kind, more) in [
        ("crash", "from = \"5 ms\""),
        ("silence", ""),
        ("late-start", "from = \"3 ms\""),
        ("two-faced", ""),
        ("early-messages", ""),
        ("replay", ""),
        ("duplicate-identity", ""),
    ] {
        let text = format!("rounds = 300\n[[fault]]\nkind = \"{kind}\"\nprocess = 2\n{more}");
        for seed in 0..20 {
            let outcome = outcome(&text, seed);
            assert_eq!(outcome.unfinished, [0u32; 0], "{kind} {seed}: {outcome:?}");
        }
    }
}

/// Duplicates and bounded holds stop no process. Losses may, and the outcome names the processes that stand still.
#[test]
fn faults_of_links_are_counted() {
    let run = |fault: &str| outcome(&format!("rounds = 300\n{fault}"), 1);
    let duplicated = run("[[fault]]\nkind = \"link-duplication\"\nprobability = 0.3");
    assert!(duplicated.duplicated > 500 && duplicated.unfinished.is_empty(), "{duplicated:?}");
    assert_eq!(duplicated.perceived, duplicated.sent + duplicated.duplicated);
    let held = run("[[fault]]\nkind = \"link-hold\"\nhold = \"2 ms\"\nprobability = 0.1");
    assert!(held.held > 200 && held.unfinished.is_empty(), "{held:?}");
    let lost = run("[[fault]]\nkind = \"link-loss\"\nprobability = 0.5\nuntil = \"4 ms\"");
    assert_eq!(lost.perceived, lost.sent - lost.lost);
    assert!(!lost.unfinished.is_empty(), "{lost:?}");
    let cut = run("[[fault]]\nkind = \"partition\"\ngroup = [0, 1]\nfrom = \"2 ms\"\nuntil = \"9 ms\"");
    assert!(cut.unfinished.is_empty() && cut.held > 0 && cut.end_ps > 9_000_000_000, "{cut:?}");
}

#[test]
fn a_slow_host_is_slow() {
    let slow = "rounds = 300\n[[fault]]\nkind = \"slow-host\"\nhost = 1\nfactor = 200.0";
    let (slow, fast) = (everything(slow, 1), everything("rounds = 300", 1));
    let longest = |run: &Everything| run.perceived.iter().filter(|p| p.process == 1).map(|p| p.at - p.came_at).max();
    assert!(longest(&slow) > longest(&fast).map(|fast| 50 * fast));
}

/// The printed form stops under two-faced processes from f = 2 on; the repaired one never.
#[test]
fn two_faces_stop_the_printed_form() {
    let faults = "[[fault]]\nkind = \"two-faced\"\nprocess = 5\n[[fault]]\nkind = \"two-faced\"\nprocess = 6";
    let stopped = |form: &str| {
        let text = format!(
            "n = 7\nf = 2\nrounds = 100\nform = \"{form}\"\n[link]
            law = {{ kind = \"pareto\", min = \"10 us\", scale = \"10 us\", alpha = 1.0 }}\n{faults}"
        );
        (0..100).filter(|&seed| !outcome(&text, seed).unfinished.is_empty()).count()
    };
    assert_eq!(stopped("repaired"), 0);
    assert!(stopped("printed") > 0);
}

#[test]
fn load_lengthens_the_delays() {
    let mean = |text: &str| {
        let run = outcome(&format!("rounds = 500\n{text}"), 1);
        run.end_ps / 500
    };
    let idle = mean("");
    for kind in ["network", "processor", "both"] {
        assert!(mean(&format!("[load]\nkind = \"{kind}\"\nhigh = 0.9")) > idle * 3 / 2, "{kind}");
    }
    assert!(mean("[receiver]\npolling_from = 0.0\npolling_period = \"1 ms\"") > 8 * idle);
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    for (text, part) in [
        ("n = 6\nf = 2", "at least 3f + 1 = 7"),
        ("m = 4", "unknown field `m`"),
        ("delay = \"5\"", "unit"),
        ("delay = \"-1 s\"", "between 0 s and 1000 s"),
        ("hosts = 9", "between 1 and n"),
        ("[link]\nupward = 0.0", "link.upward"),
        ("[link]\nlaw = { kind = \"pareto\", min = \"0 s\", scale = \"1 us\", alpha = -1.0 }", "link.law: alpha"),
        ("[link]\nlaw = { kind = \"empirical\", file = \"no-such-file\" }", "no-such-file"),
        ("[load]\nhigh = 1.5", "load.high"),
        ("[clock]\nhertz = 0.0", "clock.hertz"),
        ("[[fault]]\nkind = \"crash\"", "fault 1 (Crash): the key process is missing"),
        ("[[fault]]\nkind = \"crash\"\nprocess = 4", "there is no process 4"),
        ("[[fault]]\nkind = \"crash\"\nprocess = 1\nhold = \"1 s\"", "the key hold means nothing here"),
        ("[[fault]]\nkind = \"crash\"\nprocess = 1\nfrom = \"2 s\"\nuntil = \"1 s\"", "ends before it begins"),
        ("[[fault]]\nkind = \"partition\"\ngroup = [9]\nuntil = \"1 s\"", "there is no process 9"),
        ("[[fault]]\nkind = \"partition\"\ngroup = [1]", "until is missing"),
        ("[[fault]]\nkind = \"hunger\"", "hunger"),
    ] {
        let made = Spec::parse(text).and_then(|spec| Simulation::new(&spec, Path::new("."), 1).map(|_| ()));
        let message = made.expect_err(text).to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

/// A directory of its own below the test's, taken away at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ffclock-simulate-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_log_holds_the_run_in_the_order_of_time() {
    use crate::log::{LogReader, WayInColumns};
    use crate::record::Event;
    let place = Place::new("log");
    let text = "rounds = 100\ndelay = \"200 us\"\n[clock]\nbound = \"1 us\"";
    let outcome = simulation(text, 1).run_to_log(&place.0.join("run"), &mut |_| ()).unwrap();
    let log = LogReader::open(&place.0.join("run")).unwrap();
    assert_eq!(log.damage(), [""; 0]);
    assert!(log.clocks().len() >= 8 && log.truth().len() == 4);
    let (mut rows, mut last) = (0, vec![0; 4]);
    let mut check = |event: &Event| {
        let process = event.process().index();
        assert!(event.at().raw() >= last[process], "{event:?}");
        last[process] = event.at().raw();
        rows += 1;
        Ok(())
    };
    assert_eq!(log.streams().len(), 1);
    log.each_event(WayInColumns::Read, |error| error, &mut check).unwrap();
    assert_eq!(rows, outcome.perceived + outcome.switches + 4 * 100);
}

#[test]
fn recorded_delays_are_drawn_again() {
    let place = Place::new("recorded");
    std::fs::write(place.0.join("delays.txt"), "# a run\n40 us\n\n50 us\n").unwrap();
    let spec = Spec::parse("rounds = 20\n[link]\nlaw = { kind = \"empirical\", file = \"delays.txt\" }").unwrap();
    let mut run = Everything::default();
    Simulation::new(&spec, &place.0, 1).unwrap().run(&mut run, &mut |_| ()).unwrap();
    let sent = |p: &Perceived| run.broadcasts.iter().find(|b| (b.0, b.1) == (p.sender, p.round)).map(|b| b.2).unwrap();
    let delays: std::collections::BTreeSet<u64> =
        run.perceived.iter().filter(|p| p.process != p.sender).map(|p| p.came_at - sent(p)).collect();
    assert_eq!(delays.into_iter().collect::<Vec<_>>(), [40_000_000, 50_000_000]);
    std::fs::write(place.0.join("delays.txt"), "40 us\nfish\n").unwrap();
    let message = Simulation::new(&spec, &place.0, 1).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("line 2"), "{message}");
}

/// Delays of a log are drawn again: here all are 30 us, but for the ticks of two counters.
#[test]
fn a_recorded_run_is_drawn_from() {
    let place = Place::new("replay");
    let text = "rounds = 50\n[link]\nlaw = { kind = \"constant\", value = \"30 us\" }";
    simulation(text, 1).run_to_log(&place.0.join("run"), &mut |_| ()).unwrap();
    let delays = recorded::delays(&place.0.join("run")).unwrap();
    assert_eq!(delays.len(), 4 * 3 * 50);
    assert!(delays.iter().all(|&delay| delay.abs_diff(30_000_000) < 1_000), "{delays:?}");
    assert!(recorded::delays(&place.0).unwrap_err().contains("run.json"));
}
