use super::Belief::{Falseticker, Truechimer, Undecided};
use super::*;
use alloc::vec;
use ffclock_units::{Bound, Counter, Estimate, Rate, Span, StandardUncertainty, Status, Ticks};
use proptest::prelude::*;

fn of_micros((earliest, latest): (i64, i64)) -> ProvenInterval {
    ProvenInterval { earliest: at_micros(earliest), latest: at_micros(latest) }
}

fn at_micros(micros: i64) -> Moment<Tai> {
    Moment::from_origin(Span::from_micros(micros))
}

fn nominal() -> Period {
    Period::from_hertz(1e9).unwrap()
}

fn voter(ends: (i64, i64)) -> Voter {
    let growth = GrowthRate::of(Rate::from_ppm(1.0));
    Voter { interval: of_micros(ends), period: nominal(), growth, is_trusted: false }
}

fn trusted(ends: (i64, i64)) -> Voter {
    Voter { is_trusted: true, ..voter(ends) }
}

fn voted(voters: &[Voter]) -> Option<VoteResult> {
    vote(voters, Unheard::default(), &VotingRules::default())
}

fn judged(intervals: &[(i64, i64)]) -> Option<Vec<Belief>> {
    let intervals: Vec<ProvenInterval> = intervals.iter().copied().map(of_micros).collect();
    beliefs(&intervals, 0)
}

/// A clock at `micros` with a bound of its own of 10 ms.
fn clock(micros: i64, period: Period) -> Estimate {
    let growth = GrowthRate::of(Rate::from_ppm(1.0));
    Estimate {
        counter: Counter::from_raw(0),
        time: at_micros(micros),
        period,
        uncertainty: StandardUncertainty::ZERO,
        noise: StandardUncertainty::ZERO,
        uncertainty_growth: growth,
        bound: Bound::of(Span::from_millis(10)),
        bound_growth: growth,
        difference_period: period,
        difference_bound: growth,
        difference_uncertainty: growth,
        status: Status::Synchronised,
    }
}

#[test]
fn one_server_is_believed_and_none_decides_nothing() {
    assert_eq!(judged(&[(0, 5)]), Some(vec![Truechimer]));
    assert_eq!(judged(&[]), None);
    assert_eq!(voted(&[]), None);
    let alone = voted(&[voter((0, 5))]).unwrap();
    assert_eq!((alone.strict, alone.believed), (of_micros((0, 5)), of_micros((0, 5))));
    assert_eq!((alone.deciders, alone.tolerated), (1, 0));
}

#[test]
fn the_narrowest_claim_does_not_win_against_a_majority() {
    let liar = (50_000, 50_100);
    assert_eq!(judged(&[(-15_000, 15_000), (-14_000, 16_000), liar]), Some(vec![Truechimer, Truechimer, Falseticker]));
    assert_eq!(judged(&[liar, (0, 5)]), None, "one against one");
    assert_eq!(judged(&[liar, (0, 5), (7, 9)]), None, "each alone");
    assert_eq!(judged(&[liar, liar, (0, 5), (4, 9)]), None, "two against two");
}

#[test]
fn two_of_five_and_three_of_seven_liars_are_outvoted_even_when_they_agree() {
    let (honest, liar) = ((-10, 10), (500, 501));
    let five = judged(&[liar, honest, honest, liar, honest]);
    assert_eq!(five, Some(vec![Falseticker, Truechimer, Truechimer, Falseticker, Truechimer]));
    let seven = judged(&[liar, liar, liar, honest, honest, honest, honest]).unwrap();
    assert_eq!(seven.iter().filter(|belief| **belief == Truechimer).count(), 4);
}

#[test]
fn a_server_without_knowledge_cannot_decide_between_two_that_differ() {
    assert_eq!(judged(&[(0, 5), (100, 105), (-1_000, 1_000)]), Some(vec![Undecided, Undecided, Truechimer]));
    let four = judged(&[(0, 10), (5, 100), (5, 100), (90, 120)]);
    assert_eq!(four, Some(vec![Undecided, Truechimer, Truechimer, Undecided]));
}

#[test]
fn two_liars_who_please_the_vague_servers_do_not_outvote_the_exact_one() {
    let [vague, vaguer, exact] = [(-15_000, 15_000), (-14_000, 16_000), (-100, 100)];
    let liar = (10_000, 10_100);
    let verdict = judged(&[vague, vaguer, exact, liar, liar]).unwrap();
    assert_eq!(verdict, [Truechimer, Truechimer, Undecided, Undecided, Undecided]);
}

