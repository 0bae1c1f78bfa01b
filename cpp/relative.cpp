// The dual of the relative margin machine with kernels.
#include "bindings.hpp"

namespace mercer {

void bind_relative(nb::module_&) {}

}  // namespace mercer
