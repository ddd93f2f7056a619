//! The C interface. `include/ffclock.h` is made from this file by cbindgen, comments included; `tests/c_api.rs`
//! compares the two.
//!
//! One of the files of this crate that hold unsafe code: pointers come from C, and are used under the conditions that
//! the header states. No function unwinds: an `extern "C"` function that panicked would end the process, and none here
//! has a reason to panic.

use crate::{
    Clock, Interval, IntervalWay, OpenError, PageError, ReadError, Reading, Stamp, Status, VotedTime, earliest, latest,
};
use core::ffi::{CStr, c_char, c_int};
use core::time::Duration;
use ffclock_sys::PageFileError;
use ffclock_units::{Bound, Counter, CounterEpoch, Moment, Span, Tai};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What went wrong; 0 is success. ffclock_strerror() puts it into words.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// Success: nothing went wrong.
    Ok = 0,
    /// A pointer that may not be null is.
    NullPointer = 1,
    /// There is no page: the daemon never ran.
    Missing = 2,
    /// The page may not be read by this user.
    Permission = 3,
    /// The file is not a page, or not of a page's size.
    NotAPage = 4,
    /// The page is of another version than this library.
    Version = 5,
    /// The page was written before the machine was last started.
    OtherBoot = 6,
    /// The page is damaged.
    Damaged = 7,
    /// The operating system refused.
    System = 8,
    /// No clock has been published here yet.
    Empty = 9,
    /// There is no estimate at present.
    NoEstimate = 10,
    /// The stamp is older than the counter's present epoch.
    BeforeEpoch = 11,
    /// The stamps belong to another epoch of the counter.
    OtherEpoch = 12,
    /// The page is about a counter that this machine has not.
    OtherCounter = 13,
    /// The clock was not good enough in time.
    Timeout = 14,
    /// The page is about a counter of the kernel that this program cannot read.
    CounterUnreadable = 15,
    /// The virtual machine was restored, migrated or copied since, and the daemon has not found the time again.
    Disrupted = 16,
}

/// How far a reading may be trusted.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusCode {
    /// Not at all: there is no estimate, or the daemon has not been heard of for too long.
    Unsynchronised = 1,
    /// Right within its bound, but the rate rests on little data.
    WarmingUp = 2,
    /// The server is lost or not believed; the clock runs on at its last rate and the bound grows.
    Holdover = 3,
    /// In regular work.
    Synchronised = 4,
}

/// An open clock.
pub struct CClock(Clock);

/// A time with its error figures and status, all from one publication.
#[repr(C)]
pub struct CReading {
    /// UTC as POSIX counts it: whole seconds since 1970, rounded down.
    seconds: i64,
    /// The rest, 0 to 999999999.
    nanoseconds: u32,
    /// How far it may be trusted.
    status: StatusCode,
    /// The largest possible error in ns; UINT64_MAX if unknown. Includes the rounding of this reading to ns. It holds
    /// as long as no believed server is false by less than the others can see, and the counter's rate moves no more
    /// than configured; that of ffclock_now_strict() and ffclock_at_strict() holds although a minority of the servers
    /// is false in whatever way.
    bound_ns: u64,
    /// The combined standard uncertainty (k = 1) in ns; UINT64_MAX if unknown. The unknown asymmetry of the path and
    /// the error of the server's own clock are in it, as far as can be assumed of them; ffclock_noise_at() leaves them
    /// out.
    uncertainty_ns: u64,
}

/// A raw reading of the counter, to be converted later.
#[repr(C)]
pub struct CStamp {
    /// Ticks.
    counter: u64,
    /// The epoch of the counter in which it was taken.
    epoch: u64,
}

/// How an interval was measured.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayCode {
    /// By the difference clock: ticks, times a period that is the mean of the recent past.
    Difference = 1,
    /// By the absolute clock: the time of the second stamp less that of the first.
    Absolute = 2,
}

/// How long something lasted, by the better of the difference clock and of two conversions.
#[repr(C)]
pub struct CInterval {
    /// From the first stamp to the second in ns, rounded to the nearest; negative when the second was taken earlier;
    /// saturates.
    span_ns: i64,
    /// The largest error of span_ns in ns, as long as the server's own claim is true; UINT64_MAX if unknown. Includes
    /// the rounding of this interval to ns, but not how well the stamps were taken.
    bound_ns: u64,
    /// The standard uncertainty (k = 1) of span_ns in ns: of two times that of their noise. It leaves out how well
    /// the stamps were taken; UINT64_MAX if unknown.
    uncertainty_ns: u64,
    /// How far it may be trusted.
    status: StatusCode,
    /// How it was measured.
    way: WayCode,
}

