//! That worlds which cannot be are refused, with the key that is wrong.

use ffclock_sim::Scenario;

/// What a scenario with these lines is refused for.
fn complaint(lines: &str) -> String {
    let text = format!("about = \"x\"\n{lines}\n");
    Scenario::parse("wrong", &text).map_or_else(|error| error.to_string(), |_| "it is accepted".to_owned())
}

fn refused(cases: &[(&str, &str)], place: impl Fn(&str) -> String) {
    for (line, key) in cases {
        let why = complaint(&place(line));
        assert!(why.contains(key), "{line}: {why}");
    }
}

const PATH: &str = "[path]\nforward = \"100 us\"\nbackward = \"100 us\"\n";

#[test]
fn a_way_that_takes_less_than_no_time_is_refused() {
    let on_the_path = |line: &str| format!("{PATH}{line}");
    refused(
        &[
            ("route = [{ at = \"1 h\", forward = \"-100 us\" }]", "path.route[0].forward"),
            ("route = [{ at = \"1 h\", backward = \"-200 us\" }]", "path.route[0].backward"),
            // Each of these alone leaves a way.
            (
                "route = [{ at = \"2 h\", forward = \"-60 us\" }, { at = \"1 h\", until = \"3 h\", forward = \"-60 us\" }]",
                "path.route[0].forward",
            ),
            ("flap = { share = 0.5, forward = \"-150 us\", backward = \"0 s\" }", "path.flap.forward"),
            ("flap = { share = 0.5, forward = \"0 s\", backward = \"-150 us\" }", "path.flap.backward"),
            (
                "route = [{ at = \"1 h\", forward = \"-60 us\" }]\nflap = { share = 0.5, forward = \"-60 us\", backward = \"0 s\" }",
                "path.flap.forward",
            ),
        ],
        on_the_path,
    );
    refused(&[("forward = \"0 s\"", "path.forward")], |line| format!("[path]\n{line}\nbackward = \"1 us\""));
    let before =
        Scenario::parse("x", "extends = \"lan-16\"\n[path]\nroute = [{ at = \"1 h\", forward = \"-900 us\" }]");
    assert!(before.is_err_and(|error| error.to_string().contains("path.route[0].forward")));
    // Routes that follow one another do not add up.
    let after =
        "route = [{ at = \"1 h\", until = \"2 h\", forward = \"-60 us\" }, { at = \"2 h\", forward = \"-60 us\" }]";
    assert_eq!(complaint(&on_the_path(after)), "it is accepted");
}

#[test]
fn shares_periods_and_pieces_of_time_of_a_path_make_sense() {
    refused(
        &[
            ("loss = nan", "path.loss"),
            ("straggle = -0.1", "path.straggle"),
            ("flap = { share = 1.5, forward = \"1 us\", backward = \"1 us\" }", "path.flap.share"),
            ("flap = { share = nan, forward = \"1 us\", backward = \"1 us\" }", "path.flap.share"),
            ("intermittent = { every = \"0 s\", up = \"0 s\" }", "path.intermittent.every"),
            ("intermittent = { every = \"1 h\", up = \"2 h\" }", "path.intermittent.up"),
            ("intermittent = { every = \"1 h\", up = \"-1 s\" }", "path.intermittent.up"),
            ("outage = [{ at = \"2 h\", until = \"1 h\" }]", "path.outage[0].until"),
            ("route = [{ at = \"2 h\", until = \"1 h\", forward = \"1 us\" }]", "path.route[0].until"),
        ],
        |line| format!("{PATH}{line}"),
    );
}

#[test]
fn delays_of_chance_make_sense() {
    let mean = |rest: &str| format!("{PATH}queue = [{{ mean = \"1 us\" }}, {{ mean = \"1 us\", {rest} }}]");
    refused(
        &[
            ("share = -0.5", "path.queue[1].share"),
            ("shape = inf", "path.queue[1].shape"),
            ("law = \"weibull\", shape = 0.001", "path.queue[1].shape"),
            ("when = { periodic = { every = \"0 s\", lasts = \"0 s\" } }", "path.queue[1].when.periodic.every"),
            ("when = { periodic = { every = \"1 s\", lasts = \"-1 s\" } }", "path.queue[1].when.periodic.lasts"),
            ("when = { periodic = { every = \"1 s\", lasts = \"2 s\" } }", "path.queue[1].when.periodic.lasts"),
            ("when = { between = { at = \"2 s\", until = \"1 s\" } }", "path.queue[1].when.between.until"),
            ("when = { markov = { calm = \"-1 s\", busy = \"1 s\" } }", "path.queue[1].when.markov.calm"),
            ("when = { markov = { calm = \"1 s\", busy = \"0 s\" } }", "path.queue[1].when.markov.busy"),
            ("when = { self-similar = { calm = \"1 s\", busy = \"-1 s\" } }", "path.queue[1].when.self-similar.busy"),
        ],
        mean,
    );
    refused(&[("mean = \"-1 us\"", "host.noise[0].mean")], |line| format!("{PATH}[host]\nnoise = [{{ {line} }}]"));
}

