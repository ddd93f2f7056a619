/* Null pointers and unknown error codes: answered, never followed. The argument is a good page. */
#include <ffclock.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                        \
    do {                                                         \
        if (!(condition)) {                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            return 1;                                            \
        }                                                        \
    } while (0)

int main(int argc, char **argv)
{
    const enum ffclock_error null_pointer = FFCLOCK_ERROR_NULL_POINTER;
    struct ffclock *clock = NULL;
    struct ffclock_stamp stamp = {7, 7};
    struct ffclock_reading reading = {0};
    struct ffclock_interval interval = {0};
    struct ffclock_range range = {7, 7}, before, after;
    uint64_t noise_ns = 0;

    EXPECT(argc == 2);
    EXPECT(ffclock_open(argv[1], NULL) == null_pointer);
    EXPECT(ffclock_open("/nowhere", &clock) == FFCLOCK_ERROR_MISSING && clock == NULL);
    EXPECT(ffclock_open(argv[1], &clock) == FFCLOCK_ERROR_OK && clock != NULL);

    EXPECT(ffclock_now(NULL, &reading) == null_pointer && ffclock_now(clock, NULL) == null_pointer);
    EXPECT(ffclock_stamp(NULL, &stamp) == null_pointer && ffclock_stamp(clock, NULL) == null_pointer);
    EXPECT(ffclock_at(NULL, &stamp, &reading) == null_pointer && ffclock_at(clock, NULL, &reading) == null_pointer);
    EXPECT(ffclock_at(clock, &stamp, NULL) == null_pointer);
    EXPECT(ffclock_at_strict(NULL, &stamp, &reading) == null_pointer);
    EXPECT(ffclock_at_strict(clock, NULL, &reading) == null_pointer);
    EXPECT(ffclock_at_strict(clock, &stamp, NULL) == null_pointer);
    EXPECT(ffclock_noise_at(NULL, &stamp, &noise_ns) == null_pointer);
    EXPECT(ffclock_noise_at(clock, NULL, &noise_ns) == null_pointer);
    EXPECT(ffclock_noise_at(clock, &stamp, NULL) == null_pointer);
    EXPECT(ffclock_now_strict(NULL, &reading) == null_pointer && ffclock_now_strict(clock, NULL) == null_pointer);
    EXPECT(ffclock_elapsed(NULL, &stamp, &stamp, &interval) == null_pointer);
    EXPECT(ffclock_elapsed(clock, NULL, &stamp, &interval) == null_pointer);
    EXPECT(ffclock_elapsed(clock, &stamp, NULL, &interval) == null_pointer);
    EXPECT(ffclock_elapsed(clock, &stamp, &stamp, NULL) == null_pointer);
    EXPECT(ffclock_wait_until(NULL, 1, 1, &reading) == null_pointer);
    EXPECT(ffclock_wait_until(clock, 1, 1, NULL) == null_pointer);
    EXPECT(ffclock_range_at(NULL, &stamp, &range) == null_pointer);
    EXPECT(ffclock_range_at(clock, NULL, &range) == null_pointer);
    EXPECT(ffclock_range_at(clock, &stamp, NULL) == null_pointer);
    EXPECT(ffclock_wait_certainly_after(NULL, 1, 1, &range) == null_pointer);
    EXPECT(ffclock_wait_certainly_after(clock, 1, 1, NULL) == null_pointer);
    EXPECT(!ffclock_certainly_before(NULL, &range) && !ffclock_certainly_before(&range, NULL));
    EXPECT(ffclock_reopen(NULL) == null_pointer);
    EXPECT(ffclock_status(NULL) == FFCLOCK_STATUS_UNSYNCHRONISED);

    EXPECT(stamp.counter == 7 && stamp.epoch == 7 && reading.seconds == 0);
    EXPECT(ffclock_at(clock, &stamp, &reading) == FFCLOCK_ERROR_OTHER_EPOCH && reading.seconds == 0);
    EXPECT(ffclock_wait_until(clock, 1, 1, &reading) == FFCLOCK_ERROR_TIMEOUT && reading.seconds == 0);
    EXPECT(ffclock_wait_until(clock, 1000000, 1, &reading) == FFCLOCK_ERROR_OK && reading.seconds != 0);
    EXPECT(reading.bound_ns > 50000 && reading.bound_ns < 1000000 && reading.uncertainty_ns > 2000);
    EXPECT(ffclock_now_strict(clock, &reading) == FFCLOCK_ERROR_OK);
    EXPECT(reading.bound_ns > 50000 && reading.bound_ns < 1000000);
    EXPECT(ffclock_stamp(clock, &stamp) == FFCLOCK_ERROR_OK);
    EXPECT(ffclock_at_strict(clock, &stamp, &reading) == FFCLOCK_ERROR_OK && reading.seconds != 0);
    EXPECT(ffclock_noise_at(clock, &stamp, &noise_ns) == FFCLOCK_ERROR_OK);
    EXPECT(noise_ns != 0 && noise_ns < reading.uncertainty_ns);
    EXPECT(ffclock_wait_certainly_after(clock, INT64_MAX, 1, &range) == FFCLOCK_ERROR_TIMEOUT);
    EXPECT(range.earliest_ns == 7 && range.latest_ns == 7);
    EXPECT(ffclock_range_at(clock, &stamp, &before) == FFCLOCK_ERROR_OK);
    EXPECT(before.latest_ns - before.earliest_ns >= 100000 && before.latest_ns - before.earliest_ns < 2000000);
    EXPECT(before.earliest_ns / 1000000000 - 37 == reading.seconds || before.latest_ns / 1000000000 - 37 == reading.seconds);
    EXPECT(ffclock_wait_certainly_after(clock, before.latest_ns, 30000000000u, &after) == FFCLOCK_ERROR_OK);
    EXPECT(ffclock_certainly_before(&before, &after) == 1 && ffclock_certainly_before(&after, &before) == 0);
    EXPECT(ffclock_certainly_before(&before, &before) == 0);
    EXPECT(ffclock_reopen(clock) == FFCLOCK_ERROR_OK);
    EXPECT(ffclock_status(clock) == FFCLOCK_STATUS_SYNCHRONISED);

    for (int error = FFCLOCK_ERROR_OK; error <= FFCLOCK_ERROR_DISRUPTED; error++)
        EXPECT(strstr(ffclock_strerror(error), "unknown") == NULL);
    EXPECT(strstr(ffclock_strerror(-1), "unknown") != NULL);

    ffclock_close(clock);
    ffclock_close(NULL);
    return 0;
}
