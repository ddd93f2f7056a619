/* A line for each second of virtual time: what a reader of the page would have read, beside the truth. */
#ifndef FFCLOCK_ADAPTER_SAMPLES_H
#define FFCLOCK_ADAPTER_SAMPLES_H

#include <stdint.h>
#include <time.h>

/* The host's and the simulator's functions that it needs. */
struct clocks {
    int (*simulated_gettime)(clockid_t, struct timespec *);
    clockid_t truth;
    long (*host_call)(long, ...);   /* syscall(2) of the host, which a simulator may have replaced */
};

/* Opens the file that FFCLOCK_ADAPTER_OUTPUT names; without that name no line is written. Ends the process where it
 * cannot be written. */
void samples_begin(const struct clocks *clocks);

/* Milliseconds until the next line is due, rounded up, and 0 where it is due; INT32_MAX where none is written. */
int32_t samples_due_ms(void);

/* Writes the line that is due. */
void samples_take(void);

#endif
