use super::*;
use crate::law::Look;
use crate::leap::LeapMode;
use crate::model::{Model, plain_day};
use crate::sight::{Interruption, Lost};
use ffclock_units::{Bound, LeapStep, Moment, Rate, StandardUncertainty, Status};

const BASE_PPM: f64 = 25.0;

fn config(lines: &str) -> SteerConfig {
    crate::config::parse(lines).unwrap()
}

fn seen(model: &Model) -> Sighting {
    let look = Look {
        offset: Span::from_seconds(-model.error()),
        half_width: Span::from_nanos(50),
        base: Rate::from_ppm(BASE_PPM),
        status: Status::Synchronised,
        bound: Bound::of(Span::from_micros(40)),
        uncertainty: StandardUncertainty::of(Span::from_micros(2)),
    };
    Sighting { look: Ok((look, plain_day())), interruption: None }
}

fn lost() -> Sighting {
    Sighting { look: Err(Lost::NoPage("none".to_owned())), interruption: None }
}

/// A clock that follows the page for a minute already.
fn following(lines: &str) -> (Model, Steerer<Model>) {
    let model = Model::new(1e-4, BASE_PPM);
    let mut steerer = Steerer::new(model.clone(), &config(lines));
    for _ in 0..60 {
        assert!(!steerer.act(&seen(&model)).unwrap().has_withdrawn);
        model.pass(1.0);
    }
    (model, steerer)
}

#[test]
fn nothing_is_touched_before_the_page_is_synchronised() {
    let model = Model::new(1.0, BASE_PPM);
    let mut steerer = Steerer::new(model.clone(), &config(""));
    for _ in 0..5 {
        assert_eq!(steerer.act(&lost()).unwrap().events, []);
    }
    assert_eq!(model.calls(), 0);
    steerer.end().unwrap();
    assert_eq!(model.calls(), 0, "what was never taken is not left");
}

#[test]
fn the_clock_follows_and_shows_bound_flags_and_tai() {
    let (model, _) = following("");
    assert!(model.error().abs() < 1e-7, "{}", model.error());
    let state = model.shown();
    assert!(!state.flags.has(KernelFlags::UNSYNCHRONISED));
    assert_eq!((state.tai_offset_s, state.estimated_error_us), (37, 3));
    assert!((41..=541).contains(&state.max_error_us), "{state:?}");
}

#[test]
fn a_step_is_made_once_and_the_rest_slewed() {
    let model = Model::new(-2.0, BASE_PPM);
    let mut steerer = Steerer::new(model.clone(), &config("step_at_start = \"100 ms\"\n"));
    let done = steerer.act(&seen(&model)).unwrap();
    assert!(matches!(done.events.as_slice(), [SteerEvent::Taken(_), SteerEvent::Stepped(_)]), "{done:?}");
    assert!(model.error().abs() < 1e-5);
    let done = steerer.act(&seen(&model)).unwrap();
    assert_eq!(done.events, [SteerEvent::Synchronised]);
}

#[test]
fn a_lost_page_is_coasted_through_and_taken_up_again() {
    let (model, mut steerer) = following("");
    assert_eq!(steerer.act(&lost()).unwrap().events, [SteerEvent::Coasting]);
    assert!(model.shown().flags.has(KernelFlags::UNSYNCHRONISED));
    let calls = model.calls();
    for _ in 0..600 {
        model.pass(1.0);
        assert_eq!(steerer.act(&lost()).unwrap().events, []);
    }
    assert_eq!(model.calls(), calls, "the clock is left alone");
    assert!(model.error().abs() < 1e-5, "{}", model.error());
    assert!(model.shown().max_error_us >= 300_000, "the kernel lets its error grow");
    assert_eq!(steerer.act(&seen(&model)).unwrap().events, [SteerEvent::Synchronised]);
}

