#include "bindings.hpp"

namespace mercer {

void bind_segments(nb::module_& m) { (void)m; }

}  // namespace mercer