#[test]
fn intervals_that_touch_agree() {
    assert_eq!(judged(&[(0, 5), (5, 9)]), Some(vec![Truechimer, Truechimer]));
}

#[test]
fn servers_that_are_still_expected_have_a_vote() {
    let one = [of_micros((0, 5))];
    assert_eq!(beliefs(&one, 0), Some(vec![Truechimer]));
    assert_eq!(beliefs(&one, 1), None);
    let two = [of_micros((0, 5)), of_micros((1, 6))];
    assert_eq!(beliefs(&two, 1), Some(vec![Truechimer, Truechimer]));
    assert_eq!(beliefs(&two, 2), None);
}

/// Marzullo's example, with intervals whose best intersection is held by three of four.
#[test]
fn what_all_but_some_share_runs_from_the_first_to_the_last_such_point() {
    let intervals = [[8, 12], [11, 13], [14, 15], [10, 14]];
    assert_eq!(covered(&intervals, 3), Some([11, 12]));
    assert_eq!(covered(&intervals, 2), Some([10, 14]));
    assert_eq!(covered(&intervals, 1), Some([8, 15]));
    assert_eq!(covered(&intervals, 4), None);
}

#[test]
fn beside_two_vague_servers_an_exact_one_narrows_only_what_is_believed() {
    let result = voted(&[voter((-15_000, 15_000)), voter((-14_000, 16_000)), voter((-100, 100))]).unwrap();
    assert_eq!(result.believed, of_micros((-100, 100)));
    assert_eq!(result.strict, of_micros((-14_000, 15_000)), "it may be false within these");
    assert_eq!((result.deciders, result.tolerated), (3, 1));
}

#[test]
fn what_is_believed_never_leaves_the_strict_interval() {
    let result = voted(&[voter((0, 100)), voter((-50, 10)), voter((40, 200))]).unwrap();
    assert_eq!(result.beliefs, [Truechimer, Undecided, Undecided]);
    assert_eq!((result.strict, result.believed), (of_micros((0, 100)), of_micros((0, 100))));
}

#[test]
fn fewer_liars_may_be_tolerated_than_the_largest_minority() {
    let voters = [voter((-10, 10)), voter((-5, 20)), voter((0, 30)), voter((50, 60))];
    let with = |tolerate| vote(&voters, Unheard::default(), &VotingRules { tolerate, quorum: 1 });
    assert_eq!(with(None).unwrap().strict, of_micros((0, 10)));
    assert_eq!(with(Some(1)), with(None));
    assert_eq!(with(Some(7)), with(None), "never half of them");
    assert_eq!(with(Some(0)), None, "one is false, and none may be");
}

#[test]
fn a_quorum_is_a_least_number_that_agrees() {
    let voters = [voter((0, 5)), voter((1, 6)), voter((50, 60))];
    let with = |quorum| vote(&voters, Unheard::default(), &VotingRules { tolerate: None, quorum });
    assert!(with(2).is_some());
    assert_eq!(with(3), None);
}

#[test]
fn a_trusted_server_decides_alone_against_all_others() {
    let result = voted(&[voter((500, 510)), trusted((0, 100)), voter((500, 510)), voter((20, 90))]).unwrap();
    assert_eq!(result.beliefs, [Falseticker, Truechimer, Falseticker, Truechimer]);
    assert_eq!((result.strict, result.believed), (of_micros((0, 100)), of_micros((20, 90))));
    assert_eq!((result.deciders, result.tolerated), (1, 0));
    let two = [trusted((0, 5)), trusted((10, 15)), voter((0, 20))];
    assert_eq!(voted(&two), None, "the trusted ones contradict each other");
    let silent = Unheard { trusted: 1, others: 0 };
    assert_eq!(vote(&[voter((0, 5))], silent, &VotingRules::default()), None, "a trusted one is awaited");
}

