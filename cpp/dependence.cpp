// Kernel tests: sums over permutations of Gram matrices.
#include "bindings.hpp"

namespace mercer {

void bind_dependence(nb::module_&) {}

}  // namespace mercer
