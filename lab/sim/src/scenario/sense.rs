//! Whether a world is possible, beyond what types can ensure. Every message begins with the key that is wrong.

use super::spec::{
    FaultSpec, HostSpec, IntermittentSpec, Law, OscillatorSpec, PathSpec, Periodic, QueueSpec, Scenario, ServerSpec,
    Spells, StepSpec, When,
};
use super::{Fraction, Length, SharedSpec};
use crate::noise::walk_size;
use crate::path::floor;
use crate::queue::scale;
use ffclock_source::SourceConfig;
use ffclock_units::{Direction, Rate, Span};

type Sense = Result<(), String>;

/// What a kernel can take out of a rate (Linux, MAXFREQ).
const FREQUENCY_MAX: f64 = 500e-6;
const DAY_S: f64 = 86_400.0;
/// The largest Allan deviation of an oscillator: what is worse does not keep time any more.
const LEVEL_MAX: f64 = 1e-3;
/// How many standard deviations a random walk may go.
const DEVIATIONS: f64 = 5.0;

/// Whether such a world is possible.
pub(super) fn of_scenario(scenario: &Scenario) -> Sense {
    of_times(scenario)?;
    of_tags(scenario)?;
    of_oscillator(&scenario.oscillator, scenario.duration)?;
    of_host(&scenario.host)?;
    of_start(scenario)?;
    of_client(scenario)?;
    if scenario.ptp.is_some() || scenario.pulses.is_some() {
        return of_signals(scenario);
    }
    if !scenario.servers.is_empty() {
        return of_servers(scenario);
    }
    if !scenario.shared.is_empty() {
        return refused("shared", "there is only one server: it must be a part of the way to those of [[server]]");
    }
    of_path(&scenario.path)?;
    of_server(&scenario.server)
}

/// How clients of one server ask it.
fn of_client(scenario: &Scenario) -> Sense {
    if !(scenario.maxdelaydevratio > 0.0 && scenario.maxdelaydevratio.is_finite()) {
        return refused("maxdelaydevratio", "it must be a number above 0");
    }
    let is_one = scenario.ptp.is_none() && scenario.pulses.is_none() && scenario.servers.is_empty();
    let keys = [
        ("interleaved", scenario.interleaved),
        ("ntpd", scenario.ntpd.is_some()),
        ("maxdelaydevratio", scenario.maxdelaydevratio != Scenario::default_maxdelaydevratio()),
    ];
    match keys.iter().find(|(_, is_given)| *is_given && !is_one) {
        Some((key, _)) => refused(key, "it is for one server that is asked by NTP"),
        None => Ok(()),
    }
}

/// What an earlier run left: a rate that a system clock can take out, and only where one of the clocks has it.
fn of_start(scenario: &Scenario) -> Sense {
    let Some(start) = scenario.start else { return Ok(()) };
    if !scenario.servers.is_empty() {
        return refused("start", "there may be no [[server]] beside it");
    }
    if start.rate.fraction().abs() > FREQUENCY_MAX {
        let why = format_args!("{} is too much: it must lie between -500 ppm and 500 ppm", start.rate.0);
        return refused("start.rate", why);
    }
    Ok(())
}

/// What is there in place of a server, and no key that would say nothing beside it.
fn of_signals(scenario: &Scenario) -> Sense {
    let key = if scenario.ptp.is_some() { "ptp" } else { "pulses" };
    let beside = [
        ("pulses", scenario.pulses.is_some() && scenario.ptp.is_some()),
        ("path", scenario.pulses.is_some() && scenario.path != PathSpec::default()),
        ("[[server]]", !scenario.servers.is_empty()),
        ("shared", !scenario.shared.is_empty()),
        ("host", scenario.host != HostSpec::default()),
        ("keep_noise", scenario.keep_noise.is_some()),
        ("relax", !scenario.relax.is_empty()),
        ("server.fault", !scenario.server.fault.is_empty()),
    ];
    if let Some((other, _)) = beside.into_iter().find(|(_, is_there)| *is_there) {
        return refused(key, format_args!("there may be no {other} beside it"));
    }
    if let Some(pulses) = scenario.pulses {
        not_negative("pulses.jitter", pulses.jitter)?;
        above_zero("pulses.error", pulses.error)?;
        let is_second = scenario.poll.0 == Span::from_secs(1);
        return if is_second { Ok(()) } else { refused("poll", "pulses come each second: it must be 1 s") };
    }
    if let Some(ptp) = scenario.ptp {
        not_negative("ptp.noise", ptp.noise)?;
        above_zero("ptp.step", ptp.step)?;
    }
    of_path(&scenario.path)?;
    of_server(&scenario.server)
}

