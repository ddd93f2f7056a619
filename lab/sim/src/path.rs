//! Paths: how long a packet travels, and whether it arrives.

use crate::queue::Queues;
use crate::random::Random;
use crate::scenario::PathSpec;
use ffclock_units::{Direction, Span};

/// A straggler is held back by at least this [s].
const STRAGGLE_S: f64 = 1.0;

/// The smallest delay of a packet that leaves at `at`, on the route of that time.
pub(crate) fn floor(spec: &PathSpec, direction: Direction, at: Span) -> Span {
    let of = |forward: Span, backward: Span| if direction == Direction::Outgoing { forward } else { backward };
    let changed = |at_least: Span, until: Option<Span>| at >= at_least && until.is_none_or(|until| at < until);
    let routes = spec.route.iter().filter(|route| changed(route.at.0, route.until.map(|until| until.0)));
    routes.fold(of(spec.forward.0, spec.backward.0), |floor, route| floor + of(route.forward.0, route.backward.0))
}

/// A path, both ways.
#[derive(Clone, Debug)]
pub struct Path {
    spec: PathSpec,
    forward: Queues,
    backward: Queues,
    random: Random,
}

impl Path {
    /// Its chance is the stream of this name of a seed.
    pub fn new(spec: &PathSpec, (seed, stream): (u64, &str)) -> Self {
        Path {
            forward: Queues::new(&spec.queue, Direction::Outgoing),
            backward: Queues::new(&spec.queue, Direction::Incoming),
            random: Random::named(seed, stream),
            spec: spec.clone(),
        }
    }

    /// When the copies of a packet arrive that leaves at `at`: none, one or two.
    pub fn travel(&mut self, direction: Direction, at: Span) -> [Option<Span>; 2] {
        let lost = self.random.chance(self.spec.loss);
        let twice = self.random.chance(self.spec.duplicate);
        if lost || !self.is_open(at.as_seconds()) {
            return [None, None];
        }
        let first = at + self.delay(direction, at);
        let second = twice.then(|| at + self.delay(direction, at));
        [Some(first), second]
    }

    /// Forward minimum delay minus backward minimum delay at the beginning.
    pub(crate) fn asymmetry(&self) -> Span {
        self.spec.forward.0 - self.spec.backward.0
    }

    fn is_open(&self, at: f64) -> bool {
        let within = |begin: f64, end: f64| (begin..end).contains(&at);
        let out = self.spec.outage.iter().any(|outage| within(outage.at.seconds(), outage.until.seconds()));
        let up = self.spec.intermittent.is_none_or(|link| libm::fmod(at, link.every.seconds()) < link.up.seconds());
        up && !out
    }

    fn delay(&mut self, direction: Direction, at: Span) -> Span {
        let seconds = at.as_seconds();
        let queues = match direction {
            Direction::Outgoing => &mut self.forward,
            Direction::Incoming => &mut self.backward,
        };
        let mut queueing = queues.delay(seconds, &mut self.random);
        if self.random.chance(self.spec.straggle) {
            queueing += STRAGGLE_S * (1.0 + self.random.exponential());
        }
        let floor = floor(&self.spec, direction, at) + self.flap(direction);
        floor + Span::from_seconds(queueing.max(0.0))
    }

    fn flap(&mut self, direction: Direction) -> Span {
        match self.spec.flap {
            Some(flap) if self.random.chance(flap.share) => match direction {
                Direction::Outgoing => flap.forward.0,
                Direction::Incoming => flap.backward.0,
            },
            _ => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        let text = format!("forward = \"100 us\"\nbackward = \"40 us\"\n{text}");
        Path::new(&toml::from_str(&text).unwrap(), (1, "path"))
    }

    fn delay(path: &mut Path, direction: Direction, second: i64) -> Option<i128> {
        let at = Span::from_secs(second);
        path.travel(direction, at)[0].map(|arrival| (arrival - at).as_nanos())
    }

    #[test]
    fn a_route_changes_and_comes_back() {
        let mut path = path("[[route]]\nat = \"10 s\"\nuntil = \"20 s\"\nforward = \"900 us\"");
        let delays = [5, 15, 25].map(|second| delay(&mut path, Direction::Outgoing, second));
        assert_eq!(delays, [Some(100_000), Some(1_000_000), Some(100_000)]);
        assert_eq!(delay(&mut path, Direction::Incoming, 15), Some(40_000));
        assert_eq!(path.asymmetry(), Span::from_micros(60));
    }

    #[test]
    fn nothing_passes_while_the_path_is_away() {
        let text =
            "outage = [{ at = \"10 s\", until = \"20 s\" }]\nintermittent = { every = \"1 h\", up = \"10 min\" }";
        let mut path = path(text);
        let passes =
            [5, 15, 25, 599, 600, 3599, 3600].map(|second| delay(&mut path, Direction::Outgoing, second).is_some());
        assert_eq!(passes, [true, false, true, true, false, false, true]);
    }

    #[test]
    fn losses_and_copies_have_their_share() {
        let mut path = path("loss = 0.4\nduplicate = 0.1");
        let (mut lost, mut twice) = (0, 0);
        for second in 0..10_000 {
            match path.travel(Direction::Outgoing, Span::from_secs(second)) {
                [None, _] => lost += 1,
                [_, Some(_)] => twice += 1,
                _ => {}
            }
        }
        assert!((3_800..4_200).contains(&lost), "{lost}");
        assert!((520..680).contains(&twice), "{twice}");
    }
}
