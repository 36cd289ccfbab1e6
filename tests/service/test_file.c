#include "service/file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE_BYTES = 300000 };

static char directory[] = "/tmp/test_file_XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
    umask(022);
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
    cr_assert_eq(nftw(directory, entry_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void file_make(const char *path, size_t bytes, mode_t mode)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    for (size_t i = 0; i < bytes; i++)
        fputc('a' + (int)(i % 26), file);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(chmod(path, mode), 0);
}

static mode_t mode_of(const char *path)
{
    struct stat info;

    cr_assert_eq(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static size_t entries_count(void)
{
    DIR *dir = opendir(".");
    size_t count = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

/* ---- reading ---- */

Test(file_read, reads_up_to_the_limit_and_no_more, .init = setup, .fini = teardown)
{
    static const size_t sizes[] = {0, 1, 255, 256, 257, 65536, LARGE_BYTES};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bytes bytes;

        file_make("f", sizes[i], 0600);
        cr_assert_eq(file_read("f", sizes[i] > 0 ? sizes[i] : 1, &bytes, NULL), ST_OK);
        cr_expect_eq(bytes.len, sizes[i]);
        if (sizes[i] > 26)
            cr_expect(bytes.data[0] == 'a' && bytes.data[27] == 'b');
        bytes_clear(&bytes);
        if (sizes[i] > 1) {
            cr_expect_eq(file_read("f", sizes[i] - 1, &bytes, NULL), ST_TOO_LARGE);
            cr_expect_null(bytes.data);
        }
    }
}

Test(file_read, reads_a_pipe_to_its_end, .init = setup, .fini = teardown)
{
    struct bytes bytes;
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], "abc", 3), 3);
    cr_assert_eq(write(ends[1], "def", 3), 3);
    close(ends[1]);
    cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    cr_assert_eq(file_read("-", 6, &bytes, NULL), ST_OK);
    cr_expect_eq(bytes.len, 6);
    cr_expect_arr_eq(bytes.data, "abcdef", 6);
    bytes_clear(&bytes);
}

Test(file_read, tells_missing_from_unreadable, .init = setup, .fini = teardown)
{
    struct bytes bytes;
    struct error err = {0};

    cr_expect_eq(file_read("none", 10, &bytes, &err), ST_NOT_FOUND);
    cr_expect_eq(strncmp(err.text, "none: ", 6), 0, "%s", err.text);
    cr_expect_eq(file_read(".", 10, &bytes, &err), ST_IO);
    cr_expect_null(bytes.data);
}

Test(file_read_ordinary, reads_a_file_and_waits_for_no_pipe, .init = setup, .fini = teardown,
     .timeout = 10)
{
    struct bytes bytes;
    struct error err = {0};

    file_make("f", 300, 0600);
    cr_expect_eq(symlink("f", "link"), 0);
    cr_assert_eq(file_read_ordinary("link", 300, &bytes, NULL), ST_OK);
    cr_expect_eq(bytes.len, 300);
    bytes_clear(&bytes);
    cr_expect_eq(file_read_ordinary("f", 299, &bytes, NULL), ST_TOO_LARGE);
    cr_expect_eq(file_read_ordinary("none", 10, &bytes, NULL), ST_NOT_FOUND);
    cr_expect_eq(file_read_ordinary(".", 10, &bytes, &err), ST_IO);
    cr_expect_str_eq(err.text, ".: Is a directory");
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    cr_expect_eq(file_read_ordinary("pipe", 10, &bytes, &err), ST_IO);
    cr_expect_str_eq(err.text, "pipe: Not an ordinary file");
    cr_expect_eq(file_read_ordinary("/dev/zero", 10, &bytes, NULL), ST_IO);
    cr_expect_null(bytes.data);
}

static const struct {
    mode_t mode;
    enum status expected;
} MODE_ROWS[] = {
    {0600, ST_OK},      {0640, ST_OK},      {0400, ST_OK},      {0604, ST_INVALID},
    {0644, ST_INVALID}, {0602, ST_INVALID}, {0601, ST_INVALID},
};

Test(file_read_secret, refuses_what_is_open_to_everyone, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof MODE_ROWS / sizeof *MODE_ROWS; i++) {
        struct bytes bytes;
        struct error err = {0};

        file_make("f", 5, MODE_ROWS[i].mode);
        cr_expect_eq(file_read_secret("f", 5, &bytes, &err), MODE_ROWS[i].expected, "%04o: %s",
                     MODE_ROWS[i].mode, err.text);
        if (MODE_ROWS[i].expected == ST_OK)
            cr_expect_eq(bytes.len, 5);
        file_secret_clear(&bytes);
        cr_expect_null(bytes.data);
        cr_assert_eq(unlink("f"), 0);
    }
}

