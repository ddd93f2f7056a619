/* SPDX-License-Identifier: GPL-2.0 */
/* The interface between the parts of the module, and for other modules. */
#ifndef _FFCOUNTER_H
#define _FFCOUNTER_H

#include <linux/fs.h>
#include <linux/poll.h>
#include "include/uapi/ffcounter.h"

/**
 * ffcounter_read() - read a counter
 * @id: one of enum ffcounter_id
 * @sample: where to put the reading
 *
 * May be called in any context but NMI.
 *
 * Return: 0, -ENODEV (no such counter), -EAGAIN (asleep).
 */
int ffcounter_read(u32 id, struct ffcounter_sample *sample);

/* Stamps of packets for one open file, see stamp.c. */
struct ffc_ring;

struct ffc_ring *ffc_ring_new(void);
void ffc_ring_free(struct ffc_ring *ring);
int ffc_ring_set(struct ffc_ring *ring, const struct ffcounter_stamping *want);
ssize_t ffc_ring_read(struct ffc_ring *ring, char __user *to, size_t size);
__poll_t ffc_ring_poll(struct ffc_ring *ring, struct file *file,
		       poll_table *wait);

#endif /* _FFCOUNTER_H */
