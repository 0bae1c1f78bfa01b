// Factor graphs: message passing and sampling over flat tables.
#include "bindings.hpp"

namespace mercer {

void bind_factors(nb::module_&) {}

}  // namespace mercer
