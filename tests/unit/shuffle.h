/*
 * A list of commands in another order that its deps allow, to show that they say all that matters:
 * what a device computes from it must be the same. Every LOOP and BRANCH stays in one piece; the
 * lists of its bodies are shuffled too.
 */
#ifndef DC_TESTS_SHUFFLE_H
#define DC_TESTS_SHUFFLE_H

#include "core/runtime/device.h"

/*
 * The list lies in the arena, with deps that fit the new places. order, unless NULL, receives for
 * each place the command that stood there before: facts kept beside commands move along with it.
 */
dc_command *shuffle_items(dc_arena *a, const dc_command *command, uint32_t n, uint64_t seed,
                          uint32_t *order);

/* Whether such an order keeps every list together and every dep before what waits for it. */
bool shuffle_is_legal(const dc_command *command, uint32_t n, const uint32_t *order);

#endif
