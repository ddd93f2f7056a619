/* Reads the clock a hundred times a second through one mapping until it is interrupted, and compares it with the system
 * clock, which is what the server of the test serves. Then prints one line: readings, readings without a time, readings
 * whose bound did not hold, the largest bound in ns.
 */
#include <ffclock.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static __int128 system_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (__int128)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void)
{
    const struct timespec pause = {0, 10000000};
    unsigned long readings = 0, without = 0, outside = 0;
    uint64_t largest_ns = 0;
    struct ffclock *clock = NULL;
    enum ffclock_error error = ffclock_open(NULL, &clock);

    if (error) {
        fprintf(stderr, "%s\n", ffclock_strerror(error));
        return 1;
    }
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    while (!interrupted) {
        struct ffclock_reading now;
        __int128 before = system_ns(), time, after;

        error = ffclock_now(clock, &now);
        after = system_ns();
        readings++;
        if (error || now.status == FFCLOCK_STATUS_UNSYNCHRONISED) {
            without++;
        } else {
            time = (__int128)now.seconds * 1000000000 + now.nanoseconds;
            if (time + now.bound_ns < before || time - (__int128)now.bound_ns > after)
                outside++;
            if (now.bound_ns > largest_ns)
                largest_ns = now.bound_ns;
        }
        nanosleep(&pause, NULL);
    }
    printf("%lu %lu %lu %llu\n", readings, without, outside, (unsigned long long)largest_ns);
    ffclock_close(clock);
    return 0;
}
