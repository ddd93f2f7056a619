//! The generated traces: what happens in each. README.md in the directory of each says what it guards.

use super::world::{Form, HOUR, LEAP_END, MS, Oscillator, Path, Ps, SECOND, Segment, Server, US, World};

/// 2026-11-21T00:00:00Z.
const START: i128 = 1_795_219_200;

/// A TSC of 2.994 GHz that runs 21 ppm fast and walks 2e-8 within hours.
const TSC: Oscillator = Oscillator { hertz: 2_994_374_000, skew: 21_000_000_000, walk: 300_000, wave: (0, 1) };

const LAN: Path = Path { forward: 140 * US, backward: 120 * US, queueing: 8 * US, heavy: (10, 200 * US) };
/// Forty milliseconds away, four of them asymmetry, and half the packets meet traffic.
const FAR: Path = Path { forward: 21 * MS, backward: 17 * MS, queueing: 300 * US, heavy: (500, 500 * US) };

const GPS: Server = Server { ahead: 0, stratum: 1, refid: "GPS", root_distance: US, leap: "none" };

/// An hour of requests every 16 s to a server next door.
const CALM: Segment = Segment { seconds: HOUR, poll: 16 * SECOND, path: LAN, server: GPS, lost: 0, epoch: 0 };

impl Segment {
    const fn hours(self, hours: u64) -> Segment {
        Segment { seconds: hours * HOUR, ..self }
    }

    const fn seconds(self, seconds: u64) -> Segment {
        Segment { seconds, ..self }
    }

    const fn lossy(self, lost: i128) -> Segment {
        Segment { lost, ..self }
    }

    const fn on(self, path: Path) -> Segment {
        Segment { path, ..self }
    }

    const fn with(self, server: Server) -> Segment {
        Segment { server, ..self }
    }

    const fn polled(self, poll: Ps) -> Segment {
        Segment { poll, ..self }
    }

    const fn in_epoch(self, epoch: u64) -> Segment {
        Segment { epoch, ..self }
    }
}

fn world(seed: u64, segments: Vec<Segment>) -> World {
    World { seed, start: START, oscillator: TSC, remarks: "", form: Form::Nanoseconds, segments }
}

/// The world of a generated trace; `None` of a recorded one.
pub fn of(name: &str) -> Option<World> {
    Some(match name {
        "quiet-lan" => world(1, vec![CALM.hours(24)]),
        "far-path" => World { form: Form::Decimals, ..world(2, vec![CALM.hours(12).on(FAR).polled(64 * SECOND)]) },
        "level-shifts" => level_shifts(),
        "outage" => world(4, vec![CALM.hours(2), CALM.hours(2).lossy(1_000), CALM.hours(1)]),
        "server-lie" => server_lie(),
        "poll-changes" => poll_changes(),
        "hpet" => hpet(),
        "losses" => losses(),
        "identity-flap" => identity_flap(),
        "leap-second" => leap_second(),
        "warm-room" => warm_room(),
        "counter-epochs" => counter_epochs(),
        _ => return None,
    })
}

/// The way out gets 900 us longer for three hours, and short again.
fn level_shifts() -> World {
    let detour = Path { forward: LAN.forward + 900 * US, ..LAN };
    world(3, vec![CALM.hours(2), CALM.hours(3).on(detour), CALM.hours(2)])
}

/// For 300 s the server is 150 ms ahead and vouches for it.
fn server_lie() -> World {
    let liar = Server { ahead: 150 * MS, ..GPS };
    let segments = vec![CALM.hours(2), CALM.seconds(300).with(liar), CALM.hours(2)];
    World { form: Form::Everything, ..world(5, segments) }
}

fn poll_changes() -> World {
    let polled = |hours: u64, poll: Ps| CALM.hours(hours).polled(poll);
    let segments = vec![
        polled(1, 16 * SECOND),
        polled(3, 64 * SECOND),
        polled(12, 1024 * SECOND),
        CALM.seconds(600).polled(2 * SECOND),
        polled(4, 256 * SECOND),
        polled(1, 16 * SECOND),
    ];
    world(6, segments)
}

/// A tick of the counter is 70 ns long, and its oscillator 60 ppm slow.
fn hpet() -> World {
    let oscillator = Oscillator { hertz: 14_318_180, skew: -60_000_000_000, ..TSC };
    let remarks = "# counter=hpet\n# frequency_hz=14318180\n";
    World { oscillator, remarks, ..world(7, vec![CALM.hours(4)]) }
}

/// Nearly every third request is lost, and each hour ten minutes' worth.
fn losses() -> World {
    let hour = [CALM.seconds(3_000).lossy(300), CALM.seconds(600).lossy(990)];
    World { form: Form::Decimals, ..world(8, hour.repeat(4)) }
}

/// Two servers behind one address, 40 us apart in time as both admit, on ways of different lengths; the network chooses
/// again every 160 s.
fn identity_flap() -> World {
    let one = Server { ahead: 20 * US, refid: "192.0.2.1", stratum: 2, root_distance: 50 * US, ..GPS };
    let other = Server { ahead: -20 * US, refid: "192.0.2.2", stratum: 3, root_distance: 60 * US, ..GPS };
    let detour = Path { forward: 330 * US, backward: 340 * US, ..LAN };
    let pair = [CALM.seconds(160).with(one), CALM.seconds(160).with(other).on(detour)];
    World { form: Form::Everything, ..world(9, pair.repeat(45)) }
}

/// The last hours of 2016 with the leap second announced, and the first ones of 2017.
fn leap_second() -> World {
    let announced = Server { leap: "insert", ..GPS };
    let segments = vec![CALM.seconds(2 * HOUR + 10).with(announced), CALM.hours(2)];
    World { start: LEAP_END - 2 * 3_600 - 7, form: Form::Everything, ..world(10, segments) }
}

/// The temperature of the room swings the rate by 0.15 ppm either way in four hours.
fn warm_room() -> World {
    let oscillator = Oscillator { wave: (150_000_000, 4 * 3_600), ..TSC };
    World { oscillator, ..world(11, vec![CALM.hours(24).polled(64 * SECOND)]) }
}

/// The host sleeps twice, and its counter restarts each time.
fn counter_epochs() -> World {
    let segments = vec![CALM, CALM.in_epoch(1), CALM.in_epoch(2)];
    World { form: Form::Everything, ..world(12, segments) }
}