#[test]
fn another_program_is_noticed_and_the_clock_left_to_it() {
    let disturbances: [fn(&Model); 4] = [
        |model| model.disturb(|state| state.frequency = KernelFrequency::nearest(Rate::from_ppm(7.0))),
        |model| model.disturb(|state| state.offset = 12),
        |model| model.disturb(|state| state.flags = KernelFlags::UNSYNCHRONISED),
        |model| model.set_by(0.5),
    ];
    for disturb in disturbances {
        let (model, mut steerer) = following("");
        disturb(&model);
        let (before, calls) = (model.shown(), model.calls());
        let done = steerer.act(&seen(&model)).unwrap();
        assert!(done.has_withdrawn && matches!(done.events.as_slice(), [SteerEvent::Contended(_)]), "{done:?}");
        steerer.end().unwrap();
        let state = model.shown();
        assert_eq!(state, KernelClockState { frequency: state.frequency, ..before }, "what the other program set");
        assert!((state.frequency.as_rate() - before.frequency.as_rate()).as_ppm().abs() < 0.01, "{state:?}");
        assert!(model.calls() <= calls + 1);
    }
}

/// The operator sets the clock while it is slewed by 200 ppm: no program is left that would end the slew.
#[test]
fn a_slew_does_not_outlive_the_follower() {
    let (model, mut steerer) = following("");
    let mut moved = seen(&model);
    moved.look.as_mut().unwrap().0.offset = Span::from_secs(3);
    steerer.act(&moved).unwrap();
    let ppm = |model: &Model| model.shown().frequency.as_rate().as_ppm();
    assert!(ppm(&model) > 100.0);
    model.set_by(3.0);
    assert!(steerer.act(&seen(&model)).unwrap().has_withdrawn);
    assert!((ppm(&model) + BASE_PPM).abs() < 0.01, "{}", ppm(&model));
}

/// However a run ends: by an error of a look, or by a panic.
#[test]
fn a_run_that_ends_early_leaves_no_slew() {
    let slewing = || {
        let (model, mut steerer) = following("");
        let mut moved = seen(&model);
        moved.look.as_mut().unwrap().0.offset = Span::from_secs(3);
        steerer.act(&moved).unwrap();
        assert!(model.shown().frequency.as_rate().as_ppm() > 100.0);
        (model, steerer)
    };
    let is_at_rest = |model: &Model| (model.shown().frequency.as_rate().as_ppm() + BASE_PPM).abs() < 0.01;
    let (model, steerer) = slewing();
    drop(steerer);
    assert!(is_at_rest(&model));
    let (model, steerer) = slewing();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _steerer = steerer;
        panic!("a fault in the program");
    }));
    assert!(panicked.is_err() && is_at_rest(&model));
    // What another program has set meanwhile stays.
    let (model, steerer) = slewing();
    model.disturb(|state| state.frequency = KernelFrequency::nearest(Rate::from_ppm(7.0)));
    drop(steerer);
    assert!((model.shown().frequency.as_rate().as_ppm() - 7.0).abs() < 0.01);
}

/// A dry run withdraws where a real one would.
#[test]
fn a_dry_run_sees_what_another_program_does_to_the_clock_of_the_host() {
    let host = Model::new(0.0, 0.0).shown();
    let limit = KernelClockState::ERROR_LIMIT_US;
    let steered = |flags| KernelClockChange {
        frequency: Some(KernelFrequency::nearest(Rate::from_ppm(-25.0))),
        flags: Some(flags),
        errors_us: Some([50, 5]),
        tai_offset_s: Some(37),
    };
    let seen = |was: KernelClockState, now: KernelClockState| {
        let mut dry = DryKernel::of(was);
        let ours = dry.change(&steered(KernelFlags::none())).unwrap();
        dry.follow(now);
        foreign(&ours, &dry.state)
    };
    let calm = KernelClockState { max_error_us: 50, estimated_error_us: 7, flags: KernelFlags::none(), ..host };
    let slewed = KernelClockState { offset: 500, slewing_us: -70, ..calm };
    let unsynchronised = KernelFlags::UNSYNCHRONISED;
    for (was, now, what) in [
        (calm, calm, None),
        (calm, KernelClockState { max_error_us: 550, ..calm }, None),
        (calm, KernelClockState { max_error_us: limit, flags: unsynchronised, ..calm }, None),
        (slewed, KernelClockState { offset: 400, slewing_us: -60, ..slewed }, None),
        (slewed, KernelClockState { offset: 600, ..slewed }, Some(Foreign::Offset)),
        (calm, KernelClockState { frequency: KernelFrequency::MAX, ..calm }, Some(Foreign::Frequency)),
        (calm, KernelClockState { tick_us: 10_001, ..calm }, Some(Foreign::Tick)),
        (calm, KernelClockState { flags: unsynchronised, ..calm }, Some(Foreign::Flags)),
        (calm, KernelClockState { max_error_us: 3, ..calm }, Some(Foreign::Errors)),
        (
            calm,
            KernelClockState { max_error_us: limit, estimated_error_us: limit, flags: unsynchronised, ..calm },
            Some(Foreign::Set),
        ),
    ] {
        assert_eq!(seen(was, now), what, "{was:?} {now:?}");
    }
}