/// From the earliest to the latest moment that a time can mean, in TAI, which has no leap seconds: in ns since
/// 1970-01-01 00:00:00 TAI, rounded outwards. It can be sent to another host, whose clock is compared with it.
#[repr(C)]
pub struct CRange {
    /// INT64_MIN where the clock is unsynchronised.
    earliest_ns: i64,
    /// INT64_MAX where the clock is unsynchronised.
    latest_ns: i64,
}

/// Opens the clock whose page is at `path`; with a null pointer, the one named by the environment variable
/// FFCLOCK_PAGE, else /run/ffclock/page, else $XDG_RUNTIME_DIR/ffclock/page. On success `*clock` is to be closed with
/// ffclock_close(); it may be used by any number of threads at the same time.
///
/// # Safety
/// `path` is null or a string; `clock` is null or points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_open(path: *const c_char, clock: *mut *mut CClock) -> ErrorCode {
    if clock.is_null() {
        return ErrorCode::NullPointer;
    }
    let opened = if path.is_null() {
        Clock::open()
    } else {
        // SAFETY: the caller passes a string.
        let path = unsafe { CStr::from_ptr(path) };
        Clock::open_at(Path::new(OsStr::from_bytes(path.to_bytes())))
    };
    let opened = opened.map(|clock| Box::into_raw(Box::new(CClock(clock)))).map_err(|error| ErrorCode::from(&error));
    // SAFETY: the caller passes a place for a pointer.
    unsafe { deliver(opened, clock) }
}

/// Closes a clock. A null pointer is ignored.
///
/// # Safety
/// `clock` is null or comes from ffclock_open(), was not closed before, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_close(clock: *mut CClock) {
    if !clock.is_null() {
        // SAFETY: it was made by Box::into_raw in ffclock_open, and the caller gives it up.
        drop(unsafe { Box::from_raw(clock) });
    }
}

/// Opens the page at the same path again: for when the file was replaced, which shows in readings that stay
/// unsynchronised. Without success the clock stays as it was.
///
/// # Safety
/// `clock` is null or open, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_reopen(clock: *mut CClock) -> ErrorCode {
    // SAFETY: the caller passes a clock that no other thread uses now.
    match unsafe { clock.as_mut() }.map(|clock| clock.0.reopen()) {
        None => ErrorCode::NullPointer,
        Some(Ok(())) => ErrorCode::Ok,
        Some(Err(error)) => ErrorCode::from(&error),
    }
}

/// The present time. The counter is read after everything that the program did before.
///
/// # Safety
/// `clock` is null or open; `reading` is null or points to a place for a reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_now(clock: *const CClock, reading: *mut CReading) -> ErrorCode {
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, reading, |clock| Ok(CReading::from(clock.now()?))) }
}

/// Reads the counter, after everything that the program did before; converts nothing.
///
/// # Safety
/// `clock` is null or open; `stamp` is null or points to a place for a stamp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_stamp(clock: *const CClock, stamp: *mut CStamp) -> ErrorCode {
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, stamp, |clock| Ok(CStamp::from(clock.stamp()))) }
}

/// The time of a stamp, of up to a day ago: by the lines around it, which the daemon keeps, or by the newest line where
/// it was taken since.
///
/// # Safety
/// `clock` is null or open; `stamp` is null or points to a stamp; `reading` is null or points to a place for a reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_at(clock: *const CClock, stamp: *const CStamp, reading: *mut CReading) -> ErrorCode {
    // SAFETY: the caller passes a stamp.
    let stamp = unsafe { stamp.as_ref() };
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, reading, |clock| Ok(CReading::from(clock.at(Stamp::try_from(stamp)?)?))) }
}

/// The noise in the time of a stamp, in ns, as ffclock_at() gives that time: the part of its standard uncertainty
/// (k = 1) that exchanges show. It leaves out the unknown asymmetry of the path and the error of the server's own
/// clock, which are common to the times of two stamps as long as the same servers are believed. UINT64_MAX if unknown.
///
/// # Safety
/// `clock` is null or open; `stamp` is null or points to a stamp; `noise_ns` is null or points to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_noise_at(clock: *const CClock, stamp: *const CStamp, noise_ns: *mut u64) -> ErrorCode {
    // SAFETY: the caller passes a stamp.
    let stamp = unsafe { stamp.as_ref() };
    let noise = |clock: &Clock| Ok(nanos_with_rounding(clock.time_of(Stamp::try_from(stamp)?)?.noise.as_nanos_up()));
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, noise_ns, noise) }
}