/// Several servers, each by its own keys.
fn of_servers(scenario: &Scenario) -> Sense {
    for (index, entry) in scenario.servers.iter().enumerate() {
        let key = format!("server[{index}]");
        let before = scenario.servers.iter().take(index);
        of_name(&key, &entry.name, before.map(|other| other.name.as_str()))?;
        of_path(&entry.path).map_err(|why| format!("{key}.{why}"))?;
        of_server(&entry.server).map_err(|why| format!("{key}{}", why.trim_start_matches("server")))?;
        of_poll(&format!("{key}.poll"), entry.poll.unwrap_or(scenario.poll))?;
        not_negative(&format!("{key}.phase"), entry.phase.unwrap_or_default())?;
        not_negative(&format!("{key}.joins"), entry.joins)?;
        if let Some(leaves) = entry.leaves.filter(|leaves| *leaves <= entry.joins) {
            let joins = entry.joins.0;
            let why = format_args!("{} is too early: it must be later than `joins`, {joins}", leaves.0);
            return refused(&format!("{key}.leaves"), why);
        }
    }
    let mut shared = scenario.shared.iter().enumerate();
    shared.try_for_each(|(index, shared)| of_shared(&format!("shared[{index}]"), shared, scenario))
}

/// The name of a server stands for it in checks and results.
fn of_name<'a>(key: &str, name: &str, mut others: impl Iterator<Item = &'a str>) -> Sense {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return refused(&format!("{key}.name"), format_args!("{name:?} must consist of letters, digits, - and _"));
    }
    if crate::clock::is_name(name) {
        return refused(&format!("{key}.name"), format_args!("{name:?} is the name of a clock: it must be another"));
    }
    if others.any(|other| other == name) {
        return refused(&format!("{key}.name"), format_args!("{name:?} is there twice: each must have its own"));
    }
    Ok(())
}

fn of_shared(key: &str, spec: &SharedSpec, scenario: &Scenario) -> Sense {
    let is_known = |name: &&String| scenario.servers.iter().any(|entry| entry.name == **name);
    if let Some(unknown) = spec.servers.iter().find(|name| !is_known(name)) {
        let names: Vec<&str> = scenario.servers.iter().map(|entry| entry.name.as_str()).collect();
        let why = format_args!("there is no server {unknown:?}: it must be one of {}", names.join(", "));
        return refused(&format!("{key}.servers"), why);
    }
    for (index, queue) in spec.queue.iter().enumerate() {
        of_queue(&format!("{key}.queue[{index}]"), queue)?;
    }
    for (index, route) in spec.route.iter().enumerate() {
        let key = format!("{key}.route[{index}]");
        ends_after_it_begins(&key, route.at, route.until)?;
        not_negative(&format!("{key}.forward"), route.forward)?;
        not_negative(&format!("{key}.backward"), route.backward)?;
    }
    for (index, outage) in spec.outage.iter().enumerate() {
        ends_after_it_begins(&format!("{key}.outage[{index}]"), outage.at, Some(outage.until))?;
    }
    Ok(())
}

/// The value of a key is wrong; `why` says what it may be.
fn refused(key: &str, why: impl std::fmt::Display) -> Sense {
    Err(format!("{key}: {why}"))
}

fn of_share(key: &str, share: f64) -> Sense {
    let is_share = (0.0..=1.0).contains(&share);
    if is_share { Ok(()) } else { refused(key, format_args!("{share} is no share: it must lie between 0 and 1")) }
}

fn of_level(key: &str, level: f64) -> Sense {
    if (0.0..=LEVEL_MAX).contains(&level) {
        return Ok(());
    }
    refused(key, format_args!("{level} is no level of noise: it must be a number between 0 and {LEVEL_MAX}"))
}

fn not_negative(key: &str, length: Length) -> Sense {
    if length.0 >= Span::ZERO {
        return Ok(());
    }
    refused(key, format_args!("{} is negative: it must be 0 s or longer", length.0))
}

fn above_zero(key: &str, length: Length) -> Sense {
    if length.0 > Span::ZERO {
        return Ok(());
    }
    refused(key, format_args!("{} is too short: it must be longer than 0 s", length.0))
}

