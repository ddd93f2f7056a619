use super::*;
use crate::model::Model;
use crate::steerer::Kernel as _;
use ffclock_sys::KernelClockChange;
use proptest::prelude::*;

const OPTIONS: LawOptions =
    LawOptions { time_constant: Span::from_secs(4), slew_max: Rate::from_ppm(200.0), step_beyond: None };

fn look(offset: Span, base_ppm: f64) -> Look {
    Look {
        offset,
        half_width: Span::from_nanos(50),
        base: Rate::from_ppm(base_ppm),
        status: Status::Synchronised,
        bound: Bound::of(Span::from_micros(40)),
        uncertainty: StandardUncertainty::of(Span::from_micros(2)),
    }
}

fn steering(action: Action) -> Steering {
    match action {
        Action::Steer(steering) => steering,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_offset_is_slewed_and_the_rate_of_the_kernel_taken_away() {
    let mut law = Law::new(OPTIONS);
    let ppm = |action| steering(action).frequency.as_rate().as_ppm();
    assert!((ppm(law.decide(Some(&look(Span::ZERO, 30.0)))) + 30.0).abs() < 0.01);
    assert!((ppm(law.decide(Some(&look(Span::from_micros(8), 0.0)))) - 2.0).abs() < 0.01);
    assert!((ppm(law.decide(Some(&look(Span::from_secs(-5), 0.0)))) + 200.0).abs() < 0.01, "not above slew_max");
    assert_eq!(steering(law.decide(Some(&look(Span::from_secs(5), -450.0)))).frequency, KernelFrequency::MAX);
}

#[test]
fn the_errors_are_those_of_the_page_and_the_offset_rounded_up() {
    let mut law = Law::new(OPTIONS);
    assert_eq!(steering(law.decide(Some(&look(Span::ZERO, 0.0)))).errors_us, [41, 3]);
    assert_eq!(steering(law.decide(Some(&look(Span::from_micros(-100), 0.0)))).errors_us, [141, 103]);
    let unknown = Look { bound: Bound::UNKNOWN, ..look(Span::ZERO, 0.0) };
    let unknown = steering(law.decide(Some(&unknown)));
    assert_eq!((unknown.errors_us[0], unknown.is_synchronised), (KernelClockState::ERROR_LIMIT_US, false));
}

#[test]
fn holdover_is_followed_but_does_not_begin() {
    let held = Look { status: Status::Holdover, ..look(Span::from_micros(4), 10.0) };
    let mut law = Law::new(OPTIONS);
    assert_eq!(law.decide(Some(&held)), Action::Keep);
    law.decide(Some(&look(Span::ZERO, 10.0)));
    assert!(steering(law.decide(Some(&held))).is_synchronised);
}

#[test]
fn a_lost_page_leaves_the_clock_at_its_rate_without_a_slew_once() {
    let warming = Look { status: Status::WarmingUp, ..look(Span::ZERO, 10.0) };
    for lost in [None, Some(&warming)] {
        let mut law = Law::new(OPTIONS);
        assert_eq!(law.decide(lost), Action::Keep, "nothing was begun");
        law.decide(Some(&look(Span::from_millis(1), 10.0)));
        let Action::Coast(frequency) = law.decide(lost) else { panic!("the page is lost") };
        assert!((frequency.as_rate().as_ppm() + 10.0).abs() < 0.01);
        assert_eq!(law.decide(lost), Action::Keep);
        assert_eq!(law.rest(), None);
        assert!(steering(law.decide(Some(&look(Span::ZERO, 10.0)))).is_synchronised);
    }
}

#[test]
fn only_a_start_steps_and_only_where_it_is_permitted() {
    let far = look(Span::from_secs(3), 0.0);
    assert!(matches!(Law::new(OPTIONS).decide(Some(&far)), Action::Steer(_)));
    let mut law = Law::new(LawOptions { step_beyond: Some(Bound::of(Span::from_secs(1))), ..OPTIONS });
    assert_eq!(law.decide(Some(&far)), Action::Step(far.offset));
    steering(law.decide(Some(&far)));
    law.decide(None);
    steering(law.decide(Some(&far)));
    law.begin_again();
    assert_eq!(law.decide(Some(&far)), Action::Step(far.offset), "the machine slept");
    law.begin_again();
    steering(law.decide(Some(&look(Span::from_millis(900), 0.0))));
}

fn any_look() -> impl Strategy<Value = Option<Look>> {
    let status = prop::sample::select(Status::ALL.to_vec());
    let span = prop_oneof![-100_000_i128..100_000, -10_i128.pow(19)..10_i128.pow(19)].prop_map(Span::from_nanos);
    let base = prop_oneof![-600.0..600.0_f64, Just(f64::NAN), Just(-1e6), Just(f64::INFINITY)];
    let bound = prop_oneof![(0_i128..10_i128.pow(12)).prop_map(Span::from_nanos), Just(Span::MAX)];
    let look = (span, base, status, bound).prop_map(|(offset, base, status, bound)| Look {
        status,
        bound: Bound::of(bound),
        ..look(offset, base)
    });
    prop::option::weighted(0.8, look)
}

proptest! {
    /// Whatever is seen: the kernel's limits hold, the errors hold the bound and the offset, the clock is called
    /// synchronised only while the page is, or is held over from then, and nothing but a start steps.
    #[test]
    fn nothing_leaves_the_limits(looks in prop::collection::vec(any_look(), 1..40), may_step in any::<bool>()) {
        let step_beyond = may_step.then_some(Bound::of(Span::from_millis(1)));
        let mut law = Law::new(LawOptions { step_beyond, ..OPTIONS });
        let (mut has_acted, mut was_synchronised) = (false, false);
        for look in looks {
            let action = law.decide(look.as_ref());
            match (action, look) {
                (Action::Keep, _) => {}
                (Action::Step(by), Some(look)) => {
                    prop_assert!(may_step && !has_acted && by == look.offset && by.abs() > Span::from_millis(1));
                }
                (Action::Coast(frequency), _) => {
                    prop_assert!(frequency.steps().abs() <= KernelFrequency::MAX.steps());
                    was_synchronised = false;
                }
                (Action::Steer(Steering { frequency, errors_us: [largest, estimated], is_synchronised }), Some(look)) => {
                    prop_assert!(frequency.steps().abs() <= KernelFrequency::MAX.steps());
                    let rest = law.rest().unwrap().as_rate().as_ppm();
                    prop_assert!((frequency.as_rate().as_ppm() - rest).abs() <= 200.3 || rest.abs() >= 500.0);
                    let apart = look.offset.abs().as_nanos();
                    let limit = KernelClockState::ERROR_LIMIT_US;
                    let held = look.bound.as_nanos_up().min(1 << 100) as i128 + apart;
                    prop_assert!(i128::from(largest) * 1000 >= held || largest == limit);
                    prop_assert!(i128::from(estimated) * 1000 >= apart || estimated == limit - 1);
                    prop_assert!((0..=limit).contains(&largest) && (0..limit).contains(&estimated));
                    let is_permitted = look.status == Status::Synchronised
                        || (look.status == Status::Holdover && was_synchronised);
                    prop_assert!(!is_synchronised || is_permitted && largest < limit);
                    was_synchronised = is_synchronised;
                }
                (action, None) => prop_assert!(false, "{:?} without a look", action),
            }
            has_acted |= action != Action::Keep;
        }
    }

    /// The clock comes to the page from any offset and rate, the faster the larger `slew_max`, without a swing; and its
    /// largest error holds at every moment, and for hours after the last call.
    #[test]
    fn the_error_converges_and_is_claimed(
        (offset_us, base_ppm) in (-20_000.0..20_000.0_f64, -250.0..250.0_f64),
        (poll_ms, constant, noise) in (100_i64..2000, 2.0..10.0_f64, prop::collection::vec(-1e-6..1e-6_f64, 97)),
    ) {
        let poll = poll_ms as f64 * 1e-3;
        let time_constant = Span::from_seconds(poll * constant);
        let mut law = Law::new(LawOptions { time_constant, ..OPTIONS });
        let mut kernel = Model::new(offset_us * 1e-6, base_ppm);
        let slewing = offset_us.abs() / 200.0 + 20.0 * poll * constant;
        for turn in 0..(slewing / poll) as usize + 50 {
            // The page is wrong by up to 1 us.
            let page = noise[turn % noise.len()];
            let seen = look(Span::from_seconds(page - kernel.error()), base_ppm);
            let Steering { frequency, errors_us, is_synchronised } = steering(law.decide(Some(&seen)));
            prop_assert!(is_synchronised);
            kernel.change(&KernelClockChange {
                frequency: Some(frequency), errors_us: Some(errors_us), ..KernelClockChange::default()
            }).unwrap();
            kernel.pass(poll);
            let claimed = kernel.shown().max_error_us as f64 * 1e-6 + 500e-6 * poll;
            prop_assert!(kernel.error().abs() <= claimed, "{} beyond {claimed}", kernel.error());
        }
        prop_assert!(kernel.error().abs() < 2e-6, "{} is left", kernel.error());
        kernel.pass(7200.0);
        prop_assert!(kernel.error().abs() <= kernel.shown().max_error_us as f64 * 1e-6);
    }
}
