// Weighted transducers: the weight of a pair of strings, composition.
#include "bindings.hpp"

namespace mercer {

void bind_transducers(nb::module_&) {}

}  // namespace mercer
