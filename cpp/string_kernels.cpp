// Kernels of strings: n-grams, mismatches, gaps, positions, all substrings, subsequences, edit distance.
#include "bindings.hpp"

namespace mercer {

void bind_string_kernels(nb::module_&) {}

}  // namespace mercer
