/* Stands beside a program, on its clock, and writes down what that clock really was: it reads it as the program does, by
 * the interposer, and before and after it the truth, the host's own clock, past the interposer.
 *
 *   witness CLOCK ORIGIN INTERVAL FILE
 *
 * CLOCK is `system`, or `raw` for the counter below a page. Each INTERVAL ns, from ORIGIN on (ns of the host's clock), the
 * monitor looks; the witness reads each 0.25 ms from 1 ms before to 4 ms after. A line has the truth before, the truth
 * after, and the clock [ns]. It can change nothing (FFCLOCK_LIVE_WITNESS makes its clock read-only), and it does not wait
 * in a loop.
 *
 * With FFCLOCK_LIVE_GUEST it runs in a guest of user-mode Linux, with the same files in its directory, and reads the
 * host's clock there, in whole microseconds (see interposer.c). Where both readings of the truth show the same one, so
 * did the one by which the interposer read the clock between them: such a line has no width. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

#define SECOND 1000000000LL
#define BEFORE 1000000LL
#define AFTER 4000000LL
#define STEP 250000LL
#define READINGS ((BEFORE + AFTER) / STEP)
#define TRIES 20                 /* at each place, of which the one that took the shortest time counts */

struct reading { int64_t before, clock, after; };

static int (*host)(clockid_t, struct timespec *);
static int (*const legacy)(struct timeval *, void *) = (int (*)(struct timeval *, void *))0xffffffffff600000;
static uint64_t (*renew)(void);  /* in a guest only, where the clock file does not change by itself */

static int64_t nanoseconds(const struct timespec *at) { return at->tv_sec * SECOND + at->tv_nsec; }

static int64_t truth(void) {
    struct timespec now;
    struct timeval micro;
    if (renew) return legacy(&micro, NULL), micro.tv_sec * SECOND + micro.tv_usec * 1000;
    return host(CLOCK_REALTIME, &now), nanoseconds(&now);
}

static struct reading read_once(clockid_t clock) {
    struct timespec shown;
    int64_t before = truth();
    clock_gettime(clock, &shown);
    return (struct reading){before, nanoseconds(&shown), truth()};
}

static struct reading read_well(clockid_t clock) {
    struct reading best = read_once(clock);
    for (int i = 1; i < TRIES; i++) {
        struct reading one = read_once(clock);
        if (one.after - one.before < best.after - best.before) best = one;
    }
    return best;
}

static void wait_until(int64_t at) {
    for (int64_t left; (left = at - truth()) > 0;) {
        struct timespec span = {left / SECOND, left % SECOND};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
    }
}

static void read_around(int64_t look, clockid_t clock, struct reading *to) {
    for (int i = 0; i < READINGS; i++) {
        wait_until(look - BEFORE + i * STEP);
        to[i] = read_well(clock);
    }
}

int main(int words, char **word) {
    /* That of the C library itself, whatever is preloaded. */
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library) *(void **)&host = dlsym(library, "clock_gettime");
    if (words != 5 || !host) return fprintf(stderr, "witness: no clock of the host, or not four words\n"), 2;
    if (getenv("FFCLOCK_LIVE_GUEST")) *(void **)&renew = dlsym(RTLD_DEFAULT, "ffclock_live_renew");
    clockid_t clock = strcmp(word[1], "raw") ? CLOCK_REALTIME : CLOCK_MONOTONIC_RAW;
    int64_t look = atoll(word[2]), interval = atoll(word[3]);
    FILE *to = fopen(word[4], "a");
    if (!to || interval <= AFTER + BEFORE) return perror(word[4]), 1;
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;; look += interval) {
        struct reading r[READINGS];
        if (truth() > look - BEFORE) continue;
        wait_until(look - 2 * BEFORE);
        uint64_t sequence = renew ? renew() : 0;
        if (sequence & 1) continue;
        read_around(look, clock, r);
        if (renew && renew() != sequence) continue;   /* it was set meanwhile */
        for (int i = 0; i < READINGS; i++)
            fprintf(to, "%lld %lld %lld\n", (long long)r[i].before, (long long)r[i].after, (long long)r[i].clock);
        if (fflush(to)) return perror(word[4]), 1;
    }
}