/// The present time with the bound that holds although a minority of the servers is false.
///
/// # Safety
/// `clock` is null or open; `reading` is null or points to a place for a reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_now_strict(clock: *const CClock, reading: *mut CReading) -> ErrorCode {
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, reading, |clock| Ok(CReading::from(clock.now_strict()?))) }
}

/// The time of a stamp with the bound that holds although a minority of the servers is false.
///
/// # Safety
/// `clock` is null or open; `stamp` is null or points to a stamp; `reading` is null or points to a place for a reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_at_strict(
    clock: *const CClock,
    stamp: *const CStamp,
    reading: *mut CReading,
) -> ErrorCode {
    // SAFETY: the caller passes a stamp.
    let stamp = unsafe { stamp.as_ref() };
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, reading, |clock| Ok(CReading::from(clock.at_strict(Stamp::try_from(stamp)?)?))) }
}

/// From one stamp to another: by the difference clock, or by two conversions where these are better, as they are for
/// intervals of more than some minutes. Both stamps may be up to a day old.
///
/// # Safety
/// `clock` is null or open; `first` and `second` are null or point to stamps; `interval` is null or points to a place
/// for an interval.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_elapsed(
    clock: *const CClock,
    first: *const CStamp,
    second: *const CStamp,
    interval: *mut CInterval,
) -> ErrorCode {
    // SAFETY: the caller passes stamps.
    let (first, second) = unsafe { (first.as_ref(), second.as_ref()) };
    let measure =
        |clock: &Clock| Ok(CInterval::from(clock.elapsed(Stamp::try_from(first)?, Stamp::try_from(second)?)?));
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, interval, measure) }
}

/// Waits until the clock is not unsynchronised and its bound is at most `bound_ns`, for `timeout_ns` at most; then
/// gives the reading that says so, or FFCLOCK_ERROR_TIMEOUT and no reading.
///
/// # Safety
/// `clock` is null or open; `reading` is null or points to a place for a reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_wait_until(
    clock: *const CClock,
    bound_ns: u64,
    timeout_ns: u64,
    reading: *mut CReading,
) -> ErrorCode {
    let bound = Bound::of(Span::from_nanos(i128::from(bound_ns)));
    let wait = |clock: &Clock| {
        let reached = clock.wait_until(bound, Duration::from_nanos(timeout_ns));
        reached.map(CReading::from).map_err(|_| ErrorCode::Timeout)
    };
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, reading, wait) }
}

/// The range in which the true time of a stamp lies, as ffclock_at() converts it.
///
/// # Safety
/// `clock` is null or open; `stamp` is null or points to a stamp; `range` is null or points to a place for a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_range_at(clock: *const CClock, stamp: *const CStamp, range: *mut CRange) -> ErrorCode {
    // SAFETY: the caller passes a stamp.
    let stamp = unsafe { stamp.as_ref() };
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, range, |clock| Ok(CRange::from(&clock.time_of(Stamp::try_from(stamp)?)?))) }
}

/// Whether the first event was before the second, whatever the errors within the bounds of both, on two hosts as well:
/// 1, else 0. It is 0 where the ranges touch, and where a pointer is null.
///
/// # Safety
/// `first` and `second` are null or point to ranges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_certainly_before(first: *const CRange, second: *const CRange) -> c_int {
    // SAFETY: the caller passes ranges.
    let ranges = unsafe { first.as_ref().zip(second.as_ref()) };
    ranges.is_some_and(|(first, second)| first.latest_ns < second.earliest_ns).into()
}