#[test]
fn on_request_the_clock_is_taken_back() {
    let (model, mut steerer) = following("contention = \"continue\"\n");
    model.disturb(|state| (state.tick_us, state.offset) = (10_100, 5));
    let done = steerer.act(&seen(&model)).unwrap();
    assert!(!done.has_withdrawn && matches!(done.events.first(), Some(SteerEvent::Contended(_))), "{done:?}");
    let state = model.shown();
    assert_eq!((state.tick_us, state.offset), (KernelClockState::TICK_US, 0));
    model.pass(1.0);
    assert_eq!(steerer.act(&seen(&model)).unwrap().events, []);
}

#[test]
fn a_suspend_is_no_other_program() {
    let (model, mut steerer) = following("step_at_start = \"10 ms\"\n");
    model.set_by(-0.7);
    let done = steerer.act(&Sighting { interruption: Some(Interruption::Slept), ..seen(&model) }).unwrap();
    assert!(matches!(
        done.events.as_slice(),
        [SteerEvent::Interrupted(Interruption::Slept), SteerEvent::Taken(_), SteerEvent::Stepped(_)]
    ));
    assert!(model.error().abs() < 1e-5);
}

/// Until the page is there again no one knows what the kernel's clock shows.
#[test]
fn after_a_suspend_the_clock_is_called_unsynchronised() {
    let (model, mut steerer) = following("");
    let mut moved = seen(&model);
    moved.look.as_mut().unwrap().0.offset = Span::from_secs(3);
    steerer.act(&moved).unwrap();
    let done = steerer.act(&Sighting { interruption: Some(Interruption::Slept), ..lost() }).unwrap();
    assert_eq!(done.events, [SteerEvent::Interrupted(Interruption::Slept)]);
    let state = model.shown();
    assert!(state.flags.has(KernelFlags::UNSYNCHRONISED));
    assert!((state.frequency.as_rate().as_ppm() + BASE_PPM).abs() < 0.01, "the slew has ended: {state:?}");
}

/// A guest that was away for an hour has its kernel's clock an hour behind, and nothing but the page knows it.
fn restored(lines: &str) -> (Model, Steerer<Model>) {
    let (model, mut steerer) = following(lines);
    model.stand_still(3600.0);
    let done = steerer.act(&Sighting { interruption: Some(Interruption::Restored), ..lost() }).unwrap();
    assert_eq!(done.events, [SteerEvent::Interrupted(Interruption::Restored)]);
    assert!(model.shown().flags.has(KernelFlags::UNSYNCHRONISED));
    model.pass(1.0);
    (model, steerer)
}

#[test]
fn after_a_restore_the_clock_is_stepped_once_where_a_step_is_permitted() {
    let (model, mut steerer) = restored("step_at_start = \"1 s\"\n");
    let done = steerer.act(&seen(&model)).unwrap();
    assert!(matches!(done.events.as_slice(), [SteerEvent::Taken(_), SteerEvent::Stepped(_)]), "{done:?}");
    assert!(model.error().abs() < 1e-5, "{}", model.error());
    assert_eq!(steerer.act(&seen(&model)).unwrap().events, [SteerEvent::Synchronised]);
    // From here on nothing permits another.
    let mut moved = seen(&model);
    moved.look.as_mut().unwrap().0.offset = Span::from_secs(3600);
    assert!(matches!(steerer.act(&moved).unwrap().action, Action::Steer(_)));
}

