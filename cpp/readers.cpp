#include "bindings.hpp"

namespace mercer {

void bind_readers(nb::module_& m) { (void)m; }

}  // namespace mercer
