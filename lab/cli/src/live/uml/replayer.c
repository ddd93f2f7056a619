/* Does again what a program did to its clock, at the same readings of the raw counter, under the interposer. No time
 * passes: the host's clock, of which the interposer's raw counter is a function, is whatever the next line says. So this is
 * compiled twice, with REPLAYED_CLOCK as the library of that clock, which stands between the interposer and the C library,
 * and without as the program, which is linked with it.
 *
 *   replayer < calls
 *
 * Each line is `RAW KIND` and the eleven words of recorder.c for what was asked; each line of the output is the answer of
 * the call (or the error, negative), and the eleven words that came back. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/timex.h>
#include <time.h>

#define SECOND 1000000000LL

#ifdef REPLAYED_CLOCK

int64_t replayed_now;

int clock_gettime(clockid_t clock, struct timespec *to) {
    (void)clock;
    *to = (struct timespec){replayed_now / SECOND, replayed_now % SECOND};
    return 0;
}

#else

extern int64_t replayed_now;

static int act(char kind, struct timex *x) {
    struct timespec wanted = {x->time.tv_sec, x->time.tv_usec};
    int result = kind == 'a' ? adjtimex(x) : clock_settime(CLOCK_REALTIME, &wanted);
    return result < 0 ? -errno : result;
}

int main(void) {
    long long raw;
    char kind[16];
    struct timex x;
    long seconds, part;
    while (scanf("%lld %15s %u %ld %ld %ld %ld %d %ld %ld %d %ld %ld", &raw, kind, &x.modes, &x.offset, &x.freq, &x.maxerror,
               &x.esterror, &x.status, &x.constant, &x.tick, &x.tai, &seconds, &part) == 13) {
        x.time.tv_sec = seconds, x.time.tv_usec = part;
        replayed_now = raw;
        int result = act(*kind, &x);
        printf("%d %u %ld %ld %ld %ld %d %ld %ld %d %ld %ld\n", result, x.modes, x.offset, x.freq, x.maxerror, x.esterror,
            x.status, x.constant, x.tick, x.tai, (long)x.time.tv_sec, (long)x.time.tv_usec);
    }
    return !feof(stdin);
}

#endif
