// Ctrl-C in long loops.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace mercer {

// For loops that run without the lock of the interpreter: raises what a signal has left to raise.
inline void check_signals() {
  nanobind::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

// Within long rows of cells: says how many there were, and looks for a signal some ten times a second.
inline void poll_signals(int64_t cells) {
  constexpr int64_t interval = int64_t(1) << 25;
  thread_local int64_t left = interval;
  if ((left -= cells) > 0) return;
  left = interval;
  check_signals();
}

}  // namespace mercer