#[test]
fn within_what_a_trusted_server_leaves_possible_the_others_vote() {
    let result = voted(&[trusted((0, 1_000)), voter((100, 110)), voter((700, 710))]).unwrap();
    assert_eq!(result.beliefs, [Truechimer, Undecided, Undecided]);
    assert_eq!(result.believed, of_micros((0, 1_000)));
    let result = voted(&[trusted((0, 1_000)), voter((100, 110)), voter((105, 120)), voter((700, 710))]).unwrap();
    assert_eq!(result.beliefs, [Truechimer, Truechimer, Truechimer, Falseticker]);
    assert_eq!(result.believed, of_micros((105, 110)));
    let unheard = Unheard { trusted: 0, others: 2 };
    let early = vote(&[trusted((0, 1_000)), voter((100, 110))], unheard, &VotingRules::default()).unwrap();
    assert_eq!(early.beliefs, [Truechimer, Undecided], "two more may contradict it");
}

#[test]
fn a_clock_outside_of_what_is_shared_is_bounded_by_the_farther_end() {
    let voters = [voter((0, 100)), voter((60, 200)), voter((-10, 80))];
    let result = voted(&voters).unwrap();
    assert_eq!((result.believed, result.strict), (of_micros((60, 80)), of_micros((0, 100))));
    let bounds = result.bounds(&clock(10, nominal()), &voters);
    assert_eq!(bounds.believed.bound, Bound::of(at_micros(80) - at_micros(10)));
    assert_eq!(bounds.strict.bound, Bound::of(at_micros(100) - at_micros(10)));
}

#[test]
fn one_server_keeps_its_own_bound() {
    let own = clock(3, nominal());
    let voters = [voter((0, 5))];
    let bounds = voted(&voters).unwrap().bounds(&own, &voters);
    assert_eq!((bounds.believed, bounds.strict), (own.growing_bound(), own.growing_bound()));
}

#[test]
fn a_suspect_narrows_no_bound() {
    let wide = [voter((-100, 50)), voter((-50, 100)), voter((-100, 100))];
    let narrow = Voter { growth: GrowthRate::default(), ..voter((40, 41)) };
    let voters = [wide[0], wide[1], narrow, wide[2]];
    let result = voted(&voters).unwrap();
    assert_eq!((result.believed, result.strict), (of_micros((40, 41)), of_micros((-50, 50))));
    let suspects = [false, false, true, false];
    assert_eq!(result.believed_beside(&suspects, &voters), of_micros((-50, 50)));
    let own = clock(0, nominal());
    let [all, beside] = [result.bounds(&own, &voters), result.bounds_beside(&suspects, &own, &voters)];
    let from = |micros| Bound::of(at_micros(0) - at_micros(micros));
    assert_eq!((all.believed.bound, all.strict.bound), (Bound::of(Span::from_micros(41)), from(-50)));
    assert_eq!((beside.believed.bound, beside.strict.bound), (from(-50), from(-100)), "one more may be false");
    assert!(beside.believed.growth > all.believed.growth && beside.strict.growth >= all.strict.growth, "{beside:?}");
    assert_eq!(result.bounds_beside(&[false; 4], &own, &voters), all);
}

#[test]
fn suspects_count_where_none_is_left_that_is_believed_and_decides() {
    let common = Estimate { bound: Bound::UNKNOWN, ..clock(2, nominal()) };
    let voters = [voter((0, 5)), voter((1, 6)), voter((70, 80))];
    let result = voted(&voters).unwrap();
    let all = result.bounds(&common, &voters);
    assert_eq!(result.bounds_beside(&[true; 3], &common, &voters), all);
    assert_eq!(result.bounds_beside(&[true, true, false], &common, &voters), all, "a falseticker alone");
    let by_trust = [trusted((0, 5)), voter((1, 6)), voter((2, 7))];
    let result = voted(&by_trust).unwrap();
    let suspects = [true, false, false];
    assert_eq!(result.bounds_beside(&suspects, &common, &by_trust), result.bounds(&common, &by_trust), "none decides");
}

