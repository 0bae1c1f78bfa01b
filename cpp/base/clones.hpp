// Loops that are compiled for several instruction sets and chosen when the program starts; no sum in them depends on
// the width.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#define MERCER_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MERCER_CLONES
#endif