/// `key` is what holds the two of them.
fn ends_after_it_begins(key: &str, at: Length, until: Option<Length>) -> Sense {
    match until {
        Some(until) if until <= at => refused(
            &format!("{key}.until"),
            format_args!("{} is too early: it must be later than `at`, {}", until.0, at.0),
        ),
        _ => Ok(()),
    }
}

/// A part of a period, at most the whole of it.
fn of_part(key: &str, part: Length, every: Length) -> Sense {
    not_negative(key, part)?;
    if part <= every {
        return Ok(());
    }
    refused(key, format_args!("{} is too long: it must be at most the period, {}", part.0, every.0))
}

fn of_rate(key: &str, rate: Fraction) -> Sense {
    if rate.fraction().abs() < 1.0 {
        return Ok(());
    }
    const ALLOWED: &str = "it must lie between -1000000 ppm and 1000000 ppm";
    refused(key, format_args!("at {} a clock would stand still or run backwards: {ALLOWED}", rate.0))
}

fn of_poll(key: &str, poll: Length) -> Sense {
    of_option(key, "poll", &poll.0.to_string())
}

/// The conversation would replace a value out of its range; here that is an error.
fn of_option(key: &str, option: &str, value: &str) -> Sense {
    SourceConfig::default().set(option, value).or_else(|error| refused(key, error))
}

/// Polls that are chosen, and where: there is only one range for all servers.
fn of_chosen_polls(scenario: &Scenario) -> Sense {
    of_option("poll_min", "poll_min", &scenario.poll_min.0.to_string())?;
    of_option("poll_max", "poll_max", &scenario.poll_max.0.to_string())?;
    if scenario.poll_min > scenario.poll_max {
        return refused("poll_min", format_args!("{} is longer than `poll_max`", scenario.poll_min.0));
    }
    let Some(keep) = scenario.keep_noise else { return Ok(()) };
    above_zero("keep_noise", keep)?;
    match scenario.servers.iter().position(|entry| entry.poll.is_some()) {
        Some(index) => refused(&format!("server[{index}].poll"), "`keep_noise` chooses the polls"),
        None => Ok(()),
    }
}

fn of_times(scenario: &Scenario) -> Sense {
    above_zero("duration", scenario.duration)?;
    not_negative("from", scenario.from)?;
    if scenario.from >= scenario.duration {
        let (from, duration) = (scenario.from.0, scenario.duration.0);
        return refused(
            "from",
            format_args!("{from} is too late: it must be before the world ends, `duration` = {duration}"),
        );
    }
    of_poll("poll", scenario.poll)?;
    of_chosen_polls(scenario)?;
    of_relaxed_times(scenario)?;
    scenario.reading.map_or(Ok(()), |reading| above_zero("reading", reading))?;
    of_option("burst", "burst_count", &scenario.burst.to_string())?;
    for (name, [begin, end]) in &scenario.windows {
        if end <= begin {
            let (begin, end) = (begin.0, end.0);
            return refused(
                &format!("windows.{name}"),
                format_args!("its end, {end}, must be later than its beginning, {begin}"),
            );
        }
    }
    Ok(())
}

/// The models leave out requests of the scenario's polls, and count time by the counter.
fn of_relaxed_times(scenario: &Scenario) -> Sense {
    for (index, relax) in scenario.relax.iter().enumerate() {
        let key = format!("relax[{index}]");
        ends_after_it_begins(&key, relax.at, Some(relax.until))?;
        if relax.poll_max < scenario.poll {
            return refused(
                &format!("{key}.poll_max"),
                format_args!("{} is shorter than `poll`, {}", relax.poll_max.0, scenario.poll.0),
            );
        }
    }
    if !scenario.relax.is_empty() && !scenario.host.suspend.is_empty() {
        return refused("relax", "there may be no host.suspend beside it");
    }
    Ok(())
}

/// A goal for scenarios of this kind finds the windows that it looks at.
fn of_tags(scenario: &Scenario) -> Sense {
    for tag in &scenario.tags {
        if let Some(window) = tag.windows().iter().find(|window| !scenario.windows.contains_key(**window)) {
            let name = tag.name();
            return refused("tags", format_args!("{name} needs the window `{window}`: it must be a key of [windows]"));
        }
    }
    Ok(())
}

