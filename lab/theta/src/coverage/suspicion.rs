//! When a failure detector may suspect: after a time without a message, or after a number of messages from others.
//!
//! A receiver that has not heard a sender for a while suspects it, as failure detectors do and the election timeouts of
//! Raft. A silence is what lies between two messages of one sender. It has a length in time, and a length in
//! messages: how many the receiver perceived meanwhile from that other sender which it heard most. Under a load that
//! slows all alike the time grows and the count does not; that is the Theta-Model as a failure detector. Both limits
//! are chosen so that the same share of the silences of a calm list exceeds them, and compared with a second list.

use super::resample::{drawn, interval};
use super::sample::{AssumedBound, Draws, WeightedSample};
use super::{BoundBasis, FailingShare};
use crate::import::{MessageTable, SENDERS_MAX};
use ffclock_sim::Random;
use serde::Serialize;
use std::collections::HashMap;

/// With fewer silences nothing is concluded.
const SILENCES_MIN: usize = 50;

/// What a silence is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SuspicionModel {
    /// Picoseconds.
    Timeout,
    /// Messages from the other sender that was heard most.
    Count,
}

/// How to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct SuspicionOptions {
    /// Who suspects.
    pub receiver: String,
    /// The share of calm silences that may exceed the limits: false suspicions a message.
    pub false_share: f64,
    /// Resamples of the bootstrap.
    pub resamples: u32,
    /// The same seed gives the same intervals.
    pub seed: u64,
}

/// Why there is no advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuspicionError {
    /// A list is too short.
    #[error(
        "the {list} list has {silences} silences between messages to {receiver}: at least {least} are needed",
        least = SILENCES_MIN
    )]
    TooFew {
        /// Calm or loaded.
        list: &'static str,
        /// Who was to hear them.
        receiver: String,
        /// How many there are.
        silences: usize,
    },
    /// The counts of all senders at the latest message of each would take too much memory.
    #[error(
        "the {list} list has messages to {receiver} from more than {SENDERS_MAX} senders: that is more than can be watched"
    )]
    TooManySenders {
        /// Calm or loaded.
        list: &'static str,
        /// Who heard them.
        receiver: String,
    },
}

/// How long a list is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SilenceLength {
    /// Silences of all senders.
    pub silences: usize,
    /// Senders.
    pub senders: usize,
    /// From the first perception to the last, in picoseconds.
    pub time_ps: f64,
    /// The longest silence, in picoseconds.
    pub longest_ps: f64,
    /// The largest count of messages from another sender meanwhile.
    pub most_messages: f64,
    /// Lines that were left out: no messages, or with times more than 50 days from most others.
    pub left_out: u64,
}

/// A limit, and how often it is exceeded although the sender lives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SuspicionLimit {
    /// What it limits.
    pub model: SuspicionModel,
    /// Suspect beyond this: picoseconds, or messages.
    pub limit: f64,
    /// Where it comes from.
    pub basis: BoundBasis,
    /// The 95 % interval of the limit, as far as the length of the calm list goes.
    pub interval: (f64, f64),
    /// The share of calm silences that exceed it.
    pub calm: f64,
    /// The share of loaded silences that exceed it; only with a second list.
    pub loaded: Option<FailingShare>,
}

/// The limits of both kinds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuspicionAdvice {
    /// The share of calm silences that may exceed them.
    pub false_share: f64,
    /// The calm list.
    pub calm: SilenceLength,
    /// The list under load.
    pub loaded: Option<SilenceLength>,
    /// A timeout, and with two senders or more a count.
    pub limits: Vec<SuspicionLimit>,
}

/// The silences of a list, in the order of their ends.
struct Silences {
    length: SilenceLength,
    /// Picoseconds and messages of each.
    of_all: Vec<(f64, f64)>,
}

