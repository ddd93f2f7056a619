//! The one random generator of the project.
//!
//! Streams of library generators change between versions and would move golden figures, so this one is written down
//! here: xoshiro256++ (D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", 2021), its state
//! filled by splitmix64. Everything drawn from it uses IEEE 754 arithmetic and libm only, so a seed gives the same bits
//! on every machine.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
    /// The second normal number of a pair that was made and not asked for yet.
    spare: Option<f64>,
}

/// One step of splitmix64: spreads a counter over all 64 bits.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut filler = seed;
        Random { state: core::array::from_fn(|_| splitmix64(&mut filler)), spare: None }
    }

    /// A stream for one part of a world. It depends on the seed and the name only, so that a part which draws more or
    /// fewer numbers leaves the others as they are.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let mut spread = seed;
        Random::new(splitmix64(&mut spread) ^ hash)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in (0, 1]: safe to take the logarithm of.
    pub fn positive(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.uniform() < probability
    }

    /// Standard normal, by the polar method (G. Marsaglia, T. Bray 1964).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = u * u + v * v;
            if square > 0.0 && square < 1.0 {
                let scale = libm::sqrt(-2.0 * libm::log(square) / square);
                self.spare = Some(v * scale);
                return u * scale;
            }
        }
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.positive())
    }

    /// Gamma of a shape, scale 1 (G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            // Their section 6: a draw of shape + 1, shrunk.
            return self.gamma(shape + 1.0) * libm::pow(self.positive(), 1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
            if v > 0.0 && libm::log(self.positive()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// Pareto from 1 on, with tail exponent `alpha`: P(X > x) = x^-alpha.
    pub fn pareto(&mut self, alpha: f64) -> f64 {
        libm::pow(self.positive(), -1.0 / alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The authors' reference implementation gives these from the state 1, 2, 3, 4.
    #[test]
    fn the_stream_is_that_of_the_reference() {
        let mut random = Random { state: [1, 2, 3, 4], spare: None };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(expected.map(|_| random.bits()), expected);
    }

    /// The first outputs of splitmix64 from 0, as published with it.
    #[test]
    fn the_filler_is_that_of_the_reference() {
        let mut state = 0;
        assert_eq!(splitmix64(&mut state), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(&mut state), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn names_give_streams_of_their_own() {
        let first = |seed, name| Random::named(seed, name).bits();
        assert_eq!(first(1, "path"), first(1, "path"));
        assert_ne!(first(1, "path"), first(1, "host"));
        assert_ne!(first(1, "path"), first(2, "path"));
    }

    fn moments(draw: impl Fn(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::new(7);
        let count = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..count {
            let value = draw(&mut random);
            sum += value;
            squares += value * value;
        }
        let mean = sum / f64::from(count);
        (mean, squares / f64::from(count) - mean * mean)
    }

    /// Mean and variance within five standard errors of 200,000 draws.
    #[test]
    fn means_and_variances_are_those_of_the_laws() {
        type Draw = fn(&mut Random) -> f64;
        let laws: [(Draw, f64, f64); 6] = [
            (Random::uniform, 0.5, 1.0 / 12.0),
            (Random::normal, 0.0, 1.0),
            (Random::exponential, 1.0, 1.0),
            (|random| random.gamma(3.0), 3.0, 3.0),
            (|random| random.gamma(0.5), 0.5, 0.5),
            (|random| random.pareto(6.0), 6.0 / 5.0, 6.0 / (25.0 * 4.0)),
        ];
        for (draw, mean, variance) in laws {
            let (seen_mean, seen_variance) = moments(draw);
            assert!((seen_mean - mean).abs() < 5.0 * (variance / 200_000.0).sqrt(), "{seen_mean} {mean}");
            assert!((seen_variance / variance - 1.0).abs() < 0.05, "{seen_variance} {variance}");
        }
    }
}
