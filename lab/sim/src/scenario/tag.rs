//! Tags of a scenario: the kind of world, by which the goals of the learned estimator choose their scenarios.

use serde::{Deserialize, Serialize};

/// A kind of world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// Congestion is heavy: the causal oracle may be farther ahead of the clock.
    Congested,
    /// No clock can be near the truth: the server lies for hours without a sign of it, or the route turns out to have
    /// been asymmetric.
    Unknowable,
    /// The server's claim about itself does not hold, so a bound may miss the truth.
    LyingServer,
    /// The clock is judged from its first exchange on, in the windows `soon`, `burst` and `minutes`.
    StartUp,
    /// The route changes by the same length both ways.
    RouteBothWays,
    /// The route changes in one direction only.
    RouteOneWay,
    /// The server is wrong by far for some minutes, in the window `around`.
    WrongServer,
    /// The server is away for two hours, between the windows `before` and `recovered`; `end` is the end of that time.
    #[serde(rename = "outage-2h")]
    Outage2h,
    /// Intervals are measured.
    DifferenceClock,
    /// Some of several servers lie so that the others can see it.
    Liars,
    /// Some of several servers lie within what the others can prove.
    HiddenLiar,
    /// Judged with several servers like its own, against its own asked as much oftener; not by itself.
    SeveralAlike,
    /// The asymmetry of each path is drawn.
    DrawnAsymmetry,
    /// The delays are a soft hump far above a floor that few packets meet.
    SoftHump,
    /// Temperature makes the oscillator's rate go up and down once a day by one ppm.
    DailyWave,
    /// Judged as well by old stamps and long intervals.
    Past,
    /// A master of PTP with hardware stamps, against the servos of ptp4l.
    HardwareStamps,
    /// Pulses of a reference at this host.
    Pulses,
}

impl Tag {
    /// The name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Tag::Congested => "congested",
            Tag::Unknowable => "unknowable",
            Tag::LyingServer => "lying-server",
            Tag::StartUp => "start-up",
            Tag::RouteBothWays => "route-both-ways",
            Tag::RouteOneWay => "route-one-way",
            Tag::WrongServer => "wrong-server",
            Tag::Outage2h => "outage-2h",
            Tag::DifferenceClock => "difference-clock",
            Tag::Liars => "liars",
            Tag::HiddenLiar => "hidden-liar",
            Tag::SeveralAlike => "several-alike",
            Tag::DrawnAsymmetry => "drawn-asymmetry",
            Tag::SoftHump => "soft-hump",
            Tag::DailyWave => "daily-wave",
            Tag::Past => "past",
            Tag::HardwareStamps => "hardware-stamps",
            Tag::Pulses => "pulses",
        }
    }

    /// The windows that the goals for such scenarios look at.
    pub const fn windows(self) -> &'static [&'static str] {
        match self {
            Tag::StartUp => &["soon", "burst", "minutes"],
            Tag::WrongServer => &["around"],
            Tag::Outage2h => &["before", "end", "recovered"],
            _ => &[],
        }
    }
}
