// Labels of the instances of bags, given their scores and the share of positives that each bag should have (spec 004 II-13).
#include "bindings.hpp"

namespace mercer {

void bind_assignment(nb::module_&) {}

}  // namespace mercer
