/* Does to its clock what a script says, at given seconds of that clock, and prints what adjtimex answers. The same
 * program runs in a guest, on the kernel's own discipline, and under the interposer.
 *
 *   performer < script
 *
 * A line of the script is `SECONDS VERB VALUE [CONSTANT]`. It is done 0.3 s after the begin of a second of the clock, that
 * many seconds after the line before; 0 means at once. Half a second later, and at each of the seconds between, the state
 * is read. Each line of the output is `VERB before... after...` with the raw counter and the clock [ns] on either side, and
 * then the answer: state, offset, freq, maxerror, esterror, status, constant, tick, tai, and what remained of an adjtime [us]. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

#define SECOND 1000000000LL
#define ACTS_AT 300000000LL
#define LOOKS_AT 800000000LL

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* Sleeps until its clock shows this: first most of it, then without giving up the processor. */
static void wait_until(int64_t shown) {
    for (;;) {
        int64_t left = shown - read_clock(CLOCK_REALTIME);
        if (left <= 0) return;
        struct timespec rest = {0, left > 50000000 ? 20000000 : left / 2};
        if (left > 200000) nanosleep(&rest, NULL);
    }
}

static struct timespec split(int64_t ns) {
    int64_t seconds = ns / SECOND - (ns % SECOND < 0);
    return (struct timespec){seconds, ns - seconds * SECOND};
}

static int64_t left;

/* As `ntp_adjtime` and its kin are called for this word; the words are those of the kernel's interface. */
static int act(const char *verb, int64_t value, long constant, struct timex *x) {
    struct timespec time = split(value), now;
    struct timeval wanted = {time.tv_sec, time.tv_nsec / 1000};
    memset(x, 0, sizeof *x);
    if (!strcmp(verb, "look")) x->modes = 0;
    else if (!strcmp(verb, "frequency")) x->modes = ADJ_FREQUENCY, x->freq = value;
    else if (!strcmp(verb, "tick")) x->modes = ADJ_TICK, x->tick = value;
    else if (!strcmp(verb, "offset")) x->modes = ADJ_OFFSET | ADJ_TIMECONST, x->offset = value, x->constant = constant;
    else if (!strcmp(verb, "offset-alone")) x->modes = ADJ_OFFSET, x->offset = value;
    else if (!strcmp(verb, "constant")) x->modes = ADJ_TIMECONST, x->constant = value;
    else if (!strcmp(verb, "status")) x->modes = ADJ_STATUS, x->status = value;
    else if (!strcmp(verb, "nano")) x->modes = ADJ_NANO;
    else if (!strcmp(verb, "micro")) x->modes = ADJ_MICRO;
    else if (!strcmp(verb, "maxerror")) x->modes = ADJ_MAXERROR, x->maxerror = value;
    else if (!strcmp(verb, "esterror")) x->modes = ADJ_ESTERROR, x->esterror = value;
    else if (!strcmp(verb, "tai")) x->modes = ADJ_TAI, x->constant = value;
    else if (!strcmp(verb, "adjtime")) {
        struct timeval old;
        if (adjtime(&wanted, &old) < 0) return -errno;
        left = old.tv_sec * 1000000LL + old.tv_usec;
        x->modes = 0;
    } else if (!strcmp(verb, "left")) x->modes = ADJ_OFFSET_SS_READ;
    else if (!strcmp(verb, "step")) x->modes = ADJ_SETOFFSET | ADJ_NANO, x->time.tv_sec = time.tv_sec, x->time.tv_usec = time.tv_nsec;
    else if (!strcmp(verb, "step-micro")) x->modes = ADJ_SETOFFSET, x->time.tv_sec = time.tv_sec, x->time.tv_usec = time.tv_nsec / 1000;
    else if (!strcmp(verb, "set")) {
        /* To a number of whole seconds more than it shows. */
        now = split(read_clock(CLOCK_REALTIME) + value);
        if (clock_settime(CLOCK_REALTIME, &now) < 0) return -errno;
    } else exit(fprintf(stderr, "performer: no such verb: %s\n", verb) < 0 ? 2 : 1);
    int state = adjtimex(x);
    return state < 0 ? -errno : state;
}

static void perform(const char *verb, int64_t value, long constant) {
    struct timex x;
    left = 0;
    int64_t raw = read_clock(CLOCK_MONOTONIC_RAW), shown = read_clock(CLOCK_REALTIME);
    int state = act(verb, value, constant, &x);
    int64_t shown_after = read_clock(CLOCK_REALTIME), raw_after = read_clock(CLOCK_MONOTONIC_RAW);
    printf("%s %lld %lld %lld %lld", verb, (long long)raw, (long long)shown, (long long)raw_after, (long long)shown_after);
    printf(" %d %ld %ld %ld %ld %d %ld %ld %d %lld\n", state, x.offset, x.freq, x.maxerror, x.esterror, x.status,
        x.constant, x.tick, x.tai, (long long)left);
    fflush(stdout);
}

int main(void) {
    char line[256], verb[32];
    long long seconds, value;
    long constant;
    int64_t at = (read_clock(CLOCK_REALTIME) / SECOND + 1) * SECOND;
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == '#' || line[0] == '\n') continue;
        value = constant = 0;
        if (sscanf(line, "%lld %31s %lld %ld", &seconds, verb, &value, &constant) < 2) return 1;
        for (; seconds > 0; seconds--) {
            wait_until(at + LOOKS_AT);
            perform("look", 0, 0);
            at += SECOND;
        }
        wait_until(at + ACTS_AT);
        perform(verb, value, constant);
        /* Where a step led. */
        at = read_clock(CLOCK_REALTIME) / SECOND * SECOND;
    }
    return 0;
}
