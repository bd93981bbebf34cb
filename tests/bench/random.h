/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RANDOM_H
#define RANDOM_H
/*
 * Chance without state: a number is a function of a seed and of what it is for, so that a packet
 * can be made again, or alone, and always has the same bytes. Only integers and the four operations
 * of IEEE arithmetic: every machine gives the same captures.
 */
#include <stdint.h>

/* A well mixed function of x (the finalizer of SplitMix64). */
static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The number of that purpose under that seed. */
static inline uint64_t random_number(uint64_t seed, uint64_t purpose)
{
    return random_mix(seed + (purpose + 1) * 0x9e3779b97f4a7c15u);
}

/* From 0 to 1, exclusive. */
static inline double random_share(uint64_t seed, uint64_t purpose)
{
    return (double)(random_number(seed, purpose) >> 11) * 0x1.0p-53;
}

/* Whether something of that many percent happens. */
static inline int random_happens(uint64_t seed, uint64_t purpose, double percent)
{
    return random_share(seed, purpose) * 100 < percent;
}

/* From low to high, inclusive. */
static inline uint32_t random_between(uint64_t seed, uint64_t purpose, uint32_t low, uint32_t high)
{
    return low + (uint32_t)(random_number(seed, purpose) % ((uint64_t)high - low + 1));
}

/* e to the x, for |x| below 50, to about 1 %. */
static inline double random_exp(double x)
{
    double y = 1 + x / 4096;
    for (int i = 0; i < 12; i++)
        y *= y;
    return y;
}

/* About normally distributed with deviation 1: the sum of twelve uniform numbers. */
static inline double random_normal(uint64_t seed, uint64_t purpose)
{
    uint64_t own = random_number(seed, purpose);
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++)
        sum += random_share(own, i);
    return sum;
}

/* Times and sizes: half of them below the median, a long tail above; sigma is that of their log. */
static inline double random_lognormal(uint64_t seed, uint64_t purpose, double median, double sigma)
{
    return median * random_exp(sigma * random_normal(seed, purpose));
}

#endif