/// Waits until the moment `tai_ns` has certainly passed, for `timeout_ns` at most; then gives the present range, which
/// lies after it, or FFCLOCK_ERROR_TIMEOUT and no range. With the `latest_ns` of an event it is the commit wait of
/// databases: afterwards every clock whose bound holds shows a later time than that. It takes about twice the bound.
///
/// # Safety
/// `clock` is null or open; `range` is null or points to a place for a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_wait_certainly_after(
    clock: *const CClock,
    tai_ns: i64,
    timeout_ns: u64,
    range: *mut CRange,
) -> ErrorCode {
    // A nanosecond more: the range is rounded outwards, and is to lie after the moment nevertheless.
    let moment = Moment::<Tai>::from_origin(Span::from_nanos(i128::from(tai_ns) + 1));
    let wait = |clock: &Clock| {
        let passed = clock.wait_certainly_after(moment, Duration::from_nanos(timeout_ns));
        passed.map(|time| CRange::from(&time)).map_err(|_| ErrorCode::Timeout)
    };
    // SAFETY: the caller passes an open clock and a place for the result.
    unsafe { answer(clock, range, wait) }
}

/// The present status; unsynchronised also where there is no reading.
///
/// # Safety
/// `clock` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ffclock_status(clock: *const CClock) -> StatusCode {
    // SAFETY: the caller passes an open clock.
    unsafe { clock.as_ref() }.map_or(StatusCode::Unsynchronised, |clock| clock.0.status().into())
}

/// The words for a value of enum ffclock_error, with what can be done about it. Never null; not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn ffclock_strerror(error: c_int) -> *const c_char {
    TEXTS
        .iter()
        .find(|(code, _)| *code as c_int == error)
        .map_or(c"unknown error of libffclock", |(_, text)| text)
        .as_ptr()
}

const TEXTS: [(ErrorCode, &CStr); 17] = [
    (ErrorCode::Ok, c"success"),
    (ErrorCode::NullPointer, c"a pointer that may not be null is"),
    (ErrorCode::Missing, c"there is no clock page: start ffclockd, or name its page in FFCLOCK_PAGE"),
    (ErrorCode::Permission, c"the clock page may not be read: its mode should be 0644, and its directory's 0755"),
    (ErrorCode::NotAPage, c"the file is not a clock page: name the one that ffclockd writes"),
    (ErrorCode::Version, c"the clock page is of another version: use ffclockd and libffclock of the same version"),
    (ErrorCode::OtherBoot, c"the clock page was written before the machine was last started: start ffclockd"),
    (ErrorCode::Damaged, c"the clock page is damaged: restart ffclockd if this lasts"),
    (ErrorCode::System, c"the operating system refused to map the clock page"),
    (
        ErrorCode::Empty,
        c"no clock has been published here yet: wait, or look whether ffclockd runs and reaches its server",
    ),
    (ErrorCode::NoEstimate, c"the clock has no estimate at present: wait, or look whether it reaches its server"),
    (ErrorCode::BeforeEpoch, c"the stamp was taken before the counter's present epoch began"),
    (ErrorCode::OtherEpoch, c"the stamps belong to another epoch of the counter"),
    (ErrorCode::OtherCounter, c"the clock page is about a counter that this machine has not"),
    (ErrorCode::Timeout, c"the clock was not good enough in time"),
    (
        ErrorCode::CounterUnreadable,
        c"/dev/ffcounter cannot be read: load the module, or join the group that owns the device (docs/kernel.md)",
    ),
    (
        ErrorCode::Disrupted,
        c"the virtual machine was restored, migrated or copied, and ffclockd has not yet noticed: wait",
    ),
];

/// Asks the clock and stores its answer; stores nothing where there is none.
///
/// # Safety
/// `clock` is null or open; `place` is null or may be written.
unsafe fn answer<T>(
    clock: *const CClock,
    place: *mut T,
    ask: impl FnOnce(&Clock) -> Result<T, ErrorCode>,
) -> ErrorCode {
    // SAFETY: as this function demands.
    match unsafe { clock.as_ref() } {
        // SAFETY: as this function demands.
        Some(clock) if !place.is_null() => unsafe { deliver(ask(&clock.0), place) },
        _ => ErrorCode::NullPointer,
    }
}

/// # Safety
/// `place` may be written.
unsafe fn deliver<T>(result: Result<T, ErrorCode>, place: *mut T) -> ErrorCode {
    match result {
        Ok(value) => {
            // SAFETY: as this function demands; `write` reads nothing of what was there.
            unsafe { place.write(value) };
            ErrorCode::Ok
        }
        Err(error) => error,
    }
}

/// An error figure in ns, rounded up, with the rounding of the time that it belongs to; unknown and too large are the
/// same.
fn nanos_with_rounding(nanos_up: u128) -> u64 {
    u64::try_from(nanos_up).map_or(u64::MAX, |nanos| nanos.saturating_add(1))
}

