// Dual coordinate ascent for multiclass margins.
#include "bindings.hpp"

namespace mercer {

void bind_multiclass(nb::module_&) {}

}  // namespace mercer
