#include "service/cores.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/test_cores_XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static void teardown(void)
{
    cr_assert_eq(nftw(root, entry_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void file_make(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + sizeof root, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static size_t cores(const char *membership)
{
    char path[256];

    file_make("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    return cores_by_quota(root, path);
}

static const struct {
    const char *quota;
    size_t cores;
} QUOTA_ROWS[] = {
    {"max 100000\n", SIZE_MAX}, {"200000 100000\n", 2}, {"100000 100000\n", 1},
    {"100001 100000\n", 2},     {"1000 100000\n", 1},   {"0 100000\n", SIZE_MAX},
    {"nonsense\n", SIZE_MAX},   {"", SIZE_MAX},         {"100000 0\n", SIZE_MAX},
};

Test(cores_by_quota, rounds_a_part_of_a_core_up, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof QUOTA_ROWS / sizeof *QUOTA_ROWS; i++) {
        file_make("app/cpu.max", QUOTA_ROWS[i].quota);
        cr_expect_eq(cores("0::/app\n"), QUOTA_ROWS[i].cores, "%s", QUOTA_ROWS[i].quota);
    }
}

Test(cores_by_quota, takes_the_smallest_quota_on_the_way_to_the_root, .init = setup,
     .fini = teardown)
{
    file_make("a/b/c/cpu.max", "800000 100000\n");
    file_make("a/cpu.max", "300000 100000\n");
    cr_expect_eq(cores("0::/a/b/c\n"), 3);
    file_make("a/b/cpu.max", "400000 200000\n");
    cr_expect_eq(cores("0::/a/b/c\n"), 2);
}

Test(cores_by_quota, reads_the_mount_where_the_path_leads_nowhere, .init = setup, .fini = teardown)
{
    file_make("cpu.max", "500000 100000\n");
    cr_expect_eq(cores("0::/outside/of/the/container\n"), 5);
    cr_expect_eq(cores("0::/\n"), 5);
}

Test(cores_by_quota, knows_version_1, .init = setup, .fini = teardown)
{
    static const char membership[] = "5:memory:/app\n4:cpuset:/app\n3:cpu,cpuacct:/app\n0::/\n";

    file_make("cpu,cpuacct/app/cpu.cfs_quota_us", "150000\n");
    file_make("cpu,cpuacct/app/cpu.cfs_period_us", "50000\n");
    cr_expect_eq(cores(membership), 3);
    file_make("cpu,cpuacct/app/cpu.cfs_quota_us", "-1\n");
    cr_expect_eq(cores(membership), SIZE_MAX);
}

Test(cores_by_quota, is_no_limit_where_nothing_can_be_read, .init = setup, .fini = teardown)
{
    cr_expect_eq(cores(""), SIZE_MAX);
    cr_expect_eq(cores("no colons here\n"), SIZE_MAX);
    cr_expect_eq(cores("0::no slash\n"), SIZE_MAX);
    cr_expect_eq(cores_by_quota(root, "/nonexistent"), SIZE_MAX);
}

Test(cores_available, is_at_least_one_and_at_most_the_machines)
{
    cr_expect_geq(cores_available(), 1);
    cr_expect_leq(cores_available(), (size_t)sysconf(_SC_NPROCESSORS_CONF));
}
