#include "base/pipeline_pool.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>

#include "base/parallel.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace mercer {
namespace {

class Stages {
 public:
  Stages(int64_t tasks, const std::function<void(int64_t)>& run, const std::function<bool()>& next)
      : tasks_(tasks), run_(run), next_(next), begun_(new std::atomic<int64_t>[tasks]) {
    for (int64_t task = 0; task < tasks; ++task) begun_[task] = 0;
  }

  void go(int threads) {
    if (threads <= 1 || tasks_ <= 1 || threads_are_lost) {
      do {
        for (int64_t task = 0; task < tasks_; ++task) run_(task);
      } while (next_());
      return;
    }
    threads_were_used = true;
#pragma omp parallel num_threads(threads)
    {
#ifdef _OPENMP
      work(omp_get_thread_num());
#else
      work(0);
#endif
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr int64_t kOver = -1;

  void work(int64_t worker) {
    for (int64_t stage = 0; stage != kOver;) {
      for (int64_t k = 0; k < tasks_; ++k) {
        const int64_t task = (worker + k) % tasks_;
        int64_t expected =
            stage;  // the number of stages in which the task was begun; a stage that is over is begun everywhere
        if (begun_[task].load(std::memory_order_relaxed) == stage &&
            begun_[task].compare_exchange_strong(expected, stage + 1))
          finish(stage, task);
      }
      stage = after(stage);
    }
  }
  // Waits for the end of a stage; the next one. First by looking, which sees it at once; then asleep, which leaves the
  // processor to others.
  int64_t after(int64_t stage) {
    using Clock = std::chrono::steady_clock;
    constexpr auto kPatience = std::chrono::microseconds(50);
    constexpr int kLooks = 64;  // between two looks at the clock
    const auto end = Clock::now() + kPatience;
    do {
      for (int looks = 0; looks < kLooks; ++looks)
        if (const int64_t now = stage_.load(std::memory_order_acquire); now != stage) return now;
    } while (Clock::now() < end);
    std::unique_lock<std::mutex> lock(mutex_);
    ++sleepers_;
    wake_.wait(lock, [&] { return stage_.load() != stage; });
    --sleepers_;
    return stage_.load();
  }
  // The thread that ends the last task of a stage prepares the next.
  void finish(int64_t stage, int64_t task) {
    attempt([&] { run_(task); });
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 < tasks_ * (stage + 1)) return;
    bool more = false;
    attempt([&] { more = next_(); });
    stage_.store(more && !failed_ ? stage + 1 : kOver);
    if (sleepers_.load() > 0) {  // who is not counted yet will see the new stage
      std::lock_guard<std::mutex> lock(mutex_);
      wake_.notify_all();
    }
  }
  template <class Do> void attempt(Do what) {
    try {
      what();
    } catch (...) {
#pragma omp critical(mercer_failure)
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  const int64_t tasks_;
  const std::function<void(int64_t)>& run_;
  const std::function<bool()>& next_;
  std::unique_ptr<std::atomic<int64_t>[]> begun_;
  alignas(64) std::atomic<int64_t> stage_{0};
  alignas(64) std::atomic<int64_t> done_{0};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace

void in_stages(int64_t tasks, int threads, const std::function<void(int64_t task)>& run,
               const std::function<bool()>& next) {
  Stages(tasks, run, next).go(threads);
}

}  // namespace mercer
