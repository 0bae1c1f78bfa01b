// Threads that work in many short stages.
//
// in_parallel wakes all threads up and waits for all of them at each call: too slow for a stage of some microseconds,
// and where other programs use the processors too, every stage waits for the thread that is not running. Here a thread
// begins with a task of its own, always the same, so that its memory stays in its cache, and goes on with tasks that
// nobody has begun. A thread that is put aside between two tasks holds up nobody, and one that waits for another sleeps
// before long.
#pragma once

#include <cstdint>
#include <functional>

namespace mercer {

// Calls run(task) for task = 0 .. tasks, then next(), then run for all tasks again, and so on until next() returns
// false. All that one stage has written is seen by the next. After an exception no stage begins; it is thrown at the
// end.
void in_stages(int64_t tasks, int threads, const std::function<void(int64_t task)>& run,
               const std::function<bool()>& next);

}  // namespace mercer
