// Pairwise alignment by dynamic programming.
#include "bindings.hpp"

namespace mercer {

void bind_alignment(nb::module_&) {}

}  // namespace mercer