impl Silences {
    fn of(table: &MessageTable, receiver: &str, list: &'static str) -> Result<Self, SuspicionError> {
        let mut places = HashMap::new();
        // By sender: how often it was heard; and at its latest message: when, and how often each had been heard.
        let (mut heard, mut latest): (Vec<u64>, Vec<(i64, Vec<u64>)>) = (vec![], vec![]);
        let (mut of_all, mut range) = (vec![], None);
        let (perceived, left_out) = table.perceived_by(receiver);
        for (sender, at_ns) in perceived {
            let known = places.len();
            let place = *places.entry(sender).or_insert(known);
            range = Some((range.map_or(at_ns, |(first, _)| first), at_ns));
            if place == SENDERS_MAX {
                return Err(SuspicionError::TooManySenders { list, receiver: receiver.to_owned() });
            }
            if place == known {
                heard.push(0);
                latest.push((at_ns, vec![]));
            } else {
                let (since_ns, before) = &latest[place];
                let others = heard.iter().enumerate().filter(|(other, _)| *other != place);
                let more = others.map(|(other, times)| times - before.get(other).copied().unwrap_or(0));
                let lasted_ps = at_ns.saturating_sub(*since_ns) as f64 * 1e3;
                of_all.push((lasted_ps, more.max().unwrap_or(0) as f64));
            }
            heard[place] += 1;
            latest[place] = (at_ns, heard.clone());
        }
        let silences = of_all.len();
        if silences < SILENCES_MIN {
            return Err(SuspicionError::TooFew { list, receiver: receiver.to_owned(), silences });
        }
        let largest = |value: fn(&(f64, f64)) -> f64| of_all.iter().map(value).fold(0.0, f64::max);
        let length = SilenceLength {
            silences,
            senders: heard.len(),
            time_ps: range.map_or(0.0, |(first, last): (i64, i64)| last.saturating_sub(first) as f64 * 1e3),
            longest_ps: largest(|silence| silence.0),
            most_messages: largest(|silence| silence.1),
            left_out,
        };
        Ok(Silences { length, of_all })
    }

    fn sample(&self, model: SuspicionModel) -> WeightedSample {
        let value = |&(lasted_ps, messages): &(f64, f64)| match model {
            SuspicionModel::Timeout => lasted_ps,
            SuspicionModel::Count => messages,
        };
        let values = self.of_all.iter().enumerate();
        WeightedSample::of(values.map(|(place, silence)| (value(silence), 1.0, place)), self.of_all.len())
    }

    /// How often each silence counts: all once, or drawn again in blocks of the square root of their number.
    fn draws(&self, random: Option<&mut Random>) -> Vec<u32> {
        let count = self.of_all.len();
        random.map_or_else(|| vec![1; count], |random| drawn(count, count.isqrt().max(1), random))
    }
}

/// Limits for the silences of `calm`, compared with those of `loaded`.
///
/// # Errors
/// [`SuspicionError`] for lists that are too short.
pub fn suspicion_advice(
    calm: &MessageTable,
    loaded: Option<&MessageTable>,
    options: &SuspicionOptions,
) -> Result<SuspicionAdvice, SuspicionError> {
    let calm = Silences::of(calm, &options.receiver, "calm")?;
    let loaded = loaded.map(|loaded| Silences::of(loaded, &options.receiver, "loaded")).transpose()?;
    // A single sender has no others that could be counted.
    let models = [SuspicionModel::Timeout, SuspicionModel::Count];
    let models = &models[..if calm.length.senders > 1 { 2 } else { 1 }];
    let limits = models.iter().map(|&model| limit(model, (&calm, loaded.as_ref()), options)).collect();
    let loaded = loaded.map(|loaded| loaded.length);
    Ok(SuspicionAdvice { false_share: options.false_share, calm: calm.length, loaded, limits })
}

