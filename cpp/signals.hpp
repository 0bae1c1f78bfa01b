// Ctrl-C in long loops.
#pragma once

#include <nanobind/nanobind.h>

namespace mercer {

// For loops that run without the lock of the interpreter: raises what a signal has left to raise.
inline void check_signals() {
  nanobind::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace mercer
