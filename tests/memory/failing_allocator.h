/*
 * The allocator of a program whose k-th allocation fails, whoever asks for it, our code or a shared
 * library: the program's own malloc and its kin stand before those of the C library or of the
 * sanitizer. No library of ours calls operator new of the C++ library, which does not come by here;
 * memory that is mapped does not, either.
 */
#ifndef TICKETPRESS_TESTS_MEMORY_FAILING_ALLOCATOR_H
#define TICKETPRESS_TESTS_MEMORY_FAILING_ALLOCATOR_H

#include <stdbool.h>

/* From now on count allocations and let number `at` (from 1) fail, and with `on` all behind it. */
void failing_allocator_arm(long at, bool on);

/* Returns the number of allocations since failing_allocator_arm. */
long failing_allocator_disarm(void);

/* Print the stack at the first failure, in a build with a sanitizer. */
void failing_allocator_trace(void);

#endif
