#include "base/parallel.hpp"

#include <exception>

namespace mercer {

void run_parts(int64_t parts, int threads, void* work, void (*call)(void* work, int64_t part)) {
  if (threads <= 1 || parts <= 1 || threads_are_lost) {
    for (int64_t part = 0; part < parts; ++part) call(work, part);
    return;
  }
  threads_were_used = true;
  std::exception_ptr failure;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t part = 0; part < parts; ++part) {
    try {
      call(work, part);
    } catch (...) {
#pragma omp critical(mercer_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace mercer
