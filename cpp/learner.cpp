#include "bindings.hpp"

namespace mercer {

void bind_learner(nb::module_& m) { (void)m; }

}  // namespace mercer
