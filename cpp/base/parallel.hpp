// One way to use threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace mercer {

// A process forked from one that has used OpenMP's threads has none of them, and GNU's OpenMP waits for them for ever:
// such a process works on one thread (the results are the same).
inline std::atomic<bool> threads_were_used{false}, threads_are_lost{false};

// Calls work(part) for part = 0 .. parts on up to `threads` threads. An exception must not leave a parallel region: the
// first one is kept and thrown afterwards.
template <class Work> void in_parallel(int64_t parts, int threads, Work work) {
  if (threads <= 1 || parts <= 1 || threads_are_lost) {
    for (int64_t part = 0; part < parts; ++part) work(part);
    return;
  }
  threads_were_used = true;
  std::exception_ptr failure;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t part = 0; part < parts; ++part) {
    try {
      work(part);
    } catch (...) {
#pragma omp critical(mercer_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mercer