fn of_oscillator(spec: &OscillatorSpec, duration: Length) -> Sense {
    let levels = [
        ("white_phase_at_1_s", spec.white_phase_at_1_s),
        ("flicker_phase_at_1_s", spec.flicker_phase_at_1_s),
        ("white_frequency_at_1_s", spec.white_frequency_at_1_s),
        ("flicker_frequency", spec.flicker_frequency),
        ("walk_frequency_at_10000_s", spec.walk_frequency_at_10000_s),
    ];
    for (name, level) in levels {
        of_level(&format!("oscillator.{name}"), level)?;
    }
    of_rate("oscillator.skew", spec.skew)?;
    of_rate("oscillator.ageing_per_day", spec.ageing_per_day)?;
    for (index, wave) in spec.wave.iter().enumerate() {
        of_rate(&format!("oscillator.wave[{index}].peak"), wave.peak)?;
        above_zero(&format!("oscillator.wave[{index}].period"), wave.period)?;
    }
    for (index, step) in spec.step.iter().enumerate() {
        of_step(&format!("oscillator.step[{index}]"), step)?;
    }
    of_rates_together(spec, duration)
}

/// Whatever adds up in the rate, the counter goes on.
fn of_rates_together(spec: &OscillatorSpec, duration: Length) -> Sense {
    let waves: f64 = spec.wave.iter().map(|wave| wave.peak.fraction().abs()).sum();
    let steps: f64 = spec.step.iter().map(|step| step.change.fraction().abs()).sum();
    let aged = spec.ageing_per_day.fraction() * duration.seconds() / DAY_S;
    let walked = DEVIATIONS * walk_size(spec.walk_frequency_at_10000_s, 1e4) * libm::sqrt(duration.seconds());
    let together = spec.skew.fraction().abs() + aged.abs() + waves + steps + walked;
    if together < 1.0 {
        return Ok(());
    }
    let sum = Rate::from_fraction(together);
    const WHY: &str = "which can stop the counter: they must stay below 1000000 ppm";
    refused("oscillator", format_args!("within `duration` its rates can come to {sum} together, {WHY}"))
}

fn of_step(key: &str, step: &StepSpec) -> Sense {
    of_rate(&format!("{key}.change"), step.change)?;
    ends_after_it_begins(key, step.at, step.until)?;
    not_negative(&format!("{key}.settling"), step.settling)
}

fn of_host(spec: &HostSpec) -> Sense {
    for (index, queue) in spec.noise.iter().enumerate() {
        of_queue(&format!("host.noise[{index}]"), queue)?;
    }
    for (index, suspend) in spec.suspend.iter().enumerate() {
        ends_after_it_begins(&format!("host.suspend[{index}]"), suspend.at, Some(suspend.until))?;
    }
    Ok(())
}

fn of_queue(key: &str, spec: &QueueSpec) -> Sense {
    not_negative(&format!("{key}.mean"), spec.mean)?;
    of_share(&format!("{key}.share"), spec.share)?;
    let shape_key = format!("{key}.shape");
    let lowest = if spec.law == Law::Pareto { 1.0 } else { 0.0 };
    if !spec.shape.is_finite() || spec.shape <= lowest {
        return refused(
            &shape_key,
            format_args!("{} is no shape of this law: it must be a number above {lowest}", spec.shape),
        );
    }
    if spec.mean.0 > Span::ZERO && !(scale(spec).is_finite() && scale(spec) > 0.0) {
        let (shape, mean) = (spec.shape, spec.mean.0);
        return refused(
            &shape_key,
            format_args!("{shape} is too extreme for a mean of {mean}: it must be nearer to 1"),
        );
    }
    of_when(&format!("{key}.when"), &spec.when)
}

fn of_when(key: &str, when: &When) -> Sense {
    let of_spells = |name: &str, spells: &Spells| {
        above_zero(&format!("{key}.{name}.calm"), spells.calm)?;
        above_zero(&format!("{key}.{name}.busy"), spells.busy)
    };
    match when {
        When::Always => Ok(()),
        When::Markov(spells) => of_spells("markov", spells),
        When::SelfSimilar(spells) => of_spells("self-similar", spells),
        When::Periodic(Periodic { every, lasts }) => {
            above_zero(&format!("{key}.periodic.every"), *every)?;
            of_part(&format!("{key}.periodic.lasts"), *lasts, *every)
        }
        When::Between(between) => ends_after_it_begins(&format!("{key}.between"), between.at, Some(between.until)),
    }
}