/// One of three leads the clock away, and the others seem to have left it.
#[test]
fn what_most_share_is_covered_although_they_are_suspect() {
    let voters = [voter((50, 51)), voter((-10, 60)), voter((-20, 55))];
    let result = voted(&voters).unwrap();
    let common = Estimate { bound: Bound::UNKNOWN, ..clock(50, nominal()) };
    let led = result.bounds_beside(&[false, true, true], &common, &voters);
    assert_eq!(led.believed.bound, Bound::of(at_micros(50) - at_micros(-10)));
    assert!(led.strict.bound >= led.believed.bound);
    let found = result.bounds_beside(&[true, false, false], &common, &voters);
    assert_eq!(found.believed.bound, led.believed.bound);
    let trusted = voters.map(|voter| Voter { is_trusted: true, ..voter });
    let beside_others: Vec<Voter> = trusted.into_iter().chain([voter((-100, 100)); 4]).collect();
    let suspects = [false, true, true, false, false, false, false];
    let led_beside_others = voted(&beside_others).unwrap().bounds_beside(&suspects, &common, &beside_others);
    assert_eq!(led_beside_others.believed.bound, led.believed.bound, "who decides nothing acquits no one");
    let two = [voter((50, 51)), voter((40, 70))];
    let alone = voted(&two).unwrap().bounds_beside(&[true, false], &common, &two);
    assert_eq!(alone.believed.bound, Bound::of(at_micros(70) - at_micros(50)), "one's interval bounds the clock");
}

#[test]
fn the_rate_is_believed_as_the_time_is() {
    let ppm = Rate::from_ppm;
    let at = |rate, growth| Voter {
        period: nominal().stretched(ppm(rate)),
        growth: GrowthRate::of(ppm(growth)),
        ..voter((-10, 10))
    };
    let voters = [at(0.0, 500.0), at(0.1, 0.5), at(0.0, 1.0)];
    let bounds = voted(&voters).unwrap().bounds(&clock(0, nominal()), &voters);
    let believed = bounds.believed.growth.as_rate().as_ppm();
    assert!((believed - 0.6).abs() < 1e-6, "the newcomer's 500 ppm do not widen it: {believed}");
    let strict = bounds.strict.growth.as_rate().as_ppm();
    assert!((strict - 1.0).abs() < 1e-6, "one of the three may be false: {strict}");
    let apart = [at(0.0, 1.0), at(300.0, 1.0)];
    let bounds = voted(&apart).unwrap().bounds(&clock(0, nominal()), &apart);
    assert!(bounds.strict.growth >= GrowthRate::of(ppm(300.9)), "rates that contradict each other are all covered");
    assert_eq!(bounds.believed.growth, bounds.strict.growth, "and any of them may be the right one");
}

#[test]
fn an_interval_is_bounded_by_the_one_that_knows_the_rate_best_unless_they_contradict_one_another() {
    let ppm = |ppm: f64| GrowthRate::of(Rate::from_ppm(ppm));
    let at = |rate: f64, growth: f64| (nominal().stretched(Rate::from_ppm(rate)), ppm(growth));
    let growth = |proven: &[(Period, GrowthRate)]| {
        interval_growth(nominal(), proven.iter().copied()).map(|growth| growth.as_rate().as_ppm())
    };
    let is = |found: Option<f64>, expected: f64| found.is_some_and(|found| (found - expected).abs() < 1e-4);
    assert!(is(growth(&[at(0.0, 5.0), at(0.1, 0.5)]), 0.6));
    assert!(is(growth(&[at(0.0, 1.0), at(30.0, 1.0)]), 31.0));
    assert_eq!(growth(&[]), None);
}

/// A voter whose claims are true: the true time is 0 at the age of 0, and the true rate is `rate` [ppb].
fn honest((before, after): (i64, i64), rate: i64, (below, above): (i64, i64)) -> Voter {
    let period = nominal().stretched(Rate::from_ppb((rate + above - below) as f64));
    let growth = GrowthRate::of(Rate::from_ppb((below + above) as f64 * 1.000_1 + 0.01));
    Voter { interval: of_micros((-before, after)), period, growth, is_trusted: false }
}

fn any_lie() -> impl Strategy<Value = Voter> {
    let ends = (-3_000i64..3_000, 0i64..1_000).prop_map(|(begin, width)| (begin, begin + width));
    (ends, -50_000i64..50_000, 0i64..1_000).prop_map(|(ends, rate, growth)| Voter {
        period: nominal().stretched(Rate::from_ppb(rate as f64)),
        growth: GrowthRate::of(Rate::from_ppb(growth as f64)),
        ..voter(ends)
    })
}

fn is_wider(one: &ProvenInterval, other: &ProvenInterval) -> bool {
    one.earliest < other.earliest || one.latest > other.latest
}

