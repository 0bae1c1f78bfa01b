// Block-coordinate dual solvers for margin losses.
#include "bindings.hpp"

namespace mercer {

void bind_blocks(nb::module_&) {}

}  // namespace mercer
