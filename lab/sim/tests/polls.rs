//! Polls that keep the noise: how many requests they take, and what they keep.

use ffclock_estimator::LearnedConfig;
use ffclock_sim::{Cast, Run, RunResult, Scenario, ShownReading, Sinks};

/// What a clock published, and the requests that it took.
struct Kept {
    requests_per_hour: f64,
    /// The 90th percentile of the published noise, and twice it over the 95th of the error, us.
    noise: f64,
    width: f64,
    result: RunResult,
}

fn percentile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(part * (values.len() - 1) as f64) as usize]
}

/// Requests are those of the whole run, so one without its start is as long again as the other.
fn run(scenario: &Scenario, clock: &str) -> Kept {
    let (mut noises, mut errors) = (Vec::new(), Vec::new());
    let mut note = |shown: &ShownReading<'_>| {
        if let Some(claims) = shown.claims.filter(|_| shown.at >= scenario.from.0) {
            noises.push(1e6 * claims.noise.as_seconds());
            errors.push(1e6 * shown.error.as_span().as_seconds().abs());
        }
    };
    let cast = Cast { clocks: &[clock], learned: &LearnedConfig::default() };
    let sinks = Sinks { rows: None, samples: Some(&mut note) };
    let result = Run { name: "polls", scenario, seed: 1 }.execute_as(&cast, sinks);
    let noise = percentile(noises, 0.9);
    let requests_per_hour = result.requests as f64 / (scenario.duration.seconds() / 3600.0);
    let kept = Kept { requests_per_hour, noise, width: 2.0 * noise / percentile(errors, 0.95), result };
    let each: Vec<u64> = kept.result.servers.iter().map(|server| server.requests).collect();
    println!(
        "{}: {:.1} requests an hour {each:?}, noise {:.2} us (90 %), {:.2} of the error",
        scenario.about, kept.requests_per_hour, kept.noise, kept.width
    );
    kept
}

fn scenario(about: &str, lines: &str) -> Scenario {
    let text = format!("extends = \"lan-16\"\nabout = \"{about}\"\nduration = \"16 h\"\nfrom = \"6 h\"\n{lines}");
    Scenario::parse(about, &text).expect("a scenario that reads")
}

#[test]
fn a_stated_noise_takes_a_fraction_of_the_requests_and_is_kept() {
    let fixed = run(&scenario("fixed 16 s", ""), "learned");
    for keep in [1.0, 2.0, 5.0] {
        let kept = run(&scenario("kept", &format!("keep_noise = \"{keep} us\"\n")), "learned");
        assert!(kept.noise < 1.25 * keep && kept.noise > 0.8 * keep, "{keep}: {}", kept.noise);
        assert!(kept.requests_per_hour < 0.5 * fixed.requests_per_hour, "{keep}: {}", kept.requests_per_hour);
        assert!(kept.width > 1.0, "the noise is true: {}", kept.width);
        assert_eq!(kept.result.clocks[0].windows[0].containment, Some(1.0));
    }
}

/// The same noise by a fixed poll, which must be found first, takes about as many.
#[test]
fn a_fixed_poll_that_keeps_as_much_takes_no_fewer_requests() {
    let kept = run(&scenario("kept", "keep_noise = \"2 us\"\n"), "learned");
    let fixed = |poll: i32| run(&scenario("fixed", &format!("poll = \"{poll} s\"\n")), "learned");
    let enough = [512, 384, 256, 192, 128, 96, 64, 32].into_iter().map(fixed).find(|run| run.noise <= kept.noise);
    let enough = enough.expect("some poll keeps it");
    assert!(kept.requests_per_hour < 1.2 * enough.requests_per_hour, "{}", enough.requests_per_hour);
}

#[test]
fn servers_of_little_weight_are_asked_less() {
    let far = "[[server]]\nname = \"near\"\n[[server]]\nname = \"far\"\ncount = 2\nroot_dispersion = \"5 ms\"\n\
               path = { forward = \"9 ms\", backward = \"9 ms\", queue = [{ mean = \"1 ms\" }] }\n";
    let kept = run(&scenario("near and far", &format!("keep_noise = \"2 us\"\n{far}")), "joint");
    let [near, one, other] = &kept.result.servers[..] else { panic!("three servers") };
    assert!(near.requests > 2 * one.requests && near.requests > 2 * other.requests, "{:?}", kept.result.servers);
    assert!(kept.noise < 2.5, "{}", kept.noise);
    let alike = run(&scenario("three alike", "keep_noise = \"2 us\"\n[[server]]\ncount = 3\n"), "joint");
    let requests: Vec<u64> = alike.result.servers.iter().map(|server| server.requests).collect();
    assert!(requests.iter().all(|one| one.abs_diff(requests[0]) * 4 < requests[0]), "{requests:?}");
}

/// A path that becomes longer, and a server that steps, in the middle of long polls.
#[test]
fn an_upset_brings_the_polls_back() {
    let lines = "keep_noise = \"5 us\"\n[[server]]\nname = \"a\"\n[[server]]\nname = \"b\"\n\
                 [[server]]\nname = \"liar\"\nfault = [{ wrong = { at = \"12 h\", by = \"20 ms\" } }]\n";
    let scenario = scenario("a step after 12 h", lines);
    let mut requests = [0, 0];
    let hour = |at: f64| (at / 3600.0) as usize;
    let mut begin = None;
    let mut count = |row: &ffclock_trace::TraceRow| {
        let Some(exchange) = row.exchange else { return };
        let begin = *begin.get_or_insert(exchange.server_in);
        match hour((exchange.server_in - begin).as_seconds()) {
            11 => requests[0] += 1,
            12 => requests[1] += 1,
            _ => {}
        }
    };
    Run { name: "polls", scenario: &scenario, seed: 1 }.execute_with(&[], Some(&mut count));
    let [before, after] = requests;
    println!("{before} exchanges in the hour before the step, {after} in the hour after it");
    assert!(after > 2 * before, "{before} then {after}");
}