#[test]
fn after_a_restore_no_step_is_made_that_was_not_permitted() {
    let (model, mut steerer) = restored("");
    let done = steerer.act(&seen(&model)).unwrap();
    assert!(matches!(done.action, Action::Steer(steering) if !steering.is_synchronised), "{done:?}");
    model.pass(1.0);
    assert!(model.error() < -3599.0, "{}", model.error());
    // What a tool of the hypervisor did in between is no second program.
    let (model, mut steerer) = restored("");
    model.set_by(3600.0);
    let done = steerer.act(&seen(&model)).unwrap();
    assert!(matches!(done.events.as_slice(), [SteerEvent::Taken(_), SteerEvent::Synchronised]), "{done:?}");
}

#[test]
fn an_announced_leap_second_survives_a_lost_page() {
    let (model, mut steerer) = following("");
    let mut announced = seen(&model);
    announced.look.as_mut().unwrap().1.flags = KernelFlags::INSERT;
    steerer.act(&announced).unwrap();
    steerer.act(&lost()).unwrap();
    assert!(model.shown().flags.has(KernelFlags::INSERT.with(KernelFlags::UNSYNCHRONISED)));
}

#[test]
fn at_the_end_the_slew_is_taken_away() {
    let (model, mut steerer) = following("");
    // The page has moved by 1 ms: the clock is slewed.
    let mut moved = seen(&model);
    moved.look.as_mut().unwrap().0.offset = Span::from_millis(1);
    steerer.act(&moved).unwrap();
    let ppm = |model: &Model| model.shown().frequency.as_rate().as_ppm();
    assert!(ppm(&model) > 100.0);
    steerer.end().unwrap();
    assert!((ppm(&model) + BASE_PPM).abs() < 0.01, "{}", ppm(&model));
    assert!(!model.shown().flags.has(KernelFlags::UNSYNCHRONISED), "the error that grows says it");
}

#[test]
fn nothing_is_done_close_to_a_leap_second_and_its_flag_goes_afterwards() {
    let (model, mut steerer) = following("");
    let leap = LeapStep { before: 37, after: 38, at: 1_900_000_000 };
    let calendar = |from: i64| {
        let tai = Span::from_secs(leap.at + from);
        let utc = tai - Span::from_secs(if from < 0 { 37 } else { 38 });
        Calendar::at((Moment::from_origin(utc), Moment::from_origin(tai)), leap, LeapMode::Kernel)
    };
    let mut act = |from: i64, offset: Span| {
        let mut sighting = seen(&model);
        let (look, day) = sighting.look.as_mut().unwrap();
        (look.offset, *day) = (offset, calendar(from));
        assert_eq!(steerer.act(&sighting).unwrap().events, []);
        model.pass(1.0);
    };
    act(-10, Span::ZERO);
    assert!(model.shown().flags.has(KernelFlags::INSERT));
    let calls = model.calls();
    // The kernel is on the other side already.
    act(-1, Span::from_secs(1));
    assert!(model.calls() <= calls + 1, "but that the last slew ends");
    // It counts TAI itself.
    model.disturb(|state| state.tai_offset_s = 38);
    act(5, Span::ZERO);
    assert!(!model.shown().flags.has(KernelFlags::INSERT));
}

/// The kernel's figures end at 16 s, and a clock that was set has them at that end.
#[test]
fn a_set_clock_is_noticed_also_where_the_own_offset_is_beyond_the_figures() {
    let model = Model::new(100.0, BASE_PPM);
    let mut steerer = Steerer::new(model.clone(), &config(""));
    for _ in 0..3 {
        assert!(!steerer.act(&seen(&model)).unwrap().has_withdrawn);
        model.pass(1.0);
    }
    model.set_by(-30.0);
    let done = steerer.act(&seen(&model)).unwrap();
    assert!(done.has_withdrawn && done.events == [SteerEvent::Contended(Foreign::Set)], "{done:?}");
}