Test(file_read_secret, names_the_mode, .init = setup, .fini = teardown)
{
    struct bytes bytes;
    struct error err = {0};

    file_make("f", 5, 0644);
    cr_expect_eq(file_read_secret("f", 5, &bytes, &err), ST_INVALID);
    cr_expect_not_null(strstr(err.text, "0644"), "%s", err.text);
}

Test(file_read_secret, keeps_to_the_limit, .init = setup, .fini = teardown)
{
    struct bytes bytes;

    file_make("f", 6, 0600);
    cr_expect_eq(file_read_secret("f", 5, &bytes, NULL), ST_TOO_LARGE);
    cr_expect_eq(file_read_secret("none", 5, &bytes, NULL), ST_NOT_FOUND);
}

Test(file_make_private, closes_a_regular_file_only, .init = setup, .fini = teardown)
{
    int fd, ends[2];

    file_make("f", 0, 0666);
    fd = open("f", O_WRONLY);
    cr_assert_geq(fd, 0);
    cr_expect_eq(file_make_private(fd, NULL), ST_OK);
    cr_expect_eq(mode_of("f"), 0600);
    close(fd);
    cr_assert_eq(pipe(ends), 0);
    cr_expect_eq(file_make_private(ends[1], NULL), ST_OK);
    cr_expect_eq(file_make_private(-1, NULL), ST_IO);
}

/* ---- writing ---- */

static struct bytes document_of(size_t len)
{
    struct bytes document = {0};

    for (size_t i = 0; i < len; i++)
        cr_assert_eq(bytes_append(&document, &(char){(char)('a' + i % 26)}, 1, NULL), ST_OK);
    return document;
}

static void expect_content(const char *path, const struct bytes *document)
{
    struct bytes read;

    cr_assert_eq(file_read(path, document->len + 1, &read, NULL), ST_OK);
    cr_assert_eq(read.len, document->len);
    cr_expect_arr_eq(read.data, document->data, read.len);
    bytes_clear(&read);
}

Test(file_write, makes_a_new_file_with_the_usual_rights, .init = setup, .fini = teardown)
{
    struct bytes document = document_of(LARGE_BYTES);

    umask(027);
    cr_assert_eq(file_write("out", &document, NULL), ST_OK);
    expect_content("out", &document);
    cr_expect_eq(mode_of("out"), 0640);
    cr_expect_eq(entries_count(), 1);
    bytes_clear(&document);
}

Test(file_write, takes_the_place_of_an_old_file, .init = setup, .fini = teardown)
{
    struct bytes document = document_of(10);
    char path[64];

    snprintf(path, sizeof path, "%s/out", directory);
    file_make("out", LARGE_BYTES, 0600);
    cr_assert_eq(file_write(path, &document, NULL), ST_OK);
    expect_content("out", &document);
    cr_expect_eq(entries_count(), 1);
    bytes_clear(&document);
}

Test(file_write, steps_over_what_a_killed_process_left, .init = setup, .fini = teardown)
{
    struct bytes document = document_of(10);
    char left[64];

    snprintf(left, sizeof left, ".ticketpress-%ld-0.tmp", (long)getpid());
    file_make(left, 3, 0600);
    cr_assert_eq(file_write("out", &document, NULL), ST_OK);
    expect_content("out", &document);
    bytes_clear(&document);
}

Test(file_write, leaves_nothing_behind_when_it_cannot_write, .init = setup, .fini = teardown)
{
    struct bytes document = document_of(10);
    struct error err = {0};

    cr_expect_eq(file_write("none/out", &document, &err), ST_IO);
    cr_expect_eq(strncmp(err.text, "none/out: ", 10), 0, "%s", err.text);
    cr_assert_eq(mkdir("dir", 0700), 0);
    cr_expect_eq(file_write("dir", &document, NULL), ST_IO);
    cr_expect_eq(file_write("dir/", &document, NULL), ST_IO);
    cr_expect_eq(file_write("/dev/full", &document, NULL), ST_IO);
    cr_expect_eq(entries_count(), 1);
    bytes_clear(&document);
}

Test(file_write, writes_to_a_device_and_leaves_it_one, .init = setup, .fini = teardown)
{
    struct bytes document = document_of(10);
    struct stat info;

    cr_expect_eq(file_write("/dev/null", &document, NULL), ST_OK);
    cr_assert_eq(stat("/dev/null", &info), 0);
    cr_expect(S_ISCHR(info.st_mode));
    bytes_clear(&document);
}

Test(file_write, writes_to_standard_output, .init = setup, .fini = teardown)
{
    struct bytes document = document_of(LARGE_BYTES);
    int const fd = open("out", O_WRONLY | O_CREAT, 0600);

    cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    cr_expect_eq(file_write("-", &document, NULL), ST_OK);
    expect_content("out", &document);
    bytes_clear(&document);
}