#[test]
fn oscillators_make_sense() {
    refused(
        &[
            ("white_phase_at_1_s = nan", "oscillator.white_phase_at_1_s"),
            ("flicker_phase_at_1_s = -1e-9", "oscillator.flicker_phase_at_1_s"),
            ("white_frequency_at_1_s = inf", "oscillator.white_frequency_at_1_s"),
            ("flicker_frequency = -3e-9", "oscillator.flicker_frequency"),
            ("walk_frequency_at_10000_s = nan", "oscillator.walk_frequency_at_10000_s"),
            ("wave = [{ peak = \"1 ppm\", period = \"0 s\" }]", "oscillator.wave[0].period"),
            ("step = [{ at = \"1 h\", change = \"1 ppm\", settling = \"-1 s\" }]", "oscillator.step[0].settling"),
            (
                "step = [{ at = \"1 h\", until = \"1 min\", change = \"1 ppm\", settling = \"1 s\" }]",
                "oscillator.step[0].until",
            ),
            // The counter would stand still, or run backwards.
            ("skew = \"-1000000 ppm\"", "oscillator.skew"),
        ],
        |line| format!("{PATH}[oscillator]\n{line}"),
    );
}

#[test]
fn servers_make_sense() {
    refused(
        &[
            ("noise = \"-1 us\"", "server.noise"),
            ("residence = \"-1 us\"", "server.residence"),
            ("root_dispersion = \"-1 us\"", "server.root_dispersion"),
            ("fault = [{ wrong = { at = \"2 h\", until = \"1 h\", by = \"1 s\" } }]", "server.fault[0].wrong.until"),
            (
                "fault = [{ drift = { at = \"2 h\", until = \"1 h\", rate = \"1 ppm\" } }]",
                "server.fault[0].drift.until",
            ),
            (
                "fault = [{ drift = { at = \"1 h\", until = \"2 h\", rate = \"-1000000 ppm\" } }]",
                "server.fault[0].drift.rate",
            ),
            ("fault = [{ restart = { at = \"2 h\", until = \"1 h\" } }]", "server.fault[0].restart.until"),
            (
                "fault = [{ claims = { at = \"2 h\", until = \"1 h\", root_dispersion = \"1 s\" } }]",
                "server.fault[0].claims.until",
            ),
            (
                "fault = [{ claims = { at = \"1 h\", until = \"2 h\", root_dispersion = \"-1 s\" } }]",
                "server.fault[0].claims.root_dispersion",
            ),
            ("fault = [{ rate-limit = { shortest = \"-1 s\" } }]", "server.fault[0].rate-limit.shortest"),
            // A smear goes where it goes and stays there: an end would be ignored.
            ("fault = [{ smear = { at = \"1 h\", until = \"2 h\", by = \"1 s\" } }]", "unknown field `until`"),
        ],
        |line| format!("{PATH}[server]\n{line}"),
    );
}

#[test]
fn a_world_has_a_length_and_a_host_that_can_ask() {
    refused(
        &[
            ("duration = \"0 s\"", "duration"),
            ("from = \"-1 s\"", "from"),
            ("from = \"1 d\"", "from"),
            // The conversation would silently use another one.
            ("poll = \"0 s\"", "poll"),
            ("poll = \"2000 s\"", "poll"),
            ("burst = 1000", "burst"),
        ],
        |line| format!("{line}\n{PATH}"),
    );
    refused(&[("x = [\"2 h\", \"1 h\"]", "windows.x")], |line| format!("{PATH}[windows]\n{line}"));
    refused(&[("at = \"2 h\", until = \"1 h\"", "host.suspend[0].until")], |line| {
        format!("{PATH}[host]\nsuspend = [{{ {line}, counter = \"runs\" }}]")
    });
}

