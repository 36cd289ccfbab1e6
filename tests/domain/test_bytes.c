#include "domain/bytes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

Test(bytes_append, puts_one_behind_the_other)
{
    struct bytes bytes = {0};

    for (int i = 0; i < 1000; i++)
        cr_assert(bytes_append(&bytes, "0123456789", 10, NULL) == ST_OK);
    cr_assert(bytes.len == 10000 && bytes.capacity >= bytes.len);
    for (size_t i = 0; i < bytes.len; i++)
        cr_assert(bytes.data[i] == '0' + i % 10);
    bytes_clear(&bytes);
}

Test(bytes_append, of_nothing_allocates_nothing)
{
    struct bytes bytes = {0};

    cr_expect(bytes_append(&bytes, NULL, 0, NULL) == ST_OK);
    cr_expect(bytes.data == NULL && bytes.len == 0 && bytes.capacity == 0);
}

Test(bytes_reserve, makes_room_without_changing_the_contents)
{
    struct bytes bytes = {0};
    const uint8_t *data;

    cr_assert(bytes_append(&bytes, "Ana", 3, NULL) == ST_OK);
    cr_assert(bytes_reserve(&bytes, 5000, NULL) == ST_OK);
    cr_expect(bytes.len == 3 && bytes.capacity >= 5003 && memcmp(bytes.data, "Ana", 3) == 0);
    data = bytes.data;
    cr_assert(bytes_reserve(&bytes, bytes.capacity - bytes.len, NULL) == ST_OK);
    cr_expect(bytes.data == data);
    bytes_clear(&bytes);
}

Test(bytes_reserve, refuses_more_than_there_is)
{
    static const size_t MORE[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 2 - 2};
    struct bytes bytes = {0};

    cr_assert(bytes_append(&bytes, "Ana", 3, NULL) == ST_OK);
    for (size_t i = 0; i < sizeof MORE / sizeof *MORE; i++) {
        struct error err = {0};

        cr_expect(bytes_reserve(&bytes, MORE[i], &err) == ST_NO_MEMORY);
        cr_expect(err.status == ST_NO_MEMORY && err.text[0] != '\0');
        cr_expect(bytes.len == 3 && memcmp(bytes.data, "Ana", 3) == 0);
    }
    bytes_clear(&bytes);
}

Test(bytes_move, leaves_the_source_zeroed)
{
    struct bytes src = {0};
    struct bytes dst = {0};
    const uint8_t *data;

    cr_assert(bytes_append(&src, "Ana", 3, NULL) == ST_OK);
    data = src.data;
    bytes_move(&dst, &src);
    cr_expect(src.data == NULL && src.len == 0 && src.capacity == 0);
    cr_expect(dst.data == data && dst.len == 3);
    bytes_clear(&src);
    bytes_clear(&dst);
}

Test(bytes_move, wants_an_empty_destination, .signal = SIGABRT)
{
    struct bytes src = {0};
    struct bytes dst = {0};

    cr_assert(bytes_append(&dst, "a", 1, NULL) == ST_OK);
    bytes_move(&dst, &src);
}

Test(bytes_clear, may_be_called_twice)
{
    struct bytes bytes = {0};

    cr_assert(bytes_append(&bytes, "Ana", 3, NULL) == ST_OK);
    bytes_clear(&bytes);
    bytes_clear(&bytes);
    cr_expect(bytes.data == NULL && bytes.len == 0 && bytes.capacity == 0);
}