fn of_path(spec: &PathSpec) -> Sense {
    for (name, share) in [("loss", spec.loss), ("duplicate", spec.duplicate), ("straggle", spec.straggle)] {
        of_share(&format!("path.{name}"), share)?;
    }
    for (index, queue) in spec.queue.iter().enumerate() {
        of_queue(&format!("path.queue[{index}]"), queue)?;
    }
    for (index, route) in spec.route.iter().enumerate() {
        ends_after_it_begins(&format!("path.route[{index}]"), route.at, route.until)?;
    }
    for (index, outage) in spec.outage.iter().enumerate() {
        ends_after_it_begins(&format!("path.outage[{index}]"), outage.at, Some(outage.until))?;
    }
    if let Some(IntermittentSpec { every, up }) = spec.intermittent {
        above_zero("path.intermittent.every", every)?;
        of_part("path.intermittent.up", up, every)?;
    }
    if let Some(flap) = spec.flap {
        of_share("path.flap.share", flap.share)?;
    }
    of_both_ways(spec)?;
    of_share("path.asymmetry", spec.asymmetry)?;
    let mut extremes = spec.extremes().into_iter().filter(|_| spec.asymmetry > 0.0);
    let too_much =
        |why| format!("path.asymmetry: {} is too much: where three deviations are drawn, {why}", spec.asymmetry);
    extremes.try_for_each(|extreme| of_both_ways(&extreme)).map_err(too_much)
}

fn of_both_ways(spec: &PathSpec) -> Sense {
    of_way(spec, Direction::Outgoing)?;
    of_way(spec, Direction::Incoming)
}

/// A packet arrives after it leaves, whatever routes add up at a time. A sum of routes is smallest where one of them
/// begins or another ends.
fn of_way(spec: &PathSpec, direction: Direction) -> Sense {
    let (name, least, flap) = match direction {
        Direction::Outgoing => ("forward", spec.forward, spec.flap.map(|flap| flap.forward)),
        Direction::Incoming => ("backward", spec.backward, spec.flap.map(|flap| flap.backward)),
    };
    above_zero(&format!("path.{name}"), least)?;
    let flapped = flap.map_or(Span::ZERO, |flap| flap.0.min(Span::ZERO));
    of_delay(&format!("path.flap.{name}"), least.0 + flapped, Span::ZERO)?;
    for (index, route) in spec.route.iter().enumerate() {
        for at in [Some(route.at), route.until].into_iter().flatten() {
            let shortest = floor(spec, direction, at.0);
            of_delay(&format!("path.route[{index}].{name}"), shortest, at.0)?;
            of_delay(&format!("path.flap.{name}"), shortest + flapped, at.0)?;
        }
    }
    Ok(())
}

/// `key` brought the smallest delay to this.
fn of_delay(key: &str, delay: Span, at: Span) -> Sense {
    if delay > Span::ZERO {
        return Ok(());
    }
    const WHY: &str = "a packet would arrive before it leaves";
    refused(key, format_args!("with it the smallest delay at {at} is {delay}: {WHY}; it must stay above 0 s"))
}

fn of_server(spec: &ServerSpec) -> Sense {
    not_negative("server.noise", spec.noise)?;
    not_negative("server.residence", spec.residence)?;
    not_negative("server.root_dispersion", spec.root_dispersion)?;
    spec.fault.iter().enumerate().try_for_each(|(index, fault)| of_fault(&format!("server.fault[{index}]"), fault))
}

fn of_fault(key: &str, fault: &FaultSpec) -> Sense {
    match fault {
        FaultSpec::Wrong(wrong) => ends_after_it_begins(&format!("{key}.wrong"), wrong.at, wrong.until),
        FaultSpec::Drift(drift) => {
            ends_after_it_begins(&format!("{key}.drift"), drift.at, Some(drift.until))?;
            of_rate(&format!("{key}.drift.rate"), drift.rate)
        }
        FaultSpec::Claims(claims) => {
            ends_after_it_begins(&format!("{key}.claims"), claims.at, Some(claims.until))?;
            not_negative(&format!("{key}.claims.root_dispersion"), claims.root_dispersion)
        }
        FaultSpec::Restart(restart) => ends_after_it_begins(&format!("{key}.restart"), restart.at, Some(restart.until)),
        FaultSpec::RateLimit(limit) => not_negative(&format!("{key}.rate-limit.shortest"), limit.shortest),
        FaultSpec::Smear(_) | FaultSpec::Leap(_) => Ok(()),
    }
}
