//! Whether what a scenario says can be: what types alone cannot tell. Every complaint begins with the key that is wrong.

use super::spec::{
    FaultSpec, HostSpec, IntermittentSpec, Law, OscillatorSpec, PathSpec, Periodic, QueueSpec, Scenario, ServerSpec,
    Spells, StepSpec, When,
};
use super::{Direction, Fraction, Length};
use crate::path::floor;
use crate::queue::scale;
use ffclock_source::SourceConfig;
use ffclock_units::Span;

type Sense = Result<(), String>;

const DAY_S: f64 = 86_400.0;

/// Whether there can be such a world.
pub(super) fn of_scenario(scenario: &Scenario) -> Sense {
    of_times(scenario)?;
    of_oscillator(&scenario.oscillator, scenario.duration)?;
    of_host(&scenario.host)?;
    of_path(&scenario.path)?;
    of_server(&scenario.server)
}

fn refused(key: &str, why: &str) -> Sense {
    Err(format!("{key}: {why}"))
}

fn of_share(key: &str, share: f64) -> Sense {
    if (0.0..=1.0).contains(&share) { Ok(()) } else { refused(key, "a share lies between 0 and 1") }
}

fn of_level(key: &str, level: f64) -> Sense {
    if level.is_finite() && level >= 0.0 { Ok(()) } else { refused(key, "a level of noise is a number from 0 on") }
}

fn not_negative(key: &str, length: Length) -> Sense {
    if length.0 >= Span::ZERO { Ok(()) } else { refused(key, "it is not negative") }
}

fn above_zero(key: &str, length: Length) -> Sense {
    if length.0 > Span::ZERO { Ok(()) } else { refused(key, "it is longer than nothing") }
}

/// `key` is what holds the two of them.
fn ends_after_it_begins(key: &str, at: Length, until: Option<Length>) -> Sense {
    match until {
        Some(until) if until <= at => refused(&format!("{key}.until"), "it lies after `at`"),
        _ => Ok(()),
    }
}

/// A part of a period, at most the whole of it.
fn of_part(key: &str, part: Length, every: Length) -> Sense {
    not_negative(key, part)?;
    if part <= every { Ok(()) } else { refused(key, "it is not longer than the period") }
}

fn of_rate(key: &str, rate: Fraction) -> Sense {
    let is_forward = rate.fraction().abs() < 1.0;
    if is_forward { Ok(()) } else { refused(key, "a clock would stand still or run backwards") }
}

fn of_times(scenario: &Scenario) -> Sense {
    above_zero("duration", scenario.duration)?;
    not_negative("from", scenario.from)?;
    if scenario.from >= scenario.duration {
        return refused("from", "the statistics begin before the end");
    }
    // What the conversation would use instead is nobody's wish.
    let mut conversation = SourceConfig::default();
    let wrong = |key: &str, why: &dyn std::fmt::Display| Err(format!("{key}: {why}"));
    conversation.set("poll", &scenario.poll.0.to_string()).or_else(|error| wrong("poll", &error))?;
    conversation.set("burst_count", &scenario.burst.to_string()).or_else(|error| wrong("burst", &error))?;
    for (name, [begin, end]) in &scenario.windows {
        if end <= begin {
            return refused(&format!("windows.{name}"), "it ends after it begins");
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
    for (index, wave) in spec.wave.iter().enumerate() {
        above_zero(&format!("oscillator.wave[{index}].period"), wave.period)?;
    }
    for (index, step) in spec.step.iter().enumerate() {
        of_step(&format!("oscillator.step[{index}]"), step)?;
    }
    let waves: f64 = spec.wave.iter().map(|wave| wave.peak.fraction().abs()).sum();
    let steps: f64 = spec.step.iter().map(|step| step.change.fraction().abs()).sum();
    let aged = spec.ageing_per_day.fraction() * duration.seconds() / DAY_S;
    let together = spec.skew.fraction().abs() + aged.abs() + waves + steps;
    if together < 1.0 { Ok(()) } else { refused("oscillator", "all its rates together stop the counter") }
}

fn of_step(key: &str, step: &StepSpec) -> Sense {
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
        return refused(&shape_key, &format!("a shape is a number above {lowest}"));
    }
    if spec.mean.0 > Span::ZERO && !(scale(spec).is_finite() && scale(spec) > 0.0) {
        return refused(&shape_key, "no such law has this mean");
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
    of_way(spec, Direction::Forward)?;
    of_way(spec, Direction::Backward)
}

/// A packet arrives after it leaves, whatever routes add up at a time. A sum of routes is smallest where one of them begins or another ends.
fn of_way(spec: &PathSpec, direction: Direction) -> Sense {
    const WHY: &str = "a packet would arrive before it leaves";
    let (name, least, flap) = match direction {
        Direction::Forward => ("forward", spec.forward, spec.flap.map(|flap| flap.forward)),
        Direction::Backward => ("backward", spec.backward, spec.flap.map(|flap| flap.backward)),
    };
    above_zero(&format!("path.{name}"), least)?;
    let flapped = flap.map_or(Span::ZERO, |flap| flap.0.min(Span::ZERO));
    if least.0 + flapped <= Span::ZERO {
        return refused(&format!("path.flap.{name}"), WHY);
    }
    for (index, route) in spec.route.iter().enumerate() {
        for at in [Some(route.at), route.until].into_iter().flatten() {
            let shortest = floor(spec, direction, at.0);
            let key = match () {
                () if shortest <= Span::ZERO => format!("path.route[{index}].{name}"),
                () if shortest + flapped <= Span::ZERO => format!("path.flap.{name}"),
                () => continue,
            };
            return refused(&key, &format!("at {} {WHY}", at.0));
        }
    }
    Ok(())
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
