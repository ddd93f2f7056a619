/* libffclock: reads the clock that ffclockd publishes. See docs/client.md.
 *
 * Made by cbindgen from clock/client/src/c_api.rs; do not edit.
 *
 * Readings and stamps make no request and never wait. Functions return 0 (FFCLOCK_ERROR_OK) or say what went wrong, and
 * then leave the place for the result as it was. Null pointers are errors. */

#ifndef FFCLOCK_H
#define FFCLOCK_H

#include <stdint.h>

/* The old name of FFCLOCK_STATUS_HOLDOVER; do not use it in new programs. */
#define FFCLOCK_STATUS_FREE_RUNNING FFCLOCK_STATUS_HOLDOVER

/**
 * What went wrong; 0 is success. ffclock_strerror() puts it into words.
 */
enum ffclock_error {
  /**
   * Success: nothing went wrong.
   */
  FFCLOCK_ERROR_OK = 0,
  /**
   * A pointer that may not be null is.
   */
  FFCLOCK_ERROR_NULL_POINTER = 1,
  /**
   * There is no page: the daemon never ran.
   */
  FFCLOCK_ERROR_MISSING = 2,
  /**
   * The page may not be read by this user.
   */
  FFCLOCK_ERROR_PERMISSION = 3,
  /**
   * The file is not a page, or not of a page's size.
   */
  FFCLOCK_ERROR_NOT_A_PAGE = 4,
  /**
   * The page is of another version than this library.
   */
  FFCLOCK_ERROR_VERSION = 5,
  /**
   * The page was written before the machine was last started.
   */
  FFCLOCK_ERROR_OTHER_BOOT = 6,
  /**
   * The page is damaged.
   */
  FFCLOCK_ERROR_DAMAGED = 7,
  /**
   * The operating system refused.
   */
  FFCLOCK_ERROR_SYSTEM = 8,
  /**
   * No clock has been published here yet.
   */
  FFCLOCK_ERROR_EMPTY = 9,
  /**
   * There is no estimate at present.
   */
  FFCLOCK_ERROR_NO_ESTIMATE = 10,
  /**
   * The stamp is older than the counter's present epoch.
   */
  FFCLOCK_ERROR_BEFORE_EPOCH = 11,
  /**
   * The stamps belong to another epoch of the counter.
   */
  FFCLOCK_ERROR_OTHER_EPOCH = 12,
  /**
   * The page is about a counter that this machine has not.
   */
  FFCLOCK_ERROR_OTHER_COUNTER = 13,
  /**
   * The clock was not good enough in time.
   */
  FFCLOCK_ERROR_TIMEOUT = 14,
  /**
   * The page is about a counter of the kernel that this program cannot read.
   */
  FFCLOCK_ERROR_COUNTER_UNREADABLE = 15,
  /**
   * The virtual machine was restored, migrated or copied since, and the daemon has not found the time again.
   */
  FFCLOCK_ERROR_DISRUPTED = 16,
};

/**
 * How far a reading may be trusted.
 */
enum ffclock_status {
  /**
   * Not at all: there is no estimate, or the daemon has not been heard of for too long.
   */
  FFCLOCK_STATUS_UNSYNCHRONISED = 1,
  /**
   * Right within its bound, but the rate rests on little data.
   */
  FFCLOCK_STATUS_WARMING_UP = 2,
  /**
   * The server is lost or not believed; the clock runs on at its last rate and the bound grows.
   */
  FFCLOCK_STATUS_HOLDOVER = 3,
  /**
   * In regular work.
   */
  FFCLOCK_STATUS_SYNCHRONISED = 4,
};

/**
 * How an interval was measured.
 */
enum ffclock_way {
  /**
   * By the difference clock: ticks, times a period that is the mean of the recent past.
   */
  FFCLOCK_WAY_DIFFERENCE = 1,
  /**
   * By the absolute clock: the time of the second stamp less that of the first.
   */
  FFCLOCK_WAY_ABSOLUTE = 2,
};

/**
 * An open clock.
 */
struct ffclock;

/**
 * A time with its error figures and status, all from one publication.
 */
