// One way to use threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace mercer {

// A process forked from one that has used OpenMP's threads has none of them, and GNU's OpenMP waits for them for ever:
// such a process works on one thread (the results are the same).
inline std::atomic<bool> threads_were_used{false}, threads_are_lost{false};

// work and the function that calls it, so that every caller's work is compiled once and the threads are started in one
// place.
void run_parts(int64_t parts, int threads, void* work, void (*call)(void* work, int64_t part));

// Calls work(part) for part = 0 .. parts on up to `threads` threads. An exception must not leave a parallel region: the
// first one is kept and thrown afterwards.
template <class Work> void in_parallel(int64_t parts, int threads, Work work) {
  run_parts(parts, threads, &work, [](void* given, int64_t part) { (*static_cast<Work*>(given))(part); });
}

}  // namespace mercer
