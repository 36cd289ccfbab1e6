/*
 * How many processor cores this process may use: by its affinity mask and by the quotas of its
 * control group and all groups above it (versions 1 and 2). A container with two of 64 cores should
 * start two workers, not 64.
 */
#ifndef TICKETPRESS_SERVICE_CORES_H
#define TICKETPRESS_SERVICE_CORES_H

#include <stddef.h>

/* 1.. */
size_t cores_available(void);

/*
 * The part of it that control groups say. A part of a core counts as a core.
 *
 * In:      root        where control groups are mounted: /sys/fs/cgroup
 *          membership  the file that says which are this process's: /proc/self/cgroup
 * Returns: 1..; SIZE_MAX where no quota is set or none can be read
 */
size_t cores_by_quota(const char *root, const char *membership);

#endif
