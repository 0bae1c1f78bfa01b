#include "bindings.hpp"

namespace mercer {

void bind_text(nb::module_& m) { (void)m; }

}  // namespace mercer