struct ffclock_reading {
  /**
   * UTC as POSIX counts it: whole seconds since 1970, rounded down.
   */
  int64_t seconds;
  /**
   * The rest, 0 to 999999999.
   */
  uint32_t nanoseconds;
  /**
   * How far it may be trusted.
   */
  enum ffclock_status status;
  /**
   * The largest possible error in ns; UINT64_MAX if unknown. Includes the rounding of this reading to ns. It holds
   * as long as no believed server is false by less than the others can see, and the counter's rate moves no more
   * than configured; that of ffclock_now_strict() and ffclock_at_strict() holds although a minority of the servers
   * is false in whatever way.
   */
  uint64_t bound_ns;
  /**
   * The combined standard uncertainty (k = 1) in ns; UINT64_MAX if unknown. The unknown asymmetry of the path and
   * the error of the server's own clock are in it, as far as can be assumed of them; ffclock_noise_at() leaves them
   * out.
   */
  uint64_t uncertainty_ns;
};

/**
 * A raw reading of the counter, to be converted later.
 */
struct ffclock_stamp {
  /**
   * Ticks.
   */
  uint64_t counter;
  /**
   * The epoch of the counter in which it was taken.
   */
  uint64_t epoch;
};

/**
 * How long something lasted, by the better of the difference clock and of two conversions.
 */
struct ffclock_interval {
  /**
   * From the first stamp to the second in ns, rounded to the nearest; negative when the second was taken earlier;
   * saturates.
   */
  int64_t span_ns;
  /**
   * The largest error of span_ns in ns, as long as the server's own claim is true; UINT64_MAX if unknown. Includes
   * the rounding of this interval to ns, but not how well the stamps were taken.
   */
  uint64_t bound_ns;
  /**
   * The standard uncertainty (k = 1) of span_ns in ns: of two times that of their noise. It leaves out how well
   * the stamps were taken; UINT64_MAX if unknown.
   */
  uint64_t uncertainty_ns;
  /**
   * How far it may be trusted.
   */
  enum ffclock_status status;
  /**
   * How it was measured.
   */
  enum ffclock_way way;
};

/**
 * From the earliest to the latest moment that a time can mean, in TAI, which has no leap seconds: in ns since
 * 1970-01-01 00:00:00 TAI, rounded outwards. It can be sent to another host, whose clock is compared with it.
 */
