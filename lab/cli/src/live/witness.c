/* Stands beside a program, on its clock, and writes down what that clock really was: it reads it as the program does, by
 * the interposer, and before and after it the truth, the host's own clock, past the interposer.
 *
 *   witness CLOCK ORIGIN INTERVAL FILE
 *
 * CLOCK is `system`, or `raw` for the counter below a page. Each INTERVAL ns, from ORIGIN on (ns of CLOCK_MONOTONIC), the
 * monitor looks; the witness reads each 0.25 ms from 1 ms before to 4 ms after. A line has the truth before, the truth
 * after, and the clock [ns]. It can change nothing (FFCLOCK_LIVE_WITNESS makes its clock read-only), and it does not wait
 * in a loop. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define SECOND 1000000000LL
#define BEFORE 1000000LL
#define AFTER 4000000LL
#define STEP 250000LL
#define TRIES 5                  /* at each place, of which the one that took the shortest time counts */

struct reading { int64_t before, clock, after; };

static int (*host)(clockid_t, struct timespec *);

static int64_t nanoseconds(const struct timespec *at) { return at->tv_sec * SECOND + at->tv_nsec; }

static struct reading read_once(clockid_t clock) {
    struct timespec before, shown, after;
    host(CLOCK_REALTIME, &before);
    clock_gettime(clock, &shown);
    host(CLOCK_REALTIME, &after);
    return (struct reading){nanoseconds(&before), nanoseconds(&shown), nanoseconds(&after)};
}

static struct reading read_well(clockid_t clock) {
    struct reading best = read_once(clock);
    for (int i = 1; i < TRIES; i++) {
        struct reading one = read_once(clock);
        if (one.after - one.before < best.after - best.before) best = one;
    }
    return best;
}

static int64_t mono(void) {
    struct timespec now;
    host(CLOCK_MONOTONIC, &now);
    return nanoseconds(&now);
}

static void wait_until(int64_t at) {
    struct timespec until = {at / SECOND, at % SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL)) { }
}

int main(int words, char **word) {
    /* That of the C library itself, whatever is preloaded. */
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library) *(void **)&host = dlsym(library, "clock_gettime");
    if (words != 5 || !host) return fprintf(stderr, "witness: no clock of the host, or not four words\n"), 2;
    clockid_t clock = strcmp(word[1], "raw") ? CLOCK_REALTIME : CLOCK_MONOTONIC_RAW;
    int64_t look = atoll(word[2]), interval = atoll(word[3]);
    FILE *to = fopen(word[4], "a");
    if (!to || interval <= AFTER + BEFORE) return perror(word[4]), 1;
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;; look += interval) {
        if (mono() > look + AFTER) continue;
        for (int64_t at = look - BEFORE; at < look + AFTER; at += STEP) {
            wait_until(at);
            struct reading r = read_well(clock);
            fprintf(to, "%lld %lld %lld\n", (long long)r.before, (long long)r.after, (long long)r.clock);
        }
        if (fflush(to)) return perror(word[4]), 1;
    }
}
