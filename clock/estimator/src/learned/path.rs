//! What is known of the path to one server beside its floors, and of the server's own time.

use super::ambiguity::FloorAmbiguity;
use super::learning::Learning;
use super::path_change::Displacement;
use super::reinitialise::Reinitialisation;
use crate::LearnedConfig;
use crate::bank::FloorBlend;
use crate::bank::density::Components;
use crate::tuning::ensemble::{KNOWN_PART, LEAST_SYSTEMATIC, RETURNED, UNLIKE_PART, UNLIKE_ROOM};
use crate::tuning::learned::{EAGER, REFINED_AFTER};

/// The path to a server and back.
#[derive(Clone, Debug)]
pub struct ServerPath {
    pub learning: Learning,
    pub reinitialisation: Reinitialisation,
    pub displacement: Displacement,
    pub ambiguity: FloorAmbiguity,
    /// Exchanges since its floors began; none of a server that has no part in the clock.
    exchanges: u64,
    /// Since its last exchange, s.
    pub silence: f64,
    time: ServerTime,
    /// Half of how much longer the way to the server is said to be than the way back, us.
    pub half_asymmetry: f64,
    /// Its weight in the published time.
    pub weight: f64,
    /// Its floors still show the server's time: none has moved since they began.
    follows_floors: bool,
    /// While its time is away from the others'.
    absence: Option<Absence>,
}

/// A server whose time left the others'.
#[derive(Clone, Copy, Debug)]
struct Absence {
    /// What its floors and its time were before.
    shown: FloorBlend,
    time: ServerTime,
    /// The farthest that its floors have shown it away, us, as far as they are known.
    farthest: f64,
}

/// A server's own time, as symmetric floors show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerTime {
    /// How far it is ahead of theta, us.
    pub ahead: f64,
    /// The variance of this, us^2.
    pub variance: f64,
}

impl ServerPath {
    pub fn new(config: &LearnedConfig, components: &Components, half_asymmetry: f64) -> Self {
        let learning = Learning::new(config, components.clone());
        ServerPath {
            reinitialisation: Reinitialisation::new(&learning, config),
            learning,
            displacement: Displacement::default(),
            ambiguity: FloorAmbiguity::NEW,
            exchanges: 0,
            silence: 0.0,
            time: ServerTime::default(),
            half_asymmetry,
            weight: 0.0,
            follows_floors: false,
            absence: None,
        }
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.learning.bytes() + self.reinitialisation.bytes()
    }

    pub fn has_joined(&self) -> bool {
        self.exchanges > 0
    }

    /// Enough exchanges have passed for the floors to say how short the path is.
    pub fn shows_its_length(&self) -> bool {
        self.exchanges >= REFINED_AFTER
    }

    /// Enough exchanges have passed for a packet before the floor to mean something.
    pub fn is_settled(&self) -> bool {
        self.exchanges >= EAGER as u64
    }

    /// How far the clock can be off for what is not known of the floors, us. Floors that rare packets hold are known as
    /// the filter says.
    pub fn ambiguity_deviation(&self) -> f64 {
        if self.learning.holds_floors() { 0.0 } else { self.ambiguity.deviation() }
    }

    /// The server has no part in the clock from here on.
    pub fn leave(&mut self) {
        self.exchanges = 0;
    }

    /// The clock begins with this server: its time is that of the clock, as its floors show it.
    pub fn begin(&mut self) {
        self.forget();
        (self.time, self.follows_floors) = (ServerTime::default(), true);
    }

    /// The server joins a clock that runs.
    pub fn join(&mut self) {
        self.forget();
        self.learning.restart();
        self.follows_floors = true;
    }

    /// Takes over what a filter of this server alone knows of the path; `time` is that filter's.
    pub fn adopt(&mut self, own: &ServerPath, time: ServerTime) {
        self.forget();
        self.learning.clone_from(&own.learning);
        (self.ambiguity, self.exchanges) = (own.ambiguity, own.exchanges);
        (self.time, self.follows_floors) = (time, own.follows_floors);
    }

    fn forget(&mut self) {
        self.reinitialisation.clear();
        self.displacement = Displacement::default();
        self.ambiguity = FloorAmbiguity::NEW;
        self.absence = None;
        (self.exchanges, self.silence) = (1, 0.0);
    }

    /// Another exchange was used.
    pub fn count(&mut self) {
        self.exchanges = self.exchanges.saturating_add(1);
        self.silence = 0.0;
    }

    /// The server's own time, as its floors last showed it.
    pub fn time(&self) -> ServerTime {
        self.time
    }

    /// Takes over what the floors show, as long as they show the server's time.
    pub fn follow(&mut self, floors: &FloorBlend) {
        if let Some(absence) = &mut self.absence {
            let Absence { shown, time, .. } = *absence;
            if absence.ends(floors) {
                self.come_back();
            } else {
                self.time = ServerTime { ahead: time.ahead + floors.ahead - shown.ahead, variance: floors.variance };
            }
        } else if self.follows_floors {
            self.time = ServerTime { ahead: floors.ahead - self.half_asymmetry, variance: floors.variance };
        }
    }

    /// The server's time left those of the others, where its floors were `shown`: from here on they show where it is.
    pub fn depart(&mut self, shown: FloorBlend) {
        self.absence.get_or_insert(Absence { shown, time: self.time, farthest: 0.0 });
    }

    /// The server's time is where it was before it left. What its floors show besides is the path's.
    pub fn come_back(&mut self) {
        if let Some(Absence { time, .. }) = self.absence.take() {
            (self.time, self.follows_floors) = (time, false);
        }
    }

    /// The floors moved for another reason than a change of the path.
    pub fn lose_displacement(&mut self) {
        self.displacement = Displacement::default();
    }

    /// What its time was before it left the others', while it is away.
    pub fn time_before(&self) -> Option<ServerTime> {
        self.absence.map(|absence| absence.time)
    }

    /// Whether its time is away from the others'.
    pub fn has_departed(&self) -> bool {
        self.absence.is_some()
    }

    /// The server's time as it was before it crept away by `moved`, us, stands from here on.
    pub fn keep_time_before(&mut self, moved: f64) {
        if self.follows_floors && self.absence.is_none() {
            self.time.ahead -= moved;
        }
        self.come_back();
        self.follows_floors = false;
    }

    /// The server's time, us, where its floors do not show it.
    pub fn kept_time(&self) -> Option<f64> {
        (self.has_joined() && self.absence.is_none() && !self.follows_floors).then_some(self.time.ahead)
    }

    /// A floor moved: from here on the floors show the path.
    pub fn keep_time(&mut self) {
        self.follows_floors = false;
    }

    /// The server's time stepped by this, us.
    pub fn step(&mut self, step: f64) {
        if self.absence.is_none() {
            self.time.ahead += step;
        }
    }
}

impl Absence {
    /// Whether floors are where they were, or did not move apart: then the path changed and not the server's time.
    /// Floors that are known less well than how far away the server was do not show that it is back.
    fn ends(&mut self, now: &FloorBlend) -> bool {
        let Absence { shown, farthest, .. } = self;
        let there = now.floors[0] - shown.floors[0];
        let back = now.floors[1] - shown.floors[1];
        let room = RETURNED * libm::sqrt(shown.variance + now.variance + LEAST_SYSTEMATIC);
        let away = (now.ahead - shown.ahead).abs();
        if away > room {
            *farthest = farthest.max(away);
        }
        let is_here = away <= room && room <= KNOWN_PART * *farthest;
        is_here || (there + back).abs() > UNLIKE_PART * (there - back).abs() + UNLIKE_ROOM * room
    }
}