impl From<Reading> for CReading {
    fn from(reading: Reading) -> Self {
        let units = reading.time.since_origin().units();
        CReading {
            seconds: (units >> 64) as i64,
            nanoseconds: ((u128::from(units as u64) * 1_000_000_000) >> 64) as u32,
            status: reading.status.into(),
            bound_ns: nanos_with_rounding(reading.bound.as_nanos_up()),
            uncertainty_ns: nanos_with_rounding(reading.uncertainty.as_nanos_up()),
        }
    }
}

impl From<&VotedTime> for CRange {
    fn from(time: &VotedTime) -> Self {
        let nanos = |units: i128| units.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        CRange {
            earliest_ns: nanos(floor_nanos(earliest(time).since_origin())),
            latest_ns: nanos(-floor_nanos(-latest(time).since_origin())),
        }
    }
}

/// Whole nanoseconds, rounded down.
fn floor_nanos(span: Span) -> i128 {
    let nearest = span.as_nanos();
    if Span::from_nanos(nearest) > span { nearest - 1 } else { nearest }
}

impl From<Interval> for CInterval {
    fn from(interval: Interval) -> Self {
        let nanos = interval.span.as_nanos();
        CInterval {
            span_ns: nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            bound_ns: nanos_with_rounding(interval.bound.as_nanos_up()),
            uncertainty_ns: nanos_with_rounding(interval.uncertainty.as_nanos_up()),
            status: interval.status.into(),
            way: match interval.way {
                IntervalWay::Difference => WayCode::Difference,
                IntervalWay::Absolute => WayCode::Absolute,
            },
        }
    }
}

impl From<Stamp> for CStamp {
    fn from(stamp: Stamp) -> Self {
        CStamp { counter: stamp.counter().raw(), epoch: stamp.epoch().raw() }
    }
}

impl TryFrom<Option<&CStamp>> for Stamp {
    type Error = ErrorCode;
    fn try_from(stamp: Option<&CStamp>) -> Result<Self, ErrorCode> {
        let stamp = stamp.ok_or(ErrorCode::NullPointer)?;
        Ok(Stamp::from_parts(Counter::from_raw(stamp.counter), CounterEpoch::from_raw(stamp.epoch)))
    }
}

impl From<Status> for StatusCode {
    fn from(status: Status) -> Self {
        match status {
            Status::Unsynchronised => StatusCode::Unsynchronised,
            Status::WarmingUp => StatusCode::WarmingUp,
            Status::Holdover => StatusCode::Holdover,
            Status::Synchronised => StatusCode::Synchronised,
        }
    }
}

impl From<PageError> for ErrorCode {
    fn from(error: PageError) -> Self {
        match error {
            PageError::NotAPage | PageError::Size(_) => ErrorCode::NotAPage,
            PageError::Version(_) => ErrorCode::Version,
            PageError::OtherBoot => ErrorCode::OtherBoot,
            PageError::Empty => ErrorCode::Empty,
            PageError::Torn | PageError::Corrupt => ErrorCode::Damaged,
        }
    }
}

impl From<ReadError> for ErrorCode {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Page(error) => error.into(),
            ReadError::NoEstimate => ErrorCode::NoEstimate,
            ReadError::Disrupted => ErrorCode::Disrupted,
            ReadError::BeforeEpoch => ErrorCode::BeforeEpoch,
            ReadError::OtherEpoch => ErrorCode::OtherEpoch,
            ReadError::OtherCounter(_) => ErrorCode::OtherCounter,
            ReadError::CounterUnreadable { .. } => ErrorCode::CounterUnreadable,
        }
    }
}

impl From<&OpenError> for ErrorCode {
    fn from(error: &OpenError) -> Self {
        match error {
            OpenError::Page { error, .. } => (*error).into(),
            OpenError::Counter { .. } => ErrorCode::CounterUnreadable,
            OpenError::File { error } => error.into(),
        }
    }
}

impl From<&PageFileError> for ErrorCode {
    fn from(error: &PageFileError) -> Self {
        match error {
            PageFileError::Missing(_) => ErrorCode::Missing,
            PageFileError::Permission(_) => ErrorCode::Permission,
            PageFileError::NotAFile(_)
            | PageFileError::Size { .. }
            | PageFileError::Foreign { .. }
            | PageFileError::Hole(_) => ErrorCode::NotAPage,
            PageFileError::NoSpace { .. } | PageFileError::Busy(_) | PageFileError::Io { .. } => ErrorCode::System,
        }
    }
}
