/* Prints the time with its bound, and how long the reading took.
 *
 *   cc now.c $(pkg-config --cflags --libs ffclock) -o now && ./now [PAGE]
 */
#include <ffclock.h>
#include <stdio.h>
#include <time.h>

static const char *const status_names[] = {"?", "unsynchronised", "warming up", "holdover", "synchronised"};

static int fail(enum ffclock_error error)
{
    fprintf(stderr, "%s\n", ffclock_strerror(error));
    return 1;
}

static void print_reading(const struct ffclock_reading *reading)
{
    time_t seconds = (time_t)reading->seconds;
    struct tm utc;
    char text[32];

    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
    printf("%s.%09uZ", text, (unsigned)reading->nanoseconds);
    if (reading->bound_ns != UINT64_MAX)
        printf(" +- %llu ns", (unsigned long long)reading->bound_ns);
    printf(", %s\n", status_names[reading->status]);
}

int main(int argc, char **argv)
{
    struct ffclock *clock = NULL;
    struct ffclock_stamp begin, end;
    struct ffclock_reading now;
    struct ffclock_interval took;
    enum ffclock_error error = ffclock_open(argc > 1 ? argv[1] : NULL, &clock);

    if (error)
        return fail(error);
    ffclock_stamp(clock, &begin);
    error = ffclock_now(clock, &now);
    ffclock_stamp(clock, &end);
    if (error)
        return fail(error);
    print_reading(&now);
    if ((error = ffclock_elapsed(clock, &begin, &end, &took)))
        return fail(error);
    printf("%lld ns\n", (long long)took.span_ns);
    ffclock_close(clock);
    return now.status == FFCLOCK_STATUS_UNSYNCHRONISED ? 2 : 0;
}
