#include "bindings.hpp"

namespace mercer {

void bind_graphlets(nb::module_& m) { (void)m; }

}  // namespace mercer