struct ffclock_range {
  /**
   * INT64_MIN where the clock is unsynchronised.
   */
  int64_t earliest_ns;
  /**
   * INT64_MAX where the clock is unsynchronised.
   */
  int64_t latest_ns;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Opens the clock whose page is at `path`; with a null pointer, the one named by the environment variable
 * FFCLOCK_PAGE, else /run/ffclock/page, else $XDG_RUNTIME_DIR/ffclock/page. On success `*clock` is to be closed with
 * ffclock_close(); it may be used by any number of threads at the same time.
 *
 * # Safety
 * `path` is null or a string; `clock` is null or points to a place for a pointer.
 */
enum ffclock_error ffclock_open(const char *path, struct ffclock **clock);

/**
 * Closes a clock. A null pointer is ignored.
 *
 * # Safety
 * `clock` is null or comes from ffclock_open(), was not closed before, and is not used afterwards.
 */
void ffclock_close(struct ffclock *clock);

/**
 * Opens the page at the same path again: for when the file was replaced, which shows in readings that stay
 * unsynchronised. Without success the clock stays as it was.
 *
 * # Safety
 * `clock` is null or open, and no other thread uses it during the call.
 */
enum ffclock_error ffclock_reopen(struct ffclock *clock);

/**
 * The present time. The counter is read after everything that the program did before.
 *
 * # Safety
 * `clock` is null or open; `reading` is null or points to a place for a reading.
 */
enum ffclock_error ffclock_now(const struct ffclock *clock, struct ffclock_reading *reading);

/**
 * Reads the counter, after everything that the program did before; converts nothing.
 *
 * # Safety
 * `clock` is null or open; `stamp` is null or points to a place for a stamp.
 */
enum ffclock_error ffclock_stamp(const struct ffclock *clock, struct ffclock_stamp *stamp);

/**
 * The time of a stamp, of up to a day ago: by the lines around it, which the daemon keeps, or by the newest line where
 * it was taken since.
 *
 * # Safety
 * `clock` is null or open; `stamp` is null or points to a stamp; `reading` is null or points to a place for a reading.
 */
enum ffclock_error ffclock_at(const struct ffclock *clock,
                              const struct ffclock_stamp *stamp,
                              struct ffclock_reading *reading);

/**
 * The noise in the time of a stamp, in ns, as ffclock_at() gives that time: the part of its standard uncertainty
 * (k = 1) that exchanges show. It leaves out the unknown asymmetry of the path and the error of the server's own
 * clock, which are common to the times of two stamps as long as the same servers are believed. UINT64_MAX if unknown.
 *
 * # Safety
 * `clock` is null or open; `stamp` is null or points to a stamp; `noise_ns` is null or points to a place for a number.
 */
enum ffclock_error ffclock_noise_at(const struct ffclock *clock, const struct ffclock_stamp *stamp, uint64_t *noise_ns);

/**
 * The present time with the bound that holds although a minority of the servers is false.
 *
 * # Safety
 * `clock` is null or open; `reading` is null or points to a place for a reading.
 */
enum ffclock_error ffclock_now_strict(const struct ffclock *clock, struct ffclock_reading *reading);

/**
 * The time of a stamp with the bound that holds although a minority of the servers is false.
 *
 * # Safety
 * `clock` is null or open; `stamp` is null or points to a stamp; `reading` is null or points to a place for a reading.
 */
enum ffclock_error ffclock_at_strict(const struct ffclock *clock,
                                     const struct ffclock_stamp *stamp,
                                     struct ffclock_reading *reading);

/**
 * From one stamp to another: by the difference clock, or by two conversions where these are better, as they are for
 * intervals of more than some minutes. Both stamps may be up to a day old.
 *
 * # Safety
 * `clock` is null or open; `first` and `second` are null or point to stamps; `interval` is null or points to a place
 * for an interval.
 */
enum ffclock_error ffclock_elapsed(const struct ffclock *clock,
                                   const struct ffclock_stamp *first,
                                   const struct ffclock_stamp *second,
                                   struct ffclock_interval *interval);

/**
 * Waits until the clock is not unsynchronised and its bound is at most `bound_ns`, for `timeout_ns` at most; then
 * gives the reading that says so, or FFCLOCK_ERROR_TIMEOUT and no reading.
 *
 * # Safety
 * `clock` is null or open; `reading` is null or points to a place for a reading.
 */
enum ffclock_error ffclock_wait_until(const struct ffclock *clock,
                                      uint64_t bound_ns,
                                      uint64_t timeout_ns,
                                      struct ffclock_reading *reading);

/**
 * The range in which the true time of a stamp lies, as ffclock_at() converts it.
 *
 * # Safety
 * `clock` is null or open; `stamp` is null or points to a stamp; `range` is null or points to a place for a range.
 */
enum ffclock_error ffclock_range_at(const struct ffclock *clock,
                                    const struct ffclock_stamp *stamp,
                                    struct ffclock_range *range);

/**
 * Whether the first event was before the second, whatever the errors within the bounds of both, on two hosts as well:
 * 1, else 0. It is 0 where the ranges touch, and where a pointer is null.
 *
 * # Safety
 * `first` and `second` are null or point to ranges.
 */
int ffclock_certainly_before(const struct ffclock_range *first, const struct ffclock_range *second);

/**
 * Waits until the moment `tai_ns` has certainly passed, for `timeout_ns` at most; then gives the present range, which
 * lies after it, or FFCLOCK_ERROR_TIMEOUT and no range. With the `latest_ns` of an event it is the commit wait of
 * databases: afterwards every clock whose bound holds shows a later time than that. It takes about twice the bound.
 *
 * # Safety
 * `clock` is null or open; `range` is null or points to a place for a range.
 */
enum ffclock_error ffclock_wait_certainly_after(const struct ffclock *clock,
                                                int64_t tai_ns,
                                                uint64_t timeout_ns,
                                                struct ffclock_range *range);

/**
 * The present status; unsynchronised also where there is no reading.
 *
 * # Safety
 * `clock` is null or open.
 */
enum ffclock_status ffclock_status(const struct ffclock *clock);

/**
 * The words for a value of enum ffclock_error, with what can be done about it. Never null; not to be freed.
 */
const char *ffclock_strerror(int error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FFCLOCK_H */
