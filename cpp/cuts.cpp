// Minimum cuts of binary energies.
#include "bindings.hpp"

namespace mercer {

void bind_cuts(nb::module_&) {}

}  // namespace mercer