fn limit(
    model: SuspicionModel,
    (calm, loaded): (&Silences, Option<&Silences>),
    options: &SuspicionOptions,
) -> SuspicionLimit {
    let (calm_sample, loaded_sample) = (calm.sample(model), loaded.map(|loaded| loaded.sample(model)));
    let outcome = |calm_draws: &Draws, loaded_draws: &Draws| {
        let found = calm_sample.assumed(&[options.false_share], calm_draws).first().copied();
        let AssumedBound { value, basis } =
            found.unwrap_or(AssumedBound { value: f64::NAN, basis: BoundBasis::Largest });
        // There is no part of a message.
        let value = if model == SuspicionModel::Count { value.ceil() } else { value };
        let failing = loaded_sample.as_ref().map(|sample| sample.failing(&[value], loaded_draws)[0]);
        (value, basis, failing)
    };
    let mut random = Random::named(options.seed, "suspicion");
    let draws = |random: Option<&mut Random>, of: Option<&Silences>| of.map_or(vec![], |of| of.draws(random));
    let whole = outcome(&calm.draws(None), &draws(None, loaded));
    let again: Vec<_> = (0..options.resamples)
        .map(|_| {
            let calm_draws = calm.draws(Some(&mut random));
            outcome(&calm_draws, &draws(Some(&mut random), loaded))
        })
        .collect();
    let (limit, basis, failing) = whole;
    SuspicionLimit {
        model,
        limit,
        basis,
        interval: interval(again.iter().map(|(limit, ..)| *limit)).unwrap_or((limit, limit)),
        calm: calm_sample.failing(&[limit], &calm.draws(None))[0],
        loaded: failing
            .map(|first| FailingShare::of(std::iter::once(first).chain(again.iter().filter_map(|one| one.2)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::TimeUnit;

    /// Three senders with a message every 10 ms, all `slow` times slower where there is load, with some noise.
    fn list(slow: u64, only_one: bool) -> MessageTable {
        let mut random = Random::named(slow, "list");
        let mut rows = vec![];
        for sender in 0..3_u64 {
            let mut at_us = 0;
            let stretched = if only_one && sender > 0 { 1 } else { slow };
            // All go on for about as long.
            let messages = if only_one { 3000 / stretched } else { 3000 };
            for number in 0..messages {
                at_us += stretched * (8_000 + random.bits() % 4_000);
                rows.push((at_us, format!("s{sender},r,{number},{at_us},{at_us}\n")));
            }
        }
        rows.sort();
        let text: String = rows.into_iter().map(|(_, row)| row).collect();
        let text = "sender,receiver,id,sent,perceived\n".to_owned() + &text;
        MessageTable::from_text(text.as_bytes(), TimeUnit::Microseconds).expect("a list")
    }

    fn advised(loaded: &MessageTable) -> Vec<SuspicionLimit> {
        let options = SuspicionOptions { receiver: "r".to_owned(), false_share: 1e-2, resamples: 199, seed: 1 };
        suspicion_advice(&list(1, false), Some(loaded), &options).expect("long enough").limits
    }

    #[test]
    fn more_senders_than_can_be_watched_are_refused() {
        let advice = |senders: usize| {
            let rows = (0..senders * 2).map(|row| format!("s{},r,{row},{row},{row}\n", row % senders));
            let text = "sender,receiver,id,sent,perceived\n".to_owned() + &rows.collect::<String>();
            let list = MessageTable::from_text(text.as_bytes(), TimeUnit::Microseconds).expect("a list");
            let options = SuspicionOptions { receiver: "r".to_owned(), false_share: 1e-2, resamples: 1, seed: 1 };
            suspicion_advice(&list, None, &options).map(|advice| advice.calm.senders)
        };
        assert_eq!(advice(SENDERS_MAX), Ok(SENDERS_MAX));
        let refused = SuspicionError::TooManySenders { list: "calm", receiver: "r".to_owned() };
        assert_eq!(advice(SENDERS_MAX + 1), Err(refused));
    }

    #[test]
    fn a_load_on_all_breaks_the_timeout_and_not_the_count() {
        let [timeout, count] = advised(&list(5, false))[..] else { panic!("two limits") };
        assert!((11.5e9..12.1e9).contains(&timeout.limit), "{timeout:?}");
        assert!(timeout.calm <= 0.01 && timeout.loaded.expect("two lists").low > 0.99, "{timeout:?}");
        assert!(count.limit <= 3.0 && count.loaded.expect("two lists").high < 0.02, "{count:?}");
    }

    #[test]
    fn a_load_on_one_sender_breaks_both() {
        let [timeout, count] = advised(&list(5, true))[..] else { panic!("two limits") };
        assert!(timeout.loaded.expect("two lists").low > 0.05, "{timeout:?}");
        assert!(count.loaded.expect("two lists").low > 0.05, "{count:?}");
    }

    #[test]
    fn too_short_a_list_is_refused() {
        let options = SuspicionOptions { receiver: "q".to_owned(), false_share: 0.1, resamples: 39, seed: 1 };
        let found = suspicion_advice(&list(1, false), None, &options);
        assert!(matches!(found, Err(SuspicionError::TooFew { list: "calm", silences: 0, .. })), "{found:?}");
    }
}
