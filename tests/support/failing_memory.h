/*
 * Memory that runs out when a test says so. Linked with --wrap, so it stands between our own
 * objects and the allocator; libraries keep the real one. To meet the end of memory everywhere:
 *
 *     for (size_t call = 1;; call++) {
 *         failing_memory_start(call);
 *         st = work();
 *         if (!failing_memory_stop())
 *             break;
 *         (st must be ST_NO_MEMORY, and nothing may be left)
 *     }
 */
#ifndef TICKETPRESS_TESTS_SUPPORT_FAILING_MEMORY_H
#define TICKETPRESS_TESTS_SUPPORT_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Let the call-th allocation from now on fail, 1 being the next, and all others work. */
void failing_memory_start(size_t call);

/* Let all work again. Returns: whether one has failed. */
bool failing_memory_stop(void);

#endif
