/* Writes down what a program does to its clock: preloaded, it hands each call on and notes it in the file that
 * FFCLOCK_UML_RECORD names. Reading the clock is not noted.
 *
 * A call that may change the clock returns some milliseconds after it. Each line is `KIND before... after... answer`, the
 * raw counter and the clock [ns] on either side, the answer of the call (or the error, negative), then what was asked and
 * what came back as struct timex has it: modes, offset, freq, maxerror, esterror, status, constant, tick, tai, and the two
 * words of its time. KIND is `adjtimex`, or `set`, whose time has nanoseconds. replayer.c takes the same words. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define SEEN_AFTER 3000000LL      /* ns */

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static int print_words(char *to, size_t room, const struct timex *x) {
    return snprintf(to, room, " %u %ld %ld %ld %ld %d %ld %ld %d %ld %ld", x->modes, x->offset, x->freq, x->maxerror,
        x->esterror, x->status, x->constant, x->tick, x->tai, (long)x->time.tv_sec, (long)x->time.tv_usec);
}

/* One write for each line, so that the lines of several threads do not mix. A record with a hole is none. */
static void note(const char *line, size_t length) {
    const char *path = getenv("FFCLOCK_UML_RECORD");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (file < 0 || write(file, line, length) != (ssize_t)length) _exit(126);
    close(file);
}

static int handed_on(const char *kind, struct timex *x) {
    static int (*adjust)(clockid_t, struct timex *);
    static int (*set)(clockid_t, const struct timespec *);
    if (!adjust) *(void **)&adjust = dlsym(RTLD_NEXT, "clock_adjtime");
    if (!set) *(void **)&set = dlsym(RTLD_NEXT, "clock_settime");
    if (*kind == 'a') return adjust(CLOCK_REALTIME, x);
    struct timespec wanted = {x->time.tv_sec, x->time.tv_usec};
    return set(CLOCK_REALTIME, &wanted);
}

/* Who reads the kernel's memory from outside is to see each change by itself; a daemon makes several in a fraction of a
 * millisecond. It has read the clock before each of them, so that a later return does not change what it does. */
static void wait_for_readers(int64_t raw) {
    while (read_clock(CLOCK_MONOTONIC_RAW) < raw + SEEN_AFTER) continue;
}

static int recorded(const char *kind, struct timex *x) {
    char line[1024];
    struct timex asked = *x;
    int64_t raw = read_clock(CLOCK_MONOTONIC_RAW), shown = read_clock(CLOCK_REALTIME);
    int result = handed_on(kind, x), error = errno;
    int64_t shown_after = read_clock(CLOCK_REALTIME), raw_after = read_clock(CLOCK_MONOTONIC_RAW);
    int length = snprintf(line, sizeof line, "%s %lld %lld %lld %lld %d", kind, (long long)raw, (long long)shown,
        (long long)raw_after, (long long)shown_after, result < 0 ? -error : result);
    length += print_words(line + length, sizeof line - (size_t)length, &asked);
    length += print_words(line + length, sizeof line - (size_t)length, x);
    length += snprintf(line + length, sizeof line - (size_t)length, "\n");
    note(line, (size_t)length);
    if (asked.modes || *kind == 's') wait_for_readers(raw_after);
    errno = error;
    return result;
}

int clock_adjtime(clockid_t clock, struct timex *x) {
    return clock == CLOCK_REALTIME ? recorded("adjtimex", x) : (errno = EPERM, -1);
}

int adjtimex(struct timex *x) { return recorded("adjtimex", x); }

int ntp_adjtime(struct timex *x) { return recorded("adjtimex", x); }

int adjtime(const struct timeval *wanted, struct timeval *old) {
    struct timex x = {.modes = wanted ? ADJ_OFFSET_SINGLESHOT : ADJ_OFFSET_SS_READ};
    if (wanted) x.offset = wanted->tv_sec * 1000000 + wanted->tv_usec;
    if (recorded("adjtimex", &x) < 0) return -1;
    if (old) old->tv_sec = x.offset / 1000000, old->tv_usec = x.offset % 1000000;
    return 0;
}

int clock_settime(clockid_t clock, const struct timespec *to) {
    struct timex x = {.time = {to->tv_sec, to->tv_nsec}};
    return clock == CLOCK_REALTIME ? recorded("set", &x) : (errno = EPERM, -1);
}

int settimeofday(const struct timeval *to, const struct timezone *zone) {
    (void)zone;
    if (!to) return 0;
    struct timespec wanted = {to->tv_sec, to->tv_usec * 1000};
    return clock_settime(CLOCK_REALTIME, &wanted);
}
