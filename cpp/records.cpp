#include "bindings.hpp"

namespace mercer {

void bind_records(nb::module_& m) { (void)m; }

}  // namespace mercer