#[test]
fn an_earlier_run_leaves_a_rate_that_a_clock_can_take_out_and_to_clocks_of_one_server() {
    let start = |rate: &str| format!("[start]\nrate = {rate:?}\n");
    assert_eq!(complaint(&format!("{}{PATH}", start("-500 ppm"))), "it is accepted");
    let why = complaint(&format!("{}{PATH}", start("501 ppm")));
    assert!(why.contains("start.rate: 501 ppm is too much"), "{why}");
    let servers = "[[server]]\nname = \"a\"\n[[server]]\nname = \"b\"\n";
    let why = complaint(&format!("{}{PATH}{servers}", start("50 ppm")));
    assert!(why.contains("start: there may be no [[server]] beside it"), "{why}");
}

/// A complaint says what the value is and what is allowed; a rule alone reads as if it were the fault.
#[test]
fn complaints_say_what_is_wrong_and_what_is_allowed() {
    let path = |line: &str| format!("{PATH}{line}");
    let queue = |rest: &str| path(&format!("queue = [{{ mean = \"1 us\", {rest} }}]"));
    for (lines, why) in [
        (
            path("").replacen("[path]", "duration = \"0 s\"\n[path]", 1),
            "duration: 0 ns is too short: it must be longer than 0 s",
        ),
        (
            path("").replacen("[path]", "from = \"1 d\"\n[path]", 1),
            "from: 86400 s is too late: it must be before the world ends, `duration` = 86400 s",
        ),
        (
            path("[windows]\nx = [\"2 h\", \"1 h\"]"),
            "windows.x: its end, 3600 s, must be later than its beginning, 7200 s",
        ),
        (path("loss = 2.0"), "path.loss: 2 is no share: it must lie between 0 and 1"),
        (
            path("outage = [{ at = \"2 h\", until = \"1 h\" }]"),
            "path.outage[0].until: 3600 s is too early: it must be later than `at`, 7200 s",
        ),
        (
            path("intermittent = { every = \"1 h\", up = \"2 h\" }"),
            "path.intermittent.up: 7200 s is too long: it must be at most the period, 3600 s",
        ),
        (
            path("route = [{ at = \"1 h\", forward = \"-100 us\" }]"),
            "path.route[0].forward: with it the smallest delay at 3600 s is 0 ns: a packet would arrive before it leaves; it must stay above 0 s",
        ),
        (queue("shape = -1.0"), "path.queue[0].shape: -1 is no shape of this law: it must be a number above 0"),
        (
            queue("law = \"weibull\", shape = 0.001"),
            "path.queue[0].shape: 0.001 is too extreme for a mean of 1 us: it must be nearer to 1",
        ),
        (path("[server]\nnoise = \"-1 us\""), "server.noise: -1 us is negative: it must be 0 s or longer"),
        (
            path("[server]\nnoise = \"4000 d\""),
            "server.noise: \"4000 d\" is too long: it must lie between -3650 d and 3650 d",
        ),
        (
            path("[oscillator]\nflicker_frequency = 0.5"),
            "oscillator.flicker_frequency: 0.5 is no level of noise: it must be a number between 0 and 0.001",
        ),
        (
            path("[oscillator]\nskew = \"2000000 ppm\""),
            "oscillator.skew: at 2000000 ppm a clock would stand still or run backwards: it must lie between -1000000 ppm and 1000000 ppm",
        ),
        (
            path("[oscillator]\nskew = \"999999 ppm\"\nageing_per_day = \"2 ppm\""),
            "oscillator: within `duration` its rates can come to 1000001.2546 ppm together, which can stop the counter: they must stay below 1000000 ppm",
        ),
    ] {
        let message = complaint(&lines);
        assert!(message.starts_with(&format!("scenario wrong: {why}")), "{message}\n{why}");
    }
}

