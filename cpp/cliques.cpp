// Exact inference: elimination orders, trees of cliques, messages over them (spec 003 B4-B12).
#include "factors.hpp"

namespace mercer {

void bind_cliques(nb::module_&) {}

}  // namespace mercer
