#include "service/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS_MAX = 8192 }; /* what a kernel can be built for */

static size_t cores_by_affinity(void)
{
    cpu_set_t set[CPUS_MAX / CPU_SETSIZE];
    int count = 0;

    if (sched_getaffinity(0, sizeof set, set) == 0)
        count = CPU_COUNT_S(sizeof set, set);
    return count > 0 ? (size_t)count : 1;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One line of a small file of the kernel's, without its end; false when it cannot be read. */
static bool line_read(const char *directory, const char *name, char *line, size_t line_bytes)
{
    char path[PATH_MAX];
    FILE *file;
    bool is_read;

    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return false;
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    is_read = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    if (is_read)
        line[strcspn(line, "\n")] = '\0';
    return is_read;
}

static size_t quota_cores(long long quota_us, long long period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return SIZE_MAX;
    return (size_t)(quota_us / period_us + (quota_us % period_us != 0));
}

/* Version 2: "QUOTA PERIOD" or "max PERIOD" in one file; version 1: a file each, quota -1 if none.
 */
static size_t group_cores(const char *directory)
{
    char line[64];
    char *end = line;
    long long quota_us = -1, period_us = -1;

    if (line_read(directory, "cpu.max", line, sizeof line)) {
        quota_us = strtoll(line, &end, 10); /* "max" reads as 0: no quota */
        period_us = strtoll(end, NULL, 10);
    } else {
        if (line_read(directory, "cpu.cfs_quota_us", line, sizeof line))
            quota_us = strtoll(line, NULL, 10);
        if (line_read(directory, "cpu.cfs_period_us", line, sizeof line))
            period_us = strtoll(line, NULL, 10);
    }
    return quota_cores(quota_us, period_us);
}

/* From a group up to the mount. Inside a container the path may be the host's and lead nowhere, but
 * the mount itself then is the container's group. */
static size_t path_cores(const char *mount, const char *group)
{
    char directory[PATH_MAX];
    size_t const mount_len = strlen(mount);
    size_t cores = SIZE_MAX;

    if (snprintf(directory, sizeof directory, "%s%s", mount, group) >= (int)sizeof directory)
        return group_cores(mount);
    while (strlen(directory) > mount_len) {
        cores = at_most(cores, group_cores(directory));
        *strrchr(directory, '/') = '\0';
    }
    return at_most(cores, group_cores(mount));
}

/* Whether a comma-separated list of version 1 controllers has "cpu". */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0'))
            return true;
    }
    return false;
}

/* One line of the membership file: ID:CONTROLLERS:PATH, without controllers in version 2. */
static size_t membership_cores(const char *root, char *line)
{
    char mount[PATH_MAX];
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

    if (group == NULL || group[1] != '/')
        return SIZE_MAX;
    *group++ = '\0';
    controllers++;
    if (*controllers == '\0')
        return path_cores(root, group);
    if (!has_cpu(controllers) ||
        snprintf(mount, sizeof mount, "%s/%s", root, controllers) >= (int)sizeof mount)
        return SIZE_MAX;
    return path_cores(mount, group);
}

size_t cores_by_quota(const char *root, const char *membership)
{
    FILE *file = fopen(membership, "re");
    char line[PATH_MAX];
    size_t cores = SIZE_MAX;

    if (file == NULL)
        return SIZE_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        cores = at_most(cores, membership_cores(root, line));
    }
    fclose(file);
    return cores;
}

size_t cores_available(void)
{
    return at_most(cores_by_affinity(), cores_by_quota("/sys/fs/cgroup", "/proc/self/cgroup"));
}