#[test]
fn complaints_about_checks_say_what_is_allowed() {
    for (check, why) in [
        ("fish.max < 1 s", "there is no clock \"fish\": it must be one of classic, learned, "),
        ("classic.fish < 1 s", "there is no figure \"fish\": it must be one of median, "),
        ("classic.max@fish < 1 s", "there is no window \"fish\": it must be a key of [windows]"),
        ("classic < 1 s", "\"classic\" must be CLOCK.FIGURE"),
        ("classic.max", "after CLOCK.FIGURE there must be a relation (<, <=, > or >=) and a value"),
        ("classic.max = 1 s", "\"=\" is no relation: it must be <, <=, > or >="),
        ("classic.max < 1 s too much", "\"1 s too much\" is no value: it must be a number, "),
    ] {
        let message = complaint(&format!("{PATH}[checks]\nit = \"{check}\""));
        assert!(message.starts_with(&format!("scenario wrong: check \"it\": {why}")), "{message}");
    }
    assert!(complaint("extends = 3").ends_with("extends: must be the name of a scenario in quotes"));
    assert!(complaint("extends = \"fish\"").ends_with("extends: there is no built-in scenario \"fish\""));
}

#[test]
fn the_worlds_of_the_papers_figures_can_be() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/paper");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = files.map(|path| Scenario::parse(&path.display().to_string(), &std::fs::read_to_string(&path).unwrap()));
    let outcomes: Vec<_> = read.collect();
    assert!(outcomes.len() > 5 && outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// The path of the live plan `congested-16` is that of scenarios/paper/congestion.toml. In the worlds that stand for it
/// this path has the host around it, which takes time and takes nothing away.
#[test]
fn the_live_worlds_have_the_path_of_the_live_plan_and_the_host_around_it() {
    let read = |file: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
        Scenario::parse(file, &std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let plan = read("paper/congestion.toml").path;
    for file in ["16", "16-interleaved", "16-ptp", "64", "64-interleaved", "64-ptp"] {
        let world = read(&format!("live/congested-{file}.toml"));
        assert_eq!(world.path.queue[..plan.queue.len()], plan.queue, "{file}");
        assert!(world.path.forward > plan.forward && world.path.backward > plan.backward, "{file}");
        assert_eq!(world.start.unwrap().rate, world.oscillator.skew, "{file}");
    }
}

#[test]
fn a_client_that_cannot_ask_so_is_refused() {
    for ratio in ["0.0", "-2.0", "inf", "nan"] {
        let why = complaint(&format!("maxdelaydevratio = {ratio}\n{PATH}"));
        assert!(why.contains("maxdelaydevratio: it must be a number above 0"), "{ratio}: {why}");
    }
    assert_eq!(complaint(&format!("interleaved = true\nmaxdelaydevratio = 2\n{PATH}")), "it is accepted");
    for (line, key) in [
        ("interleaved = true", "interleaved"),
        ("maxdelaydevratio = 2", "maxdelaydevratio"),
        ("ntpd = { huffpuff = \"900 s\", step = \"1 ms\", stepout = \"60 s\" }", "ntpd"),
    ] {
        let why = complaint(&format!("{line}\npoll = \"1 s\"\n[ptp]\nnoise = \"10 ns\"\nstep = \"8 ns\"\n{PATH}"));
        assert!(why.contains(&format!("{key}: it is for one server")), "{why}");
    }
}

#[test]
fn what_says_nothing_beside_a_master_or_pulses_is_refused() {
    let ptp = "poll = \"1 s\"\n[ptp]\nnoise = \"10 ns\"\nstep = \"8 ns\"\n";
    let pulses = |poll: &str| format!("poll = {poll:?}\n[pulses]\njitter = \"1 us\"\nerror = \"6 us\"\n");
    assert_eq!(complaint(&format!("{ptp}{PATH}")), "it is accepted");
    assert_eq!(complaint(&pulses("1 s")), "it is accepted");
    for (lines, key) in [
        (format!("{ptp}[pulses]\njitter = \"1 us\"\nerror = \"6 us\"\n{PATH}"), "ptp: there may be no pulses"),
        (format!("{ptp}[host]\nstamps = \"user\"\n{PATH}"), "ptp: there may be no host"),
        (ptp.to_owned(), "path.forward"),
        (format!("{}{PATH}", pulses("1 s")), "pulses: there may be no path"),
        (pulses("2 s"), "poll: pulses come each second"),
        (pulses("1 s").replace("\"6 us\"", "\"0 s\""), "pulses.error"),
        (format!("{}{PATH}", ptp.replace("8 ns", "0 s")), "ptp.step"),
    ] {
        let why = complaint(&lines);
        assert!(why.contains(key), "{lines}: {why}");
    }
}
