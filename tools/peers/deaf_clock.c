/* For a clock daemon that refuses to start without the right to set the clock (ntpd-rs): every call that would set it
 * succeeds and does nothing. What only reads the state of the clock is answered by the kernel. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

/* The kernel's state of the clock; what was to be changed stays as the caller wrote it, as if it were so now. */
int clock_adjtime(clockid_t clock, struct timex *wanted) {
    struct timex state = {.modes = 0};
    int leap = (int)syscall(SYS_clock_adjtime, clock, &state);
    if (leap < 0) return leap;
    if (wanted->modes == 0) {
        *wanted = state;
    } else {
        wanted->time = state.time;
        wanted->tai = state.tai;
        wanted->tolerance = state.tolerance;
        wanted->precision = state.precision;
    }
    return TIME_OK;
}

int adjtimex(struct timex *wanted) { return clock_adjtime(CLOCK_REALTIME, wanted); }

int ntp_adjtime(struct timex *wanted) { return clock_adjtime(CLOCK_REALTIME, wanted); }

int clock_settime(clockid_t clock, const struct timespec *wanted) {
    (void)clock, (void)wanted;
    return 0;
}

int settimeofday(const struct timeval *wanted, const struct timezone *zone) {
    (void)wanted, (void)zone;
    return 0;
}