proptest! {
    /// A minority of liars, each excluded by an honest server, never makes a truechimer of one that is wrong, and
    /// never makes a falseticker of an honest server; what is believed holds the true time.
    #[test]
    fn no_visible_lie_of_a_minority_is_believed(
        honest in prop::collection::vec((0i64..1_000, 0i64..1_000), 1..9),
        liars in prop::collection::vec((-3_000i64..3_000, 0i64..1_000), 0..8),
    ) {
        // The true time is 0.
        let honest: Vec<_> = honest.iter().map(|&(before, after)| voter((-before, after))).collect();
        let lies = liars.iter().map(|&(begin, width)| voter((begin, begin + width)));
        let is_visible = |lie: &Voter| honest.iter().any(|other| lie.interval.meet(&other.interval).is_none());
        let mut voters = honest.clone();
        voters.extend(lies.filter(is_visible).take(honest.len() - 1));
        let result = voted(&voters).expect("the honest servers are a majority");
        prop_assert!(result.beliefs[..honest.len()].iter().all(|belief| *belief != Falseticker));
        for (voter, belief) in voters.iter().zip(&result.beliefs) {
            prop_assert!(*belief != Truechimer || voter.interval.contains(at_micros(0)));
        }
        prop_assert!(result.believed.contains(at_micros(0)));
        prop_assert!(!is_wider(&result.believed, &result.strict));
    }

    /// Up to f liars of any kind, who may please whom they like: the strict bound covers at every age, and with none
    /// of them the believed one does as well. Neither is narrower than the other allows.
    #[test]
    fn the_bounds_cover_the_truth_at_every_age(
        truth in prop::collection::vec(((0i64..1_000, 0i64..1_000), (0i64..2_000, 0i64..2_000)), 1..9),
        rate in -20_000i64..20_000,
        lies in prop::collection::vec(any_lie(), 0..8),
        (followed, tolerate, age) in (0usize..9, 0usize..8, 0i64..10_000),
        suspects in prop::collection::vec(prop::bool::weighted(0.2), 16),
    ) {
        let mut voters: Vec<Voter> = truth.iter().map(|&(ends, rates)| honest(ends, rate, rates)).collect();
        let honest = voters.len();
        let tolerated = VotingRules { tolerate: Some(tolerate), quorum: 1 };
        let most = (0..=lies.len()).rev().find(|more| tolerated.tolerated(honest + more) >= *more).unwrap_or(0);
        voters.extend(lies.into_iter().take(most));
        let result = vote(&voters, Unheard::default(), &tolerated).expect("the honest servers are a majority");
        prop_assert!(result.strict.contains(at_micros(0)));
        let Voter { interval, period, growth, .. } = voters[followed % honest];
        // A clock anywhere in its own interval, or even outside what the others allow.
        let time = interval.earliest;
        let own = Estimate {
            time, bound: Bound::of(interval.latest - interval.earliest), bound_growth: growth, ..clock(0, period)
        };
        let bounds = result.bounds(&own, &voters);
        let later = Ticks::from_raw(age * 1_000_000_000);
        let true_time = at_micros(0) + nominal().stretched(Rate::from_ppb(rate as f64)) * later;
        let elapsed = period * later;
        let error = Bound::of(time + elapsed - true_time);
        let rounding = Bound::of(Span::from_nanos(1));
        prop_assert!(error <= bounds.strict.after(elapsed) + rounding, "{:?} {:?}", error, bounds);
        prop_assert!(bounds.believed.after(elapsed) <= bounds.strict.after(elapsed));
        let is_disproven = ProvenInterval::around(time, own.bound).meet(&result.believed).is_none();
        let is_contradicted = bounds.believed.growth == bounds.strict.growth;
        prop_assert!(
            is_disproven || is_contradicted || bounds.believed.after(elapsed) <= own.growing_bound().after(elapsed)
        );
        if most == 0 {
            prop_assert!(error <= bounds.believed.after(elapsed) + rounding, "{:?} {:?}", error, bounds);
        }
        // What suspects claim, true or not, is not needed for any of this, and narrows nothing.
        let common = Estimate { bound: Bound::UNKNOWN, ..own };
        let (all, without) = (result.bounds(&common, &voters), result.bounds_beside(&suspects, &common, &voters));
        prop_assert!(!is_wider(&result.believed, &result.believed_beside(&suspects, &voters)));
        prop_assert!(all.strict.after(elapsed) <= without.strict.after(elapsed));
        prop_assert!(all.believed.after(elapsed) <= without.believed.after(elapsed) || result.tolerated > 0);
        prop_assert!(error <= without.strict.after(elapsed) + rounding, "{:?} {:?}", error, without);
        prop_assert!(without.believed.after(elapsed) <= without.strict.after(elapsed));
        prop_assert!(most > 0 || error <= without.believed.after(elapsed) + rounding, "{:?} {:?}", error, without);
    }

    /// Where the believed servers share a time and no rate, the truth may be with any of them: while a majority of the
    /// rates is right the published bound covers it at every age, whatever the clock claims of its own.
    #[test]
    fn where_rates_contradict_the_published_bound_covers_the_truth_at_every_age(
        truth in prop::collection::vec(((0i64..1_000, 0i64..1_000), (0i64..2_000, 0i64..2_000)), 2..9),
        rate in -20_000i64..20_000,
        (off, growth, is_ahead) in (5_000i64..50_000, 0i64..1_000, any::<bool>()),
        (age, own_growth) in (0i64..10_000, 0i64..1_000),
    ) {
        let mut voters: Vec<Voter> = truth.iter().map(|&(ends, rates)| honest(ends, rate, rates)).collect();
        let off = if is_ahead { off } else { -off };
        let false_period = nominal().stretched(Rate::from_ppb((rate + off) as f64));
        let false_growth = GrowthRate::of(Rate::from_ppb(growth as f64));
        voters.push(Voter { period: false_period, growth: false_growth, ..voter((-10, 10)) });
        let result = voted(&voters).expect("all share a time");
        let own_growth = GrowthRate::of(Rate::from_ppb(own_growth as f64));
        let own = Estimate { bound_growth: own_growth, ..clock(0, false_period) };
        let bounds = result.bounds(&own, &voters);
        prop_assert_eq!(bounds.believed.growth, bounds.strict.growth);
        let later = Ticks::from_raw(age * 1_000_000_000);
        let elapsed = false_period * later;
        let true_time = at_micros(0) + nominal().stretched(Rate::from_ppb(rate as f64)) * later;
        let error = Bound::of(own.time + elapsed - true_time);
        prop_assert!(error <= bounds.believed.after(elapsed) + Bound::of(Span::from_nanos(1)), "{:?} {:?}", error, bounds);
    }

    /// However far a clock has been left behind, and however little it admits, its bound covers the time on which all
    /// servers agree.
    #[test]
    fn a_clock_that_all_servers_disprove_gets_the_bound_that_they_allow(
        ends in prop::collection::vec((0i64..1_000, 0i64..1_000), 2..9),
        (away, admitted, is_ahead) in (3_000i64..1_000_000, 0i64..1_000, any::<bool>()),
    ) {
        let voters: Vec<_> = ends.iter().map(|&(before, after)| voter((-before, after))).collect();
        let micros = if is_ahead { away } else { -away };
        let own = Estimate { bound: Bound::of(Span::from_micros(admitted)), ..clock(micros, nominal()) };
        let bounds = voted(&voters).unwrap().bounds(&own, &voters);
        prop_assert!(ProvenInterval::around(own.time, bounds.believed.bound).contains(at_micros(0)));
    }

    /// One more server never widens the strict interval, as long as the number of tolerated ones stays; and one more
    /// honest server among honest ones never widens what is believed.
    #[test]
    fn one_more_server_never_widens_an_interval(
        bounds in prop::collection::vec((-50i64..50, 0i64..60), 2..9), tolerate in 0usize..4,
        ends in prop::collection::vec((0i64..60, 0i64..60), 2..9),
    ) {
        let voters: Vec<_> = bounds.iter().map(|&(begin, width)| voter((begin, begin + width))).collect();
        let rules = VotingRules { tolerate: Some(tolerate.min((voters.len() - 2) / 2)), quorum: 1 };
        let count = |voters: &[Voter]| vote(voters, Unheard::default(), &rules);
        if let (Some(before), Some(after)) = (count(&voters[1..]), count(&voters)) {
            prop_assert!(!is_wider(&after.strict, &before.strict), "{:?} {:?}", before, after);
        }
        let honest: Vec<_> = ends.iter().map(|&(before, after)| voter((-before, after))).collect();
        let (before, after) = (voted(&honest[1..]).unwrap(), voted(&honest).unwrap());
        prop_assert!(!is_wider(&after.believed, &before.believed));
    }

    /// One more honest server never widens what is published of a clock, at any age: neither the bound nor, as long as
    /// the number of tolerated ones stays, the strict one.
    #[test]
    fn one_more_honest_server_never_widens_what_is_published(
        truth in prop::collection::vec(((0i64..1_000, 0i64..1_000), (0i64..2_000, 0i64..2_000)), 2..9),
        (rate, age) in (-20_000i64..20_000, 0i64..10_000),
        // The clock need be no server's: many make it.
        (time, own_bound, off, own_growth) in (-1_000i64..1_000, 0i64..1_000, -2_000i64..2_000, 0i64..2_000),
    ) {
        let voters: Vec<Voter> = truth.iter().map(|&(ends, rates)| honest(ends, rate, rates)).collect();
        let period = nominal().stretched(Rate::from_ppb((rate + off) as f64));
        let own = Estimate {
            bound: Bound::of(Span::from_micros(time.abs() + own_bound)),
            bound_growth: GrowthRate::of(Rate::from_ppb((off.abs() + own_growth) as f64 * 1.000_1 + 0.01)),
            ..clock(time, period)
        };
        let later = Ticks::from_raw(age * 1_000_000_000);
        let elapsed = period * later;
        let true_time = at_micros(0) + nominal().stretched(Rate::from_ppb(rate as f64)) * later;
        let error = Bound::of(own.time + elapsed - true_time);
        let published = |voters: &[Voter], rules: &VotingRules| {
            let bounds = vote(voters, Unheard::default(), rules).unwrap().bounds(&own, voters);
            [bounds.believed.after(elapsed), bounds.strict.after(elapsed)]
        };
        let as_many = VotingRules { tolerate: Some((voters.len() - 2) / 2), quorum: 1 };
        for (rules, is_strict_compared) in [(as_many, voters.len() > 2), (VotingRules::default(), false)] {
            let ([before, strict_before], [after, strict_after]) =
                (published(&voters[1..], &rules), published(&voters, &rules));
            prop_assert!(after <= before, "{:?} {:?}", before, after);
            prop_assert!(error <= after + Bound::of(Span::from_nanos(1)), "{:?} {:?}", error, after);
            prop_assert!(!is_strict_compared || strict_after <= strict_before, "{:?} {:?}", strict_before, strict_after);
        }
    }

    /// As long as a majority of the trusted servers is right, nothing that the others say moves the strict interval.
    #[test]
    fn untrusted_servers_cannot_move_what_trusted_ones_prove(
        honest in prop::collection::vec((0i64..1_000, 0i64..1_000), 1..5),
        others in prop::collection::vec(any_lie(), 0..9),
    ) {
        let mut voters: Vec<_> = honest.iter().map(|&(before, after)| trusted((-before, after))).collect();
        let alone = voted(&voters).unwrap();
        voters.extend(others);
        let result = voted(&voters).unwrap();
        prop_assert_eq!(result.strict, alone.strict);
        prop_assert!(!is_wider(&result.believed, &alone.believed));
        prop_assert!(result.beliefs[..honest.len()].iter().all(|belief| *belief == Truechimer));
        for (voter, belief) in voters.iter().zip(&result.beliefs) {
            prop_assert!(*belief != Truechimer || voter.interval.meet(&result.believed) == Some(result.believed));
        }
    }

    /// The order of the servers does not matter.
    #[test]
    fn the_order_of_servers_does_not_matter(
        bounds in prop::collection::vec((-50i64..50, 0i64..60, any::<bool>()), 1..9), turn in 0usize..9,
    ) {
        let of = |&(begin, width, is_trusted): &(i64, i64, bool)| Voter { is_trusted, ..voter((begin, begin + width)) };
        let voters: Vec<_> = bounds.iter().map(of).collect();
        let turn = turn % voters.len();
        let mut turned = voters.clone();
        turned.rotate_left(turn);
        let turn_back = |result: VoteResult| {
            let mut beliefs = result.beliefs;
            beliefs.rotate_left(turn);
            VoteResult { beliefs, ..result }
        };
        let (straight, turned_result) = (voted(&voters), voted(&turned));
        let own = clock(0, nominal());
        let bounds = |result: &Option<VoteResult>, voters: &[Voter]| result.as_ref().map(|it| it.bounds(&own, voters));
        prop_assert_eq!(bounds(&turned_result, &turned), bounds(&straight, &voters));
        prop_assert_eq!(turned_result, straight.map(turn_back));
    }
}
